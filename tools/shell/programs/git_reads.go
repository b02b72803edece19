package programs

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// gitReads reports that a Git command changes nothing and starts no other program, and that the settings of the repository name none.
// It also notes the files whose contents the command would print. The record says which commands only read (Reads), and with which
// options they write a file, start a program, use files outside the repository or enter submodules (Ends). A call for which this is
// true may run without approval, so the result is false in every case of doubt: an unknown word, an unknown folder, a repository of
// an unusual layout.
func gitReads(at reached, sub string, rest []scan.Word, c *scan.Visit) bool {
	r := at.last()
	dirs, placed := c.Dirs()
	if !r.Reads || !placed || gitElsewhere(c) || at.writesByOption(rest) {
		return false
	}
	for _, a := range rest {
		s, one := a.One()
		if !one || scan.NamesSecret(a.Source) || strings.Contains(s, "%G") || strings.Contains(s, "signature") { // Git runs gpg for these
			return false
		}
		if len(s) > 1 && s[0] == '-' && optionIn(s, r.Ends) {
			return false
		}
	}
	words := gitWords(rest)
	switch {
	case sub == "cat-file" && len(words) == 0:
		return false // the objects to print are named on standard input
	// Without a word these list. With one, branch and tag create something, and reflog may run a subcommand that has no record.
	case (sub == "branch" || sub == "tag" || r.name == "git reflog") && len(words) > 0 && !gitListing(rest):
		return false
	}
	for _, a := range words {
		gitNames(a, c)
	}
	for _, dir := range dirs {
		// Git commands that only read also start the programs that the repository's settings name.
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

// printsObjects are the Git commands that print or pack the contents of tracked files, besides those that only read (gitPrints).
var printsObjects = map[string]bool{
	"archive": true, "bundle": true, "cat-file": true, "checkout-index": true, "daemon": true, "difftool": true, "fast-export": true, "format-patch": true,
	"http-backend": true, "instaweb": true, "merge-file": true, "merge-tree": true, "pack-objects": true, "send-email": true, "unpack-file": true,
	"upload-archive": true, "upload-pack": true,
}

// gitShows notes the hidden files that a Git command may print although it does not only read. In the sandbox such a command may run
// without a question, and a mount hides .env there, but not the objects in which Git has kept its contents.
func gitShows(sub string, rest []scan.Word, c *scan.Visit) {
	dirs, placed := c.Dirs()
	if !placed || !printsObjects[sub] && !gitPrints(sub, rest) {
		return
	}
	for _, dir := range dirs {
		top, tracked, known := trackedFiles(c.Real(dir))
		if !known {
			hiddenBelow([]string{top}, true, c) // what is tracked is mostly there
		}
		hiddenFiles(top, tracked, c)
	}
}

// writesByOption reports that one of args is an option whose value is a file to write, or a program to start. It also covers git blame,
// which takes --output like git log, although its manual page does not say so.
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

// gitElsewhere reports that an environment variable makes Git use another repository, other settings or another program (git(1),
// "ENVIRONMENT VARIABLES"; git-config(1), "ENVIRONMENT"). In GIT_CONFIG_PARAMETERS git passes the settings of -c to its subcommands.
func gitElsewhere(c *scan.Visit) bool {
	for _, name := range [...]string{"GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS",
		"GIT_EXTERNAL_DIFF", "GIT_EXEC_PATH"} {
		if _, set := c.Getenv(name); set {
			return true
		}
	}
	return false
}

// gitListing reports that an option makes git branch or git tag list what matches the words. Without such an option, git branch x and
// git tag x create x.
func gitListing(rest []scan.Word) bool {
	for _, a := range rest {
		switch key, _, _ := strings.Cut(a.Text, "="); key {
		case "--list", "-l", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at":
			return true
		}
	}
	return false
}

// gitNames notes the path that a word may name, in the worktree or in a revision (HEAD:path). A word that neither exists as a path nor
// may lead out of the folder counts as a revision, which is not a file.
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

// gitPrints reports that a Git command may print the contents of files, not only their names. It can print a tracked hidden file that
// the command does not name: git show prints .env with its keys.
func gitPrints(sub string, rest []scan.Word) bool {
	some := func(options string) bool {
		return slices.ContainsFunc(rest, func(a scan.Word) bool { return len(a.Text) > 1 && a.Text[0] == '-' && optionIn(a.Text, options) })
	}
	// With one of these, commands that list commits or files also print changed lines.
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
	return false // git blame prints a file too, but only one that is named
}

// isThere reports that an absolute path exists.
func isThere(c *scan.Visit, path string) bool {
	exists, _ := c.Exists(path)
	return exists
}

// isFolder reports that path is a folder. A symbolic link to a folder is not one.
func isFolder(c *scan.Visit, path string) bool {
	_, folder := c.Exists(path)
	return folder
}
