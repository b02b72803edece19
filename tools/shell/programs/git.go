package programs

import (
	"strings"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// git looks at git: where it works, which of its options run other programs, and the files it is told to write.
// Options before the subcommand decide which repository counts, so they come first: with another one, its settings may name
// programs that nobody has looked at (git-config(1): core.fsmonitor, core.sshCommand, filters).
func git(c *scan.Visit) {
	args := c.Args[1:]
	// -C moves git and not the shell.
	moved := c.Fork()
	i := 0
	for ; i < len(args) && strings.HasPrefix(args[i].Text, "-"); i++ {
		s, ok := args[i].One()
		if !ok {
			c.Opaque("an option of git cannot be read off the command")
			continue
		}
		// Git takes the value behind "=" or as the next word.
		key, val, has := strings.Cut(s, "=")
		value := scan.Plain(val)
		// take moves on to the next word where the value is not glued on with "=".
		take := func() {
			if !has && i+1 < len(args) {
				i++
				value = args[i]
			}
		}
		switch key {
		case "-C":
			take()
			moved.Touch(value, scan.Write)
			moved.Move(value)
		case "--git-dir", "--work-tree":
			take()
			moved.Touch(value, scan.Write)
			c.Opaque("git " + key + " takes another repository's settings, which may run programs")
		case "-c", "--config-env":
			take()
			if !harmlessSetting(value.Text) || key == "--config-env" {
				c.Opaque("git " + key + " " + value.Text + " may change what git runs")
			}
		// Without a value it prints the folder.
		case "--exec-path":
			if has {
				c.Opaque("git --exec-path changes what git runs")
			}
		case "--namespace", "--super-prefix", "--attr-source":
			take()
		}
	}
	if i >= len(args) {
		c.ReadOnly = len(args) == 1 && hasField(recordOf(c, "git").Version, args[0].Text)
		return
	}
	sub := args[i].Text
	if _, ok := args[i].One(); !ok {
		c.Opaque("which git command runs cannot be said")
		return
	}
	rest := args[i+1:]
	// An option in front of the subcommand would have to stand in the pattern, and "git -c … *" would allow anything.
	if i == 0 {
		if gitSub(c, sub).Always == never {
			c.NoGrant = true
		} else {
			remember(c, recordOf(c, "git"), args)
		}
	}
	gitCommand(sub, rest, moved)
	c.ReadOnly = gitReads(sub, rest, moved)
	// A git command works on the whole worktree, whatever its words name.
	moved.RunsHere()
}

// gitWords are the arguments that are no options; behind -- all are words.
func gitWords(args []scan.Word) []scan.Word {
	var words []scan.Word
	for i, a := range args {
		if a.Text == "--" {
			return append(words, args[i+1:]...)
		}
		if !strings.HasPrefix(a.Text, "-") {
			words = append(words, a)
		}
	}
	return words
}

// harmlessSetting knows the -c settings that people and tools use every day.
func harmlessSetting(s string) bool {
	key, _, _ := strings.Cut(strings.ToLower(s), "=")
	switch key {
	case "color.ui", "user.name", "user.email", "commit.gpgsign", "tag.gpgsign", "advice.detachedhead", "core.quotepath", "core.autocrlf",
		"init.defaultbranch", "pull.rebase", "diff.context", "log.showsignature", "core.abbrev", "gc.auto", "protocol.version", "http.lowspeedlimit",
		"merge.conflictstyle", "rebase.autostash":
		return true
	case "core.pager":
		return s == "core.pager=cat" || s == "core.pager="
	}
	return strings.HasPrefix(key, "color.") || strings.HasPrefix(key, "advice.")
}

// shortFor reports whether an option is a long one or its first letters, which programs take for it.
func shortFor(s, long string) bool { return len(s) > 2 && s[:2] == "--" && strings.HasPrefix(long, s) }

// gitCommand looks at the words behind git's subcommand: options that run programs or write files, and the paths among
// the words. git takes abbreviated long options, so each is compared with shortFor.
func gitCommand(sub string, rest []scan.Word, c *scan.Visit) {
	next := func(i int) scan.Word {
		if i+1 < len(rest) {
			return rest[i+1]
		}
		return scan.Plain("")
	}
	runs := func(a scan.Word) {
		c.NoGrant = true
		c.Script(a, "git "+sub)
	}
	for i, a := range rest {
		s := a.Text
		key, val, has := strings.Cut(s, "=")
		switch {
		case strings.HasPrefix(s, "ext::"), shortFor(key, "--upload-pack"), shortFor(key, "--receive-pack"), (sub == "archive" || sub == "push") &&
			shortFor(key, "--exec"):
			c.Opaque("git " + sub + " " + key + " runs another program")
			c.NoGrant = true
		case shortFor(key, "--output") || s == "-o" && (sub == "archive" || sub == "format-patch"):
			if has {
				c.Touch(scan.Plain(val), scan.Write)
			} else {
				c.Touch(next(i), scan.Write)
			}
			c.Writes()
		case strings.HasPrefix(s, "-o/") || strings.HasPrefix(s, "-o."):
			c.Touch(scan.Plain(s[2:]), scan.Write)
		case strings.HasPrefix(s, "-O") && sub == "grep", shortFor(key, "--open-files-in-pager"), shortFor(key, "--ext-diff"), shortFor(key, "--textconv"):
			c.Opaque("git " + sub + " " + s + " runs another program")
			c.NoGrant = true
		// git rebase --exec and git difftool --extcmd give the string to a shell (git-rebase(1), git-difftool(1)).
		case s == "-x" && (sub == "rebase" || sub == "difftool"), !has && shortFor(s, "--exec") && sub == "rebase", !has && shortFor(s, "--extcmd") &&
			sub == "difftool":
			runs(next(i))
		case has && (shortFor(key, "--exec") && sub == "rebase" || shortFor(key, "--extcmd")):
			runs(scan.Plain(val))
		case strings.HasPrefix(s, "-") && !strings.HasPrefix(s, "--") && len(s) > 2 && strings.Contains(s, "x") && (sub == "rebase" || sub == "difftool"):
			if code := s[strings.IndexByte(s, 'x')+1:]; code != "" { // -ix 'make test', -x'make test'
				runs(scan.Plain(code))
			} else {
				runs(next(i))
			}
		case sub == "filter-branch" && strings.HasSuffix(s, "-filter"):
			runs(next(i))
		// --sendmail-cmd, --to-cmd and the like name programs (git-send-email(1)).
		case sub == "send-email" && strings.HasPrefix(s, "--"):
			c.Opaque("git " + sub + " " + s + " may run another program")
		case sub == "filter-repo" && strings.HasSuffix(key, "-callback"), sub == "apply" && shortFor(key, "--unsafe-paths"), sub == "shell" && i == 0:
			c.Opaque("git " + sub + " " + key + " may run or write anything")
			c.NoGrant = true
		case has && strings.HasPrefix(s, "--") && !gitText[key]:
			c.TouchIfPath(a.Cut("="), scan.Write) // --separate-git-dir=../x, --pathspec-from-file=…
		case gitFileOptions[key]:
			c.Touch(next(i), scan.Write)
		}
	}
	words := gitWords(rest)
	switch sub {
	// foreach gives its words to a shell in every submodule: one word is a script, several are joined.
	case "submodule":
		if len(words) > 1 && words[0].Text == "foreach" {
			behind := behindWord(rest, "foreach")
			for len(behind) > 0 && (behind[0].Text == "--recursive" || behind[0].Text == "--quiet" || behind[0].Text == "-q") {
				behind = behind[1:]
			}
			if s, ok := scan.Expanded(behind); ok {
				if len(behind) > 1 { // its words go to a shell as they are
					c.RunApart(behind)
				}
				runs(scan.Plain(s))
			} else {
				c.Opaque("git submodule foreach runs what cannot be read off the command")
			}
			return
		}
	case "bisect":
		if len(words) > 1 && words[0].Text == "run" {
			c.NoGrant = true
			c.RunApart(behindWord(rest, "run"))
			return
		}
	// git secrets --install writes hooks.
	case "secrets":
		hookManager(append([]scan.Word{scan.Plain("git-secrets")}, rest...), c)
		return
	case "config":
		gitConfig(rest, words, c)
		return
	// A remote's URL is a setting, and an ext:: one names a program (git-remote-ext(1)).
	case "remote":
		if len(words) > 0 && words[0].Text != "show" && words[0].Text != "get-url" && words[0].Text != "-v" {
			protectedFile(".git/config", c)
		}
		return
	case "clone", "init":
		// A repository brings hooks only through templates; where it goes is what matters.
		for i, a := range words {
			if sub == "clone" && i == 0 && !strings.HasPrefix(a.Text, "file://") && (strings.Contains(a.Text, "://") || strings.Contains(a.Text, "@")) {
				continue
			}
			c.Touch(plainOr(a, "file://"), scan.Write)
		}
		for _, a := range rest {
			// A template brings hooks, -c settings, and -u is the program to run on the other side; abbreviations count.
			if strings.HasPrefix(a.Text, "--templ") || strings.HasPrefix(a.Text, "--conf") || strings.HasPrefix(a.Text, "-c") || strings.HasPrefix(a.Text, "-u") {
				c.Opaque("git " + sub + " " + a.Text + " may bring programs along")
			}
		}
		return
	case "worktree":
		if len(words) > 1 {
			c.Touch(words[1], scan.Write)
			for _, a := range words[2:] { // -b name path, move from to
				c.TouchIfPath(a, scan.Write)
			}
		}
		return
	// They write filters, hooks or a schedule into the settings, by which git runs them later.
	case "lfs", "annex", "flow", "maintenance":
		if len(words) > 0 && (words[0].Text == "install" || words[0].Text == "init" || words[0].Text == "start" || words[0].Text == "register") {
			if sub == "lfs" || sub == "maintenance" {
				c.Touch(scan.Plain(c.Home()+"/.gitconfig"), scan.Write)
			}
			if sub == "lfs" {
				protectedFile(".git/hooks", c)
			} else {
				protectedFile(".git/config", c)
			}
		}
		return
	case "commit", "tag", "notes", "stash", "merge", "log", "shortlog", "branch", "checkout", "switch", "fetch", "pull", "push", "rebase",
		"cherry-pick", "reset", "revert", "describe", "rev-parse", "rev-list", "show-ref", "for-each-ref", "ls-remote", "reflog", "name-rev",
		"merge-base", "cat-file", "symbolic-ref":
		for i, a := range rest {
			if (a.Text == "-F" || a.Text == "--file" || a.Text == "-t" && sub == "commit") && (sub == "commit" || sub == "tag" || sub == "notes" ||
				sub == "merge") {
				c.Touch(next(i), scan.Read)
			}
			// A path as a remote is a repository of this machine, which push writes and whose hooks run.
			if sub == "fetch" || sub == "pull" || sub == "push" {
				if strings.HasPrefix(a.Text, "/") || strings.HasPrefix(a.Text, "../") || strings.HasPrefix(a.Text, "~") || strings.HasPrefix(a.Text, "file://") {
					c.Touch(scan.Plain(strings.TrimPrefix(a.Text, "file://")), scan.Write)
				}
			}
		}
		return
	}
	// add, mv, rm, diff, show, apply, am, blame, restore, grep …: words may be paths, also unknown ones: git itself
	// refuses paths outside its worktree, but for diff --no-index, apply, am and hash-object.
	free := sub == "diff" || sub == "apply" || sub == "am" || sub == "hash-object" || sub == "grep"
	skip := sub == "grep"
	access := scan.Read
	if gitWrites[sub] {
		access = scan.Write
	}
	for i, a := range rest {
		if sub == "grep" && (a.Text == "-e" || a.Text == "-f") {
			skip = false
		}
		if sub == "grep" && i > 0 && rest[i-1].Text == "-f" {
			c.Touch(a, scan.Read)
			continue
		}
		if i > 0 && sub != "blame" && (rest[i-1].Text == "-e" || rest[i-1].Text == "-m" || rest[i-1].Text == "-S" || rest[i-1].Text == "-G" ||
			rest[i-1].Text == "--author" || rest[i-1].Text == "--format" || rest[i-1].Text == "--grep") {
			continue
		}
		if strings.HasPrefix(a.Text, "-") {
			continue
		}
		// The first word of git grep is the pattern, unless -e or -f gave it.
		if skip {
			skip = false
			continue
		}
		if !a.Known() && !free {
			continue
		}
		c.TouchIfPath(a, access)
	}
}

// gitText are the long options of git whose values are text that may look like a path.
// Without this list git log --format=/%h/ would ask about a path outside the project.
var gitText = map[string]bool{"--format": true, "--pretty": true, "--author": true, "--grep": true, "--message": true, "--since": true,
	"--until": true, "--date": true, "--exclude": true, "--include": true, "--trailer": true, "--src-prefix": true, "--dst-prefix": true,
	"--line-prefix": true, "--subject-prefix": true, "--word-diff-regex": true, "--glob": true, "--tags": true, "--ref": true, "--sort": true,
	"--path": true, "--relative": true}

// gitFileOptions are the options of git whose next word is a file or folder, whatever the command.
var gitFileOptions = map[string]bool{"--separate-git-dir": true, "--pathspec-from-file": true, "--template": true, "--reference": true,
	"--output-directory": true, "--export-marks": true, "--import-marks": true, "--ignore-revs-file": true, "--directory": true}

// gitWrites are the commands whose bare words name what they write, move or remove.
// The others read the files that are named, or change them only as far as the index and the worktree go.
var gitWrites = map[string]bool{"mv": true, "rm": true, "clean": true, "restore": true, "checkout-index": true, "bundle": true,
	"bugreport": true, "diagnose": true, "mailinfo": true, "merge-file": true, "receive-pack": true, "pack-objects": true, "submodule": true,
	"bisect": true, "interpret-trailers": true, "sparse-checkout": true, "update-index": true}

// behindWord are the arguments behind the first that is this word.
// Nil when the word is not there.
func behindWord(args []scan.Word, word string) []scan.Word {
	for i, a := range args {
		if a.Text == word {
			return args[i+1:]
		}
	}
	return nil
}

// plainOr is an argument without a prefix, where it has it.
// A file:// URL is a path to git.
func plainOr(a scan.Word, prefix string) scan.Word {
	if s, ok := strings.CutPrefix(a.Text, prefix); ok {
		return scan.Plain(s)
	}
	return a
}

// gitConfig tells asking from setting: a setting can make git run anything.
// In doubt it counts as setting. core.pager, core.sshCommand, alias.x = !cmd are what a setting can start.
// rest are the arguments behind "config", words those of them that are no options.
func gitConfig(rest, words []scan.Word, c *scan.Visit) {
	c.NoGrant = true
	reads := len(words) == 1 && words[0].Text != "edit"
	global, file := "", false
	for i, a := range rest {
		switch s := a.Text; {
		case s == "--get" || s == "--get-all" || s == "--get-regexp" || s == "--get-urlmatch" || s == "-l" || s == "--list" || s == "--show-origin" ||
			s == "get" || s == "list" || s == "--get-color":
			reads = true
		case s == "--global":
			global = c.Home() + "/.gitconfig"
		case s == "--system":
			global = "/etc/gitconfig"
		// Any file may be named; that it is one of settings is not checked.
		case s == "-f" || s == "--file":
			file = true
			if i+1 < len(rest) {
				c.Touch(rest[i+1], scan.Write)
			}
		case strings.HasPrefix(s, "--file="):
			file = true
			c.Touch(scan.Plain(s[len("--file="):]), scan.Write)
		case s == "-e" || s == "--edit" || s == "--unset" || s == "--unset-all" || s == "--add" || s == "--replace-all" || s == "--remove-section" ||
			s == "--rename-section":
			reads = false
			// Two more words, so that a reading option beside it does not make the call a question.
			words = append(words, scan.Plain(""), scan.Plain(""))
		}
	}
	// A name and a value beside a reading option would set the value.
	if reads && len(words) < 3 {
		return
	}
	if global != "" {
		c.Touch(scan.Plain(global), scan.Write)
		return
	}
	if file {
		return
	}
	protectedFile(".git/config", c)
}

// protectedFile notes a write to a file that a program changes without being given its name.
func protectedFile(name string, c *scan.Visit) {
	c.TouchPath(c.Worktree()+"/"+name, scan.Write)
	if !c.Guarded() {
		c.Opaque("it changes " + name)
	}
}

// gitSub is the record of a git command.
// It is git's own record where the command is not listed.
func gitSub(c *scan.Visit, name string) *Record {
	r, _ := recordOf(c, "git").sub([]string{name})
	return r
}
