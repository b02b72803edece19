package shell

import "strings"

// git looks at git: where it works, which of its options run other programs, and the files it is told to write.
func (w *walker) git(c *call, entry *Call) {
	args := c.args[1:]
	st := *c.st
	i := 0
	for ; i < len(args) && strings.HasPrefix(args[i].text, "-"); i++ {
		s, ok := args[i].one()
		if !ok {
			w.opaque("an option of git cannot be read off the command")
			continue
		}
		key, val, has := strings.Cut(s, "=")
		value := plainArg(val)
		take := func() {
			if !has && i+1 < len(args) {
				i++
				value = args[i]
			}
		}
		switch key {
		case "-C":
			take()
			w.recordArg(value, Write, &st)
			if dirs, _ := w.targets(value, &st); dirs != nil {
				st.dirs = dirs
			} else {
				st.unknown = true
			}
		case "--git-dir", "--work-tree":
			take()
			w.recordArg(value, Write, &st)
			w.opaque("git " + key + " takes another repository's settings, which may run programs")
		case "-c", "--config-env":
			take()
			if !harmlessSetting(value.text) || key == "--config-env" {
				w.opaque("git " + key + " " + value.text + " may change what git runs")
			}
		case "--exec-path":
			if has {
				w.opaque("git --exec-path changes what git runs")
			}
		case "--namespace", "--super-prefix", "--attr-source":
			take()
		}
	}
	moved := *c
	moved.st = &st
	if i >= len(args) {
		return
	}
	sub := args[i].text
	if _, ok := args[i].one(); !ok {
		w.opaque("which git command runs cannot be said")
		return
	}
	rest := args[i+1:]
	if i == 0 {
		if noAlways["git "+sub] {
			entry.NoGrant = true
		} else {
			entry.Always = alwaysOf(entry.Text, c.args, "git")
		}
	}
	w.gitCommand(sub, rest, &moved, entry)
	entry.ReadOnly = w.gitReads(sub, rest, &moved)
	w.runIn(&moved, entry.ReadOnly)
}

// gitWords are the arguments that are no options; behind -- all are words.
func gitWords(args []arg) []arg {
	var words []arg
	for i, a := range args {
		if a.text == "--" {
			return append(words, args[i+1:]...)
		}
		if !strings.HasPrefix(a.text, "-") {
			words = append(words, a)
		}
	}
	return words
}

// harmlessSetting knows the -c settings that people and tools use every day.
func harmlessSetting(s string) bool {
	key, _, _ := strings.Cut(strings.ToLower(s), "=")
	switch key {
	case "color.ui", "user.name", "user.email", "commit.gpgsign", "tag.gpgsign", "advice.detachedhead", "core.quotepath", "core.autocrlf", "init.defaultbranch", "pull.rebase", "diff.context", "log.showsignature", "core.abbrev", "gc.auto", "protocol.version", "http.lowspeedlimit", "merge.conflictstyle", "rebase.autostash":
		return true
	case "core.pager":
		return s == "core.pager=cat" || s == "core.pager="
	}
	return strings.HasPrefix(key, "color.") || strings.HasPrefix(key, "advice.")
}

// shortFor reports whether an option is a long one or its first letters, which programs take for it.
func shortFor(s, long string) bool { return len(s) > 2 && s[:2] == "--" && strings.HasPrefix(long, s) }

func (w *walker) gitCommand(sub string, rest []arg, c *call, entry *Call) {
	next := func(i int) arg {
		if i+1 < len(rest) {
			return rest[i+1]
		}
		return plainArg("")
	}
	runs := func(a arg) {
		entry.NoGrant = true
		w.nested(a, c.st, "git "+sub)
	}
	for i, a := range rest {
		s := a.text
		key, val, has := strings.Cut(s, "=")
		switch {
		case strings.HasPrefix(s, "ext::"), shortFor(key, "--upload-pack"), shortFor(key, "--receive-pack"), (sub == "archive" || sub == "push") && shortFor(key, "--exec"):
			w.opaque("git " + sub + " " + key + " runs another program")
			entry.NoGrant = true
		case shortFor(key, "--output") || s == "-o" && (sub == "archive" || sub == "format-patch"):
			if has {
				w.recordArg(plainArg(val), Write, c.st)
			} else {
				w.recordArg(next(i), Write, c.st)
			}
			w.writes = true
		case strings.HasPrefix(s, "-o/") || strings.HasPrefix(s, "-o."):
			w.recordArg(plainArg(s[2:]), Write, c.st)
		case strings.HasPrefix(s, "-O") && sub == "grep", shortFor(key, "--open-files-in-pager"), shortFor(key, "--ext-diff"), shortFor(key, "--textconv"):
			w.opaque("git " + sub + " " + s + " runs another program")
			entry.NoGrant = true
		case s == "-x" && (sub == "rebase" || sub == "difftool"), !has && shortFor(s, "--exec") && sub == "rebase", !has && shortFor(s, "--extcmd") && sub == "difftool":
			runs(next(i))
		case has && (shortFor(key, "--exec") && sub == "rebase" || shortFor(key, "--extcmd")):
			runs(plainArg(val))
		case strings.HasPrefix(s, "-") && !strings.HasPrefix(s, "--") && len(s) > 2 && strings.Contains(s, "x") && (sub == "rebase" || sub == "difftool"):
			if code := s[strings.IndexByte(s, 'x')+1:]; code != "" { // -ix 'make test', -x'make test'
				runs(plainArg(code))
			} else {
				runs(next(i))
			}
		case sub == "filter-branch" && strings.HasSuffix(s, "-filter"):
			runs(next(i))
		case sub == "send-email" && strings.HasPrefix(s, "--"):
			w.opaque("git " + sub + " " + s + " may run another program")
		case sub == "filter-repo" && strings.HasSuffix(key, "-callback"), sub == "apply" && shortFor(key, "--unsafe-paths"), sub == "shell" && i == 0:
			w.opaque("git " + sub + " " + key + " may run or write anything")
			entry.NoGrant = true
		case has && strings.HasPrefix(s, "--") && !gitText[key]:
			w.genericArg(a.cut("="), Write, c.st) // --separate-git-dir=../x, --pathspec-from-file=…
		case gitFileOptions[key]:
			w.recordArg(next(i), Write, c.st)
		}
	}
	words := gitWords(rest)
	switch sub {
	case "submodule":
		if len(words) > 1 && words[0].text == "foreach" {
			behind := behindWord(rest, "foreach")
			for len(behind) > 0 && (behind[0].text == "--recursive" || behind[0].text == "--quiet" || behind[0].text == "-q") {
				behind = behind[1:]
			}
			if s, ok := expandedText(behind); ok {
				if len(behind) > 1 { // its words go to a shell as they are
					w.run(&call{args: behind, st: c.st, wrapped: true})
				}
				runs(plainArg(s))
			} else {
				w.opaque("git submodule foreach runs what cannot be read off the command")
			}
			return
		}
	case "bisect":
		if len(words) > 1 && words[0].text == "run" {
			entry.NoGrant = true
			w.run(&call{args: behindWord(rest, "run"), st: c.st, wrapped: true})
			return
		}
	case "secrets":
		w.hookManager(append([]arg{plainArg("git-secrets")}, rest...), entry, c.st)
		return
	case "config":
		w.gitConfig(rest, words, c, entry)
		return
	case "remote":
		if len(words) > 0 && words[0].text != "show" && words[0].text != "get-url" && words[0].text != "-v" {
			w.protectedFile(".git/config", c.st)
		}
		return
	case "clone", "init":
		// A repository brings hooks only through templates; where it goes is what matters.
		for i, a := range words {
			if sub == "clone" && i == 0 && !strings.HasPrefix(a.text, "file://") && (strings.Contains(a.text, "://") || strings.Contains(a.text, "@")) {
				continue
			}
			w.recordArg(plainOr(a, "file://"), Write, c.st)
		}
		for _, a := range rest {
			if strings.HasPrefix(a.text, "--templ") || strings.HasPrefix(a.text, "--conf") || strings.HasPrefix(a.text, "-c") || strings.HasPrefix(a.text, "-u") {
				w.opaque("git " + sub + " " + a.text + " may bring programs along")
			}
		}
		return
	case "worktree":
		if len(words) > 1 {
			w.recordArg(words[1], Write, c.st)
			for _, a := range words[2:] { // -b name path, move from to
				w.genericArg(a, Write, c.st)
			}
		}
		return
	case "lfs", "annex", "flow", "maintenance":
		if len(words) > 0 && (words[0].text == "install" || words[0].text == "init" || words[0].text == "start" || words[0].text == "register") {
			if sub == "lfs" || sub == "maintenance" {
				w.recordArg(plainArg(w.req.Home+"/.gitconfig"), Write, c.st)
			}
			if sub == "lfs" {
				w.protectedFile(".git/hooks", c.st)
			} else {
				w.protectedFile(".git/config", c.st)
			}
		}
		return
	case "commit", "tag", "notes", "stash", "merge", "log", "shortlog", "branch", "checkout", "switch", "fetch", "pull", "push", "rebase", "cherry-pick", "reset", "revert", "describe", "rev-parse", "rev-list", "show-ref", "for-each-ref", "ls-remote", "reflog", "name-rev", "merge-base", "cat-file", "symbolic-ref":
		for i, a := range rest {
			if (a.text == "-F" || a.text == "--file" || a.text == "-t" && sub == "commit") && (sub == "commit" || sub == "tag" || sub == "notes" || sub == "merge") {
				w.recordArg(next(i), Read, c.st)
			}
			if sub == "fetch" || sub == "pull" || sub == "push" {
				if strings.HasPrefix(a.text, "/") || strings.HasPrefix(a.text, "../") || strings.HasPrefix(a.text, "~") || strings.HasPrefix(a.text, "file://") {
					w.recordArg(plainArg(strings.TrimPrefix(a.text, "file://")), Write, c.st)
				}
			}
		}
		return
	}
	// add, mv, rm, diff, show, apply, am, blame, restore, grep …: words may be paths, also unknown ones: git itself
	// refuses paths outside its worktree, but for diff --no-index, apply, am and hash-object.
	free := sub == "diff" || sub == "apply" || sub == "am" || sub == "hash-object" || sub == "grep"
	skip := sub == "grep"
	access := Read
	if gitWrites[sub] {
		access = Write
	}
	for i, a := range rest {
		if sub == "grep" && (a.text == "-e" || a.text == "-f") {
			skip = false
		}
		if sub == "grep" && i > 0 && rest[i-1].text == "-f" {
			w.recordArg(a, Read, c.st)
			continue
		}
		if i > 0 && sub != "blame" && (rest[i-1].text == "-e" || rest[i-1].text == "-m" || rest[i-1].text == "-S" || rest[i-1].text == "-G" || rest[i-1].text == "--author" || rest[i-1].text == "--format" || rest[i-1].text == "--grep") {
			continue
		}
		if strings.HasPrefix(a.text, "-") {
			continue
		}
		if skip {
			skip = false
			continue
		}
		if !a.known() && !free {
			continue
		}
		w.genericArg(a, access, c.st)
	}
}

// gitText are the long options of git whose values are text that may look like a path.
var gitText = map[string]bool{"--format": true, "--pretty": true, "--author": true, "--grep": true, "--message": true, "--since": true, "--until": true, "--date": true, "--exclude": true, "--include": true, "--trailer": true, "--src-prefix": true, "--dst-prefix": true, "--line-prefix": true, "--subject-prefix": true, "--word-diff-regex": true, "--glob": true, "--tags": true, "--ref": true, "--sort": true, "--path": true, "--relative": true}

// gitFileOptions are the options of git whose next word is a file or folder, whatever the command.
var gitFileOptions = map[string]bool{"--separate-git-dir": true, "--pathspec-from-file": true, "--template": true, "--reference": true, "--output-directory": true, "--export-marks": true, "--import-marks": true, "--ignore-revs-file": true, "--directory": true}

// gitWrites are the commands whose bare words name what they write, move or remove.
var gitWrites = map[string]bool{"mv": true, "rm": true, "clean": true, "restore": true, "checkout-index": true, "bundle": true, "bugreport": true, "diagnose": true, "mailinfo": true, "merge-file": true, "receive-pack": true, "pack-objects": true, "submodule": true, "bisect": true, "interpret-trailers": true, "sparse-checkout": true, "update-index": true}

// behindWord are the arguments behind the first that is this word.
func behindWord(args []arg, word string) []arg {
	for i, a := range args {
		if a.text == word {
			return args[i+1:]
		}
	}
	return nil
}

// plainOr is an argument without a prefix, where it has it.
func plainOr(a arg, prefix string) arg {
	if s, ok := strings.CutPrefix(a.text, prefix); ok {
		return plainArg(s)
	}
	return a
}

// gitConfig tells asking from setting: a setting can make git run anything.
func (w *walker) gitConfig(rest, words []arg, c *call, entry *Call) {
	entry.NoGrant = true
	reads := len(words) == 1 && words[0].text != "edit"
	global, file := "", false
	for i, a := range rest {
		switch s := a.text; {
		case s == "--get" || s == "--get-all" || s == "--get-regexp" || s == "--get-urlmatch" || s == "-l" || s == "--list" || s == "--show-origin" || s == "get" || s == "list" || s == "--get-color":
			reads = true
		case s == "--global":
			global = w.req.Home + "/.gitconfig"
		case s == "--system":
			global = "/etc/gitconfig"
		case s == "-f" || s == "--file":
			file = true
			if i+1 < len(rest) {
				w.recordArg(rest[i+1], Write, c.st)
			}
		case strings.HasPrefix(s, "--file="):
			file = true
			w.recordArg(plainArg(s[len("--file="):]), Write, c.st)
		case s == "-e" || s == "--edit" || s == "--unset" || s == "--unset-all" || s == "--add" || s == "--replace-all" || s == "--remove-section" || s == "--rename-section":
			reads = false
			words = append(words, plainArg(""), plainArg(""))
		}
	}
	if reads && len(words) < 3 {
		return
	}
	if global != "" {
		w.recordArg(plainArg(global), Write, c.st)
		return
	}
	if file {
		return
	}
	w.protectedFile(".git/config", c.st)
}

// protectedFile notes a write to a file that a program changes without being given its name.
func (w *walker) protectedFile(name string, st *state) {
	base := w.req.Root
	if base == "" || base == "/" {
		base = w.req.Dir
	}
	w.paths.add(base+"/"+name, Write)
	if w.req.Protected == nil {
		w.opaque("it changes " + name)
	}
}
