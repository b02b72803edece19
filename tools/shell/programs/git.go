package programs

import (
	"strings"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// git looks at git: where it works, which of its options run other programs, and the files it is told to write.
// Options before the subcommand decide which repository counts, so they come first: with another one, its settings may name
// programs that this analysis has not looked at (git-config(1): core.fsmonitor, core.sshCommand, filters).
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
		// Git takes the value after "=" or as the next word.
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
	if _, ok := args[i].One(); !ok {
		c.Opaque("which git command runs cannot be said")
		return
	}
	at := reach(c.With(append([]scan.Word{c.Args[0]}, args[i:]...)), recordOf(c, "git"))
	// An option before the subcommand would have to be in the pattern, and "git -c … *" would allow anything.
	if i == 0 {
		if at.always() == never {
			c.NoGrant = true
		} else {
			remember(c, recordOf(c, "git"), args)
		}
	}
	gitCommand(at, moved.With(append([]scan.Word{c.Args[0]}, args[i:]...)))
	c.ReadOnly = gitReads(at, args[i].Text, args[i+1:], moved)
	// A git command works on the whole worktree, whatever its words name.
	moved.RunsHere()
}

// gitCommand looks at a command of git, whose words begin with its name: what the records say of it, and what git config changes.
func gitCommand(at reached, c *scan.Visit) {
	at.judge("git", c)
	switch {
	case c.Args[1].Text == "config":
		gitConfig(c.Args[2:], gitWords(c.Args[2:]), c)
	case at.last().Runs != "":
		at.nested("git", c)
	default:
		applySpec(c.With(at.args(c.Args)), at.spec())
	}
}

// gitWords are the arguments that are not options; after -- all are words.
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

// harmlessSetting knows the -c settings that people and tools use every day and that name no program. Any other one is opaque:
// git -c core.sshCommand=… fetch runs what it says.
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

// behindWord are the arguments after the first that is this word.
// Nil when the word is not there.
func behindWord(args []scan.Word, word string) []scan.Word {
	for i, a := range args {
		if a.Text == word {
			return args[i+1:]
		}
	}
	return nil
}

// gitConfig tells a call that reads settings from one that changes them: a setting can make git run anything. In doubt it
// counts as a change. core.pager, core.sshCommand, alias.x = !cmd are what a setting can start.
// rest are the arguments after "config", words those of them that are not options.
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
