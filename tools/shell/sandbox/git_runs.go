package sandbox

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// GitRuns returns the files and folders of a worktree from which git runs programs or reads further settings: those named in
// the settings of the repository and of the person (core.hooksPath, include.path, filters, aliases), and the targets of
// links among the hooks. Any script of the project may be one of them, whatever its name. The paths are absolute, with links
// resolved; a folder stands for everything below it. Paths outside the worktree are left out.
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
		// A normal configuration has a few KiB. Each word of a longer one would cost a lookup on disk.
		if err != nil || len(text) > 1<<20 {
			continue
		}
		for _, v := range programValues(text) {
			// include.path is relative to the configuration file, all other paths to the top of the worktree (git-config(1)).
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
				// A word of a command counts only if such a file exists; otherwise it is an option or a program of the system. A path
				// (whole) counts in any case, since the command may create the folder of hooks or the settings.
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
	whole   bool // the value is one path, not a command with arguments
	include bool // the path of further settings
}

// words splits the value into words that may be paths, without quotes. The split is rougher than a shell's, which does no harm:
// a word that is not a path is not found on disk.
func (v programValue) words() []string {
	if v.whole {
		return []string{strings.Trim(v.text, `"`)}
	}
	return strings.FieldsFunc(strings.TrimPrefix(strings.Trim(v.text, `"`), "!"), func(r rune) bool { return strings.ContainsRune(" \t\"'\\;|&()<>=", r) })
}

// programValues finds the settings in a git configuration that name programs. All aliases count, though only those that begin
// with "!" run a program: the words of others are not found on disk. Lines that continue after a backslash are not joined.
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
