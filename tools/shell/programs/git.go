package programs

import (
	"strings"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// git analyzes a call of git: the folder it works in, options that start other programs, and files that it writes. It handles the
// options before the subcommand first, because they may choose another repository or other settings, which can name programs that
// Git starts (git-config(1): core.fsmonitor, core.sshCommand, filters).
func git(c *scan.Visit) {
	args := c.Args[1:]
	// -C applies to git only; the shell stays in its folder.
	moved := c.Fork()
	i := 0
	for ; i < len(args) && strings.HasPrefix(args[i].Text, "-"); i++ {
		s, ok := args[i].One()
		if !ok {
			c.Opaque("an option of git cannot be read off the command")
			continue
		}
		// The value follows "=" or is the next word.
		key, val, has := strings.Cut(s, "=")
		value := scan.Plain(val)
		// take makes the next word the value if there is no "=".
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
		// Without a value, --exec-path prints a folder.
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
	// "always" is not offered with options before the subcommand: the pattern would begin with them, and "git -c … *" allows anything.
	if i == 0 {
		if at.always() == never {
			c.NoGrant = true
		} else {
			remember(c, recordOf(c, "git"), args)
		}
	}
	gitCommand(at, moved.With(append([]scan.Word{c.Args[0]}, args[i:]...)))
	if c.ReadOnly = gitReads(at, args[i].Text, args[i+1:], moved); !c.ReadOnly {
		gitShows(args[i].Text, args[i+1:], moved)
	}
	// A Git command can work on the whole worktree, not only on the paths it is given.
	moved.RunsHere()
}

// gitCommand notes what the records say about a Git command, and which files git config changes. c.Args[1] is the command's name.
func gitCommand(at reached, c *scan.Visit) {
	at.judge("git", c)
	switch {
	case c.Args[1].Text == "config":
		gitConfig(c.Args[2:], c)
	case at.last().Runs != "":
		at.nested("git", c)
	default:
		applySpec(c.With(at.args(c.Args)), at.spec())
	}
}

// gitWords returns the arguments that are not options. All arguments after "--" are words.
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

// harmlessSetting reports a common value of git -c that names no program. Any other value makes the command opaque, since
// git -c core.sshCommand=… fetch starts the program it names.
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

// shortFor reports that s is the long option, or an abbreviation of it.
func shortFor(s, long string) bool { return len(s) > 2 && s[:2] == "--" && strings.HasPrefix(long, s) }

// behindWord returns the arguments after the first one that is word; nil if there is none.
func behindWord(args []scan.Word, word string) []scan.Word {
	for i, a := range args {
		if a.Text == word {
			return args[i+1:]
		}
	}
	return nil
}

// settingsOptions are the options of git config with which it does not change settings, and settingsValues those that take a value. Any
// other option counts as a change, in every abbreviation that Git takes.
const (
	settingsReads   = "--get --get-all --get-regexp --get-urlmatch --get-color --get-colorbool -l --list"
	settingsOptions = "--global --system --local --worktree --bool --int --bool-or-int --bool-or-str --path --expiry-date --no-type -z --null " +
		"--name-only --show-origin --show-scope --show-names --includes --no-includes --all --regexp --fixed-value"
	settingsValues = "-f --file --blob -t --type --default --value --url"
)

// gitConfig notes the settings file that a call of git config may write. A changed setting can make later Git commands start a
// program: core.pager, core.sshCommand, alias.x = !cmd. args are those after "config". Git ends its options at the first word, so in
// git config core.pager --get the last word is the new value.
func gitConfig(args []scan.Word, c *scan.Visit) {
	c.NoGrant = true
	reads, changes := false, false
	global, file := "", false
	i, words := 0, 0
	for ; i < len(args); i++ {
		s, ok := args[i].One()
		if !ok || s == "" || s[0] != '-' {
			// A subcommand, which has options of its own, or the name of a setting.
			if words++; words == 1 && (s == "get" || s == "list") {
				reads = true
				continue
			}
			break
		}
		key, _, has := strings.Cut(s, "=")
		switch {
		case hasField(settingsReads, key):
			reads = true
		case key == "--global":
			global = c.Home() + "/.gitconfig"
		case key == "--system":
			global = "/etc/gitconfig"
		case hasField(settingsValues, key):
			value := args[i].Cut("=")
			if !has {
				i++
				value = args[min(i, len(args)-1)]
			}
			// Any file can be named, also one that is not a settings file. It counts as written even if the call only reads.
			if key == "-f" || key == "--file" {
				file = true
				c.Touch(value, scan.Write)
			}
		case !hasField(settingsOptions, key):
			changes = true
		}
	}
	// Without an option that says so, the name of a setting alone prints it.
	if !changes && (reads || i >= len(args)-1 && !(i < len(args) && args[i].Text == "edit")) {
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
