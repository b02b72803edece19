package sandbox

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// GitRuns returns the files and folders that git runs programs from, or takes more settings from, when it works in a
// worktree: those that the repository's and the person's settings name (core.hooksPath, include.path, filters, aliases),
// and what the links among its hooks lead to. Their names tell nothing: a script of the project becomes a hook by a
// setting or a link that is elsewhere. The paths are absolute and resolved; of a folder all below counts. Programs
// outside of the worktree are not among them.
func GitRuns(root, home string) (places []string) {
	root = realDir(root)
	git := gitPlaces(root)
	for _, dir := range git.hooks {
		hooks, _ := os.ReadDir(dir)
		for _, h := range hooks {
			if h.Type()&os.ModeSymlink != 0 {
				if real, err := filepath.EvalSymlinks(filepath.Join(dir, h.Name())); err == nil {
					places = append(places, real)
				}
			}
		}
	}
	var configs []string
	for _, dir := range git.dirs {
		configs = append(configs, filepath.Join(dir, "config"), filepath.Join(dir, "config.worktree"))
	}
	if home != "" {
		configs = append(configs, filepath.Join(home, ".gitconfig"), filepath.Join(home, ".config", "git", "config"))
	}
	for _, config := range configs {
		text, err := os.ReadFile(config)
		// 1 MiB: a configuration of a few KiB is the rule, and the words of each line are looked up on disk.
		if err != nil || len(text) > 1<<20 {
			continue
		}
		for _, v := range programValues(text) {
			// Further settings are named relative to the file, everything else to the top of the worktree (git-config(1)).
			base := root
			if v.include {
				base = filepath.Dir(config)
			}
			for _, word := range v.words() {
				path := word
				if rest, ok := strings.CutPrefix(word, "~/"); ok && home != "" {
					path = filepath.Join(home, rest)
				} else if !filepath.IsAbs(word) {
					path = filepath.Join(base, word)
				}
				real := resolvedOrNew(base, path)
				// A word of a command that names nothing here is an option or a program of the system. A folder of hooks, and a
				// file of settings, may come into being.
				if real != root && below(root, real) && (v.whole || !missing(real)) {
					places = append(places, real)
				}
			}
		}
	}
	slices.Sort(places)
	return slices.Compact(places)
}

// programValue is the value of one of git's settings that names a program, a folder of programs or more settings.
type programValue struct {
	text    string
	whole   bool // a path, not a command with words
	include bool // a path of further settings
}

// words are the paths that the value may name. Quotes are taken off: what a shell would make of the rest does not
// matter, since a word that is not a path names nothing.
func (v programValue) words() []string {
	if v.whole {
		return []string{strings.Trim(v.text, `"`)}
	}
	return strings.FieldsFunc(strings.TrimPrefix(strings.Trim(v.text, `"`), "!"), func(r rune) bool { return strings.ContainsRune(" \t\"'\\;|&()<>=", r) })
}

// programValues finds them in the text of a configuration. All aliases count, though only those that begin with "!" run a
// program: a word that is not a path names nothing. Lines that continue behind a backslash are not joined.
func programValues(text []byte) (values []programValue) {
	section := ""
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] == '[' {
			head, rest, _ := bytes.Cut(line[1:], []byte("]"))
			name, _, _ := bytes.Cut(head, []byte(" "))
			section, line = strings.ToLower(string(name)), bytes.TrimSpace(rest) // a key may follow in the same line
		}
		name, value, ok := strings.Cut(string(line), "=")
		if !ok {
			continue
		}
		name, value = strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(value)
		switch {
		case name == "hookspath" || name == "templatedir":
			values = append(values, programValue{text: value, whole: true})
		case name == "path" && strings.HasPrefix(section, "include"):
			values = append(values, programValue{text: value, whole: true, include: true})
		// submodule.NAME.path is the folder of a submodule, not a program.
		case name == "path" && section == "submodule":
		case section == "alias" || slices.Contains(gitPrograms, name):
			values = append(values, programValue{text: value})
		}
	}
	return values
}
