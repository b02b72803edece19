package programs

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// gitReads reports a git command that changes nothing and runs nothing else, in a repository whose settings run
// nothing either. It notes the files whose content it would print.
// Its record says which commands only read, and in Ends with which options they do something else after all: write a file, run a
// program, look outside the repository, or enter submodules. A command whose record does not say so counts as one that changes
// something. True lets the call run unasked, so an unknown word, an unknown folder or an odd repository all answer false.
func gitReads(at reached, sub string, rest []scan.Word, c *scan.Visit) bool {
	r := at.last()
	dirs, placed := c.Dirs()
	if !r.Reads || !placed || gitElsewhere(c) || at.writesByOption(rest) {
		return false
	}
	for _, a := range rest {
		s, one := a.One()
		if !one || scan.NamesSecret(a.Source) || strings.Contains(s, "%G") || strings.Contains(s, "signature") { // gpg is asked
			return false
		}
		if len(s) > 1 && s[0] == '-' && optionIn(s, r.Ends) {
			return false
		}
	}
	words := gitWords(rest)
	switch {
	case sub == "cat-file" && len(words) == 0:
		return false // what it prints comes from its input
	// Without a word they list; with one they make something, or, in newer versions, run a command of that name.
	case (sub == "branch" || sub == "tag" || r.name == "git reflog") && len(words) > 0 && !gitListing(rest):
		return false
	}
	for _, a := range words {
		gitNames(a, c)
	}
	for _, dir := range dirs {
		// The repository that git finds from here: its settings may name programs, which a reading command starts as well.
		top, tracked, quiet := quietRepository(c.Real(dir))
		if !quiet {
			return false
		}
		if gitPrints(sub, rest) {
			hiddenFiles(top, tracked, c)
		}
	}
	return true
}

// writesByOption reports an option whose value is a file that is written, or a program. git blame takes --output as git log does,
// though its manual page does not say so.
func (at reached) writesByOption(args []scan.Word) bool {
	s := at.spec()
	changes := func(name string) bool {
		o, ok := s.option(name)
		return ok && (o.kind == kindWrite || o.kind == kindListWrite || o.kind == kindScript || o.kind == kindSelf || o.kind == kindCall)
	}
	for _, a := range args {
		t := a.Text
		if len(t) < 2 || t[0] != '-' || t == "--" {
			continue
		}
		key, _, _ := strings.Cut(t, "=")
		if changes(key) {
			return true
		}
		if t[1] != '-' && slices.ContainsFunc([]rune(t[1:]), func(letter rune) bool { return changes("-" + string(letter)) }) {
			return true
		}
	}
	return false
}

// gitElsewhere reports an environment that leads git to another repository, or to other programs.
// The variables are those of git(1), "ENVIRONMENT VARIABLES", that choose a repository, settings or a program.
func gitElsewhere(c *scan.Visit) bool {
	for _, name := range [...]string{"GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS",
		"GIT_EXTERNAL_DIFF", "GIT_EXEC_PATH"} {
		if _, set := c.Getenv(name); set {
			return true
		}
	}
	return false
}

// gitListing reports an option that makes branch and tag list what matches their words.
// Without one, git branch x and git tag x make x.
func gitListing(rest []scan.Word) bool {
	for _, a := range rest {
		switch key, _, _ := strings.Cut(a.Text, "="); key {
		case "--list", "-l", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at":
			return true
		}
	}
	return false
}

// gitNames notes the path that a word may be, of the tree or of a revision (HEAD:path).
// A word that names nothing on disk is a revision and touches no file.
func gitNames(a scan.Word, c *scan.Visit) {
	s := a.Text
	if _, path, ok := strings.Cut(s, ":"); ok && path != "" {
		c.Touch(scan.Plain(path), scan.Read)
	}
	dirs, _ := c.Dirs()
	for _, dir := range dirs {
		if strings.HasPrefix(s, "/") || strings.HasPrefix(s, "~") || strings.HasPrefix(s, "..") || strings.Contains(s, "/..") || isThere(c,
			filepath.Join(c.Real(dir), s)) {
			c.Touch(a, scan.Read)
			return
		}
	}
}

// gitPrints reports a command that may print what is in files, not only their names.
// Hidden files that are tracked would then be printed without being named: git show prints .env with its keys.
func gitPrints(sub string, rest []scan.Word) bool {
	some := func(options string) bool {
		return slices.ContainsFunc(rest, func(a scan.Word) bool { return len(a.Text) > 1 && a.Text[0] == '-' && optionIn(a.Text, options) })
	}
	// The options by which a command that lists commits or files prints their lines too.
	const patch = "-p -u -U -L --patch --unified --cc --full-diff --patch-with-stat --patch-with-raw"
	switch sub {
	case "diff", "show", "diff-tree", "diff-index", "diff-files", "range-diff", "whatchanged":
		names := slices.ContainsFunc(rest, func(a scan.Word) bool {
			return slices.Contains([]string{"--stat", "--name-only", "--name-status", "--numstat", "--shortstat", "--dirstat", "--quiet", "-s",
				"--no-patch", "--summary"}, a.Text)
		})
		return !names || some(patch)
	case "grep", "cat-file":
		return true
	case "log", "stash", "reflog":
		return some(patch + " -c")
	case "status":
		return some("-v --verbose")
	}
	return false // blame names its file
}

// isThere reports that there is something at an absolute path.
func isThere(c *scan.Visit, path string) bool {
	exists, _ := c.Exists(path)
	return exists
}

// isFolder reports that a folder is there, not a link to one.
func isFolder(c *scan.Visit, path string) bool {
	_, folder := c.Exists(path)
	return folder
}
