package programs

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// A grant, which a person gives by answering "always", covers calls by their first words: git clean *. The person saw the effect of
// one call, and the grant must not cover a stronger one: git clean -fdx deletes what git clean -n only lists. So if an option or a
// word makes a program do more than it does without it, only a grant of the call's exact text covers the call, and its approval
// request offers no broader grant.

// The classes of effects. Their texts appear in approval prompts and in records (Record.Base, the keys of Record.Effect).
const (
	effectDeletes   = "deletes"             // files, history, or something on another machine
	effectForce     = "forces"              // overrides a check or a refusal
	effectElsewhere = "reaches elsewhere"   // another server, repository, registry or account
	effectCode      = "loads other code"    // plugins, configuration that runs code, packages that are named
	effectMore      = "changes more"        // the same in more places: recursive, all, global
	effectUnguarded = "lowers a protection" // no verification, insecure, privileged
	effectNone      = "none"                // in a record: the option sounds strong and is harmless
)

// effectClasses are the classes in the order in which Limits lists their options: what cannot be undone comes first.
var effectClasses = []string{effectDeletes, effectForce, effectElsewhere, effectCode, effectMore, effectUnguarded, effectNone}

// strongWords gives the class of a long option by its name or a part of it, for programs with and without a record: both --delete and
// --delete-branch are in the class of "delete". A wrong guess costs a needless approval request; a record can correct it with the
// class "none".
var strongWords = map[string]string{
	"delete": effectDeletes, "remove": effectDeletes, "prune": effectDeletes, "purge": effectDeletes, "hard": effectDeletes,
	"clean": effectDeletes, "wipe": effectDeletes, "destroy": effectDeletes, "erase": effectDeletes, "discard": effectDeletes,
	"sync": effectDeletes, "drop": effectDeletes, "reset": effectDeletes, "truncate": effectDeletes, "mirror": effectDeletes, "basetemp": effectDeletes,
	"force": effectForce, "overwrite": effectForce, "yes": effectForce, "approve": effectForce, "replace": effectForce, "amend": effectForce,
	"ignore-errors": effectForce,
	"registry":      effectElsewhere, "index": effectElsewhere, "url": effectElsewhere, "host": effectElsewhere, "hostname": effectElsewhere,
	"server": effectElsewhere, "remote": effectElsewhere, "repo": effectElsewhere, "repository": effectElsewhere, "endpoint": effectElsewhere,
	"proxy": effectElsewhere, "context": effectElsewhere, "kubeconfig": effectElsewhere, "cluster": effectElsewhere, "account": effectElsewhere,
	"profile": effectElsewhere, "find-links": effectElsewhere, "git": effectElsewhere, "source": effectElsewhere, "mirror-url": effectElsewhere,
	"upload": effectElsewhere, "publish": effectElsewhere, "push": effectElsewhere, "tunnel": effectElsewhere, "listen": effectElsewhere,
	"bind": effectElsewhere, "address": effectElsewhere,
	"config": effectCode, "configuration": effectCode, "configfile": effectCode, "rcfile": effectCode, "settings": effectCode,
	"plugin": effectCode, "plugins": effectCode, "require": effectCode, "import": effectCode, "loader": effectCode, "load": effectCode,
	"preload": effectCode, "exec": effectCode, "eval": effectCode, "script": effectCode, "shell": effectCode, "hook": effectCode,
	"hooks": effectCode, "init": effectCode, "override": effectCode, "define": effectCode, "transform": effectCode, "runner": effectCode,
	"resolver": effectCode, "reporter": effectCode, "reporters": effectCode, "parser": effectCode, "preset": effectCode, "setup": effectCode,
	"rulesdir": effectCode, "toolchain": effectCode, "wrapper": effectCode, "executable": effectCode, "interpreter": effectCode,
	"overlay": effectCode, "modfile": effectCode, "template": effectCode, "rootdir": effectCode, "confcutdir": effectCode, "project": effectCode,
	"environment": effectCode, "formatter": effectCode, "extension": effectCode, "extensions": effectCode, "middleware": effectCode,
	"command": effectCode, "cmd": effectCode, "program": effectCode, "linker": effectCode, "compiler": effectCode, "opt": effectCode,
	"set": effectCode, "prefix": effectMore, "root": effectMore, "target-dir": effectMore,
	"recursive": effectMore, "all": effectMore, "global": effectMore, "system": effectMore, "user": effectMore, "fix": effectMore,
	"write": effectMore, "in-place": effectMore, "inplace": effectMore,
	"insecure": effectUnguarded, "unsafe": effectUnguarded, "verify": effectUnguarded, "privileged": effectUnguarded, "allow": effectUnguarded,
	"trust": effectUnguarded, "trusted": effectUnguarded, "token": effectUnguarded, "password": effectUnguarded, "bypass": effectUnguarded,
	"skip": effectUnguarded, "sudo": effectUnguarded, "dangerously": effectUnguarded, "break": effectUnguarded, "admin": effectUnguarded,
}

// elsewhere matches words that begin with an address: a URL, user@host:path, or a scheme without "//", as package managers have
// them: github:owner/name.
var elsewhere = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://|^[A-Za-z0-9_.-]+@[A-Za-z0-9_.-]+:|^(git|ssh|github|gitlab|bitbucket|file|npm):`)
})

// stronger returns the first word of a call that makes the program do more than it does without the word, and the class of that
// effect. Both are empty if there is no such word. r is the record of the subcommand, args are the words after its name.
// The lists of the record go before guesses by strongOption, because only a record knows what a letter means. A word that is in
// two lists gets the class that comes first in the alphabet, so that each analysis of a call gives the same class.
func stronger(r *Record, args []scan.Word) (word, class string) {
	for _, a := range args {
		s := a.Text
		v, exact := a.One()
		if exact {
			s = v
		}
		for _, class := range slices.Sorted(maps.Keys(r.Effect)) {
			if class != effectNone && strongIn(s, r.Effect[class]) {
				return s, class
			}
		}
		if s == "--" {
			continue
		}
		if r.WritesWith != nil && strongIn(s, *r.WritesWith) {
			return s, effectMore // without this option it only reads
		}
		switch {
		case !exact && (r.Base == effectDeletes || r.Base == effectMore):
			return s, effectMore // rm *: the next time it may be other files
		case len(s) > 1 && s[0] == '-':
			if class := strongOption(r, s); class != "" {
				return s, class
			}
		case elsewhere().MatchString(s) && !strings.ContainsAny(s, " \n"):
			return s, effectElsewhere
		}
	}
	return "", ""
}

// strongIn reports that a word s is in a list of a record. Some entries stand for many words: "NAME=" for assignments, "+" and ":"
// for words with this first character, "@" for words that contain it (name@v1), "*" for any word that is not an option.
// Options are compared by optionIn, so abbreviations and letters of a cluster match too.
func strongIn(s, list string) bool {
	for f := range strings.FieldsSeq(list) {
		switch {
		case f == "*":
			if s == "" || s[0] != '-' {
				return true
			}
		case f == "NAME=":
			if i := strings.IndexByte(s, '='); i > 0 && s[0] != '-' && !strings.ContainsAny(s[:i], "/ ") {
				return true
			}
		case f == "+" || f == ":":
			if strings.HasPrefix(s, f) {
				return true
			}
		case f == "@":
			if s != "" && s[0] != '-' && strings.Contains(s, "@") {
				return true
			}
		case strings.HasPrefix(f, "-"):
			if len(s) > 1 && s[0] == '-' && optionIn(s, f) {
				return true
			}
		case s == f:
			return true
		}
	}
	return false
}

// camel matches the parts of a name in camel case: global and Setup in globalSetup.
var camel = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[A-Z]?[a-z0-9]+`) })

// strongOption guesses the class of an option from its name; empty if nothing in it sounds strong.
func strongOption(r *Record, s string) string {
	key, _, _ := strings.Cut(s, "=")
	if hasField(r.Effect[effectNone], key) {
		return ""
	}
	name := strings.ToLower(strings.TrimLeft(key, "-"))
	if !strings.HasPrefix(key, "--") && r.Style == "" && r.known {
		return "" // letters: the record lists the strong ones, so the others are harmless
	}
	if class := strongWords[name]; class != "" {
		return class
	}
	parts := strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '_' || r == '.' })
	// --no-delete does less, but --no-verify skips the checks of Git hooks.
	if len(parts) > 1 && parts[0] == "no" && parts[1] != "verify" {
		return ""
	}
	// JavaScript tools spell options in camel case: --globalSetup, --testRunner.
	for _, word := range camel().FindAllString(strings.TrimLeft(key, "-"), -1) {
		parts = append(parts, strings.ToLower(word))
	}
	for _, part := range parts {
		if class := strongWords[part]; class != "" {
			return class
		}
		// Plurals count as well: --plugins.
		if class := strongWords[strings.TrimSuffix(part, "s")]; class != "" && len(part) > 4 {
			return class
		}
	}
	return ""
}

// remember sets Always, Exact and Effect of a call: the pattern of the grant that "always" gives, whether only a grant of the exact
// text covers the call, and why. If Always stays empty, "always" is not offered. r is the program's record, args are the words
// after the program.
func remember(c *scan.Visit, r *Record, args []scan.Word) {
	// If the record does not list the subcommand, the fields of the program's own record apply.
	sub, used := r, 0
	var words []string
	for _, a := range args {
		s, ok := a.One()
		if !ok || len(words) == 2 || strings.HasPrefix(s, "-") {
			break
		}
		words = append(words, s)
	}
	if sub, used = r.sub(words); used == 0 {
		sub = r
	}
	if sub.Always == never || sub.Always == none {
		c.NoGrant = c.NoGrant || sub.Always == none
		return
	}
	c.Always = alwaysOf(c.Text, c.Args, c.Name, r)
	word, class := stronger(sub, args[used:])
	// The program's own record lists the strong options that all its subcommands share. The record of a subcommand can mark one of
	// them as harmless (effectNone).
	if class == "" && used > 0 {
		if word, class = stronger(&Record{Effect: r.Effect, Style: r.Style, known: r.known}, args[used:]); class != "" &&
			hasField(sub.Effect[effectNone], word) {
			class = ""
		}
	}
	if class == "" {
		c.Always = withTame(c.Always, c.Text, sub, args[used:])
		return
	}
	c.Exact, c.Effect = true, class+": "+word
	// A pattern would cover calls with other words, and the person has seen only this call.
	if strings.HasSuffix(c.Always, " *") {
		c.Always = exactText(c.Text)
	}
}

// tameWords mark the long options of a dry run, with which a program only says what it would do. Each is a whole name or a part of one
// between dashes: --dry-run, --check, --just-print.
var tameWords = []string{"dry", "check", "simulate", "noop", "preview", "whatif", "no-act", "just-print"}

// withTame keeps the option of a dry run in the pattern of a grant: black --check * instead of black *. Otherwise an "always" given to
// a dry run would cover the run that writes. If the option does not directly follow the prefix of the pattern, the pattern becomes
// the exact text of the call.
func withTame(always, text string, r *Record, args []scan.Word) string {
	prefix, ok := strings.CutSuffix(always, " *")
	if !ok {
		return always
	}
	for _, a := range args {
		s, _ := a.One()
		if s == "--" {
			break
		}
		if !tame(r, s) {
			continue
		}
		if rest, ok := strings.CutPrefix(text, prefix+" "+s); ok && (rest == "" || rest[0] == ' ') {
			return prefix + " " + s + " *"
		}
		return exactText(text)
	}
	return always
}

// tame reports that an option makes the program do less: it is in ReadsWith of the record, or its name has one of tameWords and
// does not begin with --no-.
func tame(r *Record, option string) bool {
	if r.ReadsWith != "" && strings.HasPrefix(option, "-") && strongIn(option, r.ReadsWith) {
		return true
	}
	key, _, _ := strings.Cut(option, "=")
	name, ok := strings.CutPrefix(key, "--")
	if !ok || strings.HasPrefix(name, "no-") {
		return false
	}
	parts := append(strings.Split(name, "-"), name)
	return slices.ContainsFunc(tameWords, func(w string) bool { return slices.Contains(parts, w) })
}

// exactText returns a pattern that matches only this text, which is the text itself. It is empty if the text contains a character that
// patterns cannot quote: *, ?, $, a backquote, a backslash, a line end, or "~" at the start.
func exactText(text string) string {
	if strings.ContainsAny(text, "*?$`\\\n") || strings.HasPrefix(text, "~") {
		return ""
	}
	return text
}

// Limits lists options that a grant for a call would not cover, such as "-f -x", for the approval prompt that offers "always". It is
// empty if the record lists none. program is a name without its folder, words are those after it.
func (s *Set) Limits(program string, words []string) string {
	r := s.record(program)
	if sub, used := r.sub(words); used > 0 {
		r = sub
	}
	var list []string
	for _, class := range effectClasses {
		if class == effectNone {
			continue
		}
		for f := range strings.FieldsSeq(r.Effect[class]) {
			if strings.HasPrefix(f, "-") && !slices.Contains(list, f) {
				list = append(list, f)
			}
		}
	}
	// how many options fit the line of the approval prompt
	const shown = 4
	if len(list) > shown {
		list = append(list[:shown], "…")
	}
	return strings.Join(list, " ")
}

// class returns the class of a call: that of its first strong word, if asks holds for it, else Base of the subcommand or the program, else
// what a verb among its first words means. Unlike stronger it describes the whole call, not only what a word adds, so it may return the
// class of a call without options.
func class(r *Record, args []scan.Word) string {
	sub, used := r, 0
	var words []string
	for _, a := range args {
		s, ok := a.One()
		if s == "--" {
			break // what follows is for the program that it runs
		}
		if ok && !strings.HasPrefix(s, "-") && len(words) < 2 {
			words = append(words, s)
		}
	}
	if sub, used = r.sub(words); used == 0 {
		sub = r
	}
	if _, class := stronger(sub, args); asks(class) {
		return class
	}
	if sub.Base != "" {
		return sub.Base
	}
	// Behind a subcommand that a record knows there are files and names, unless a task or another subcommand follows: npm run, git lfs.
	if used == 0 || sub.Always == "3" {
		if class := verbClass(r, words[used:]); class != "" {
			return class
		}
	}
	return r.Base
}

// strongVerbs gives the class of a subcommand, a task or a script by its name or a part of it: make deploy, rake db:drop, fly deploy. A
// record says more, but nobody has written one for each program and each project's tasks. A wrong guess costs a needless question.
var strongVerbs = map[string]string{
	"delete": effectDeletes, "rm": effectDeletes, "drop": effectDeletes, "destroy": effectDeletes, "purge": effectDeletes, "prune": effectDeletes, "wipe": effectDeletes,
	"erase": effectDeletes, "flush": effectDeletes, "flushall": effectDeletes, "flushdb": effectDeletes, "reset": effectDeletes, "uninstall": effectDeletes,
	"downgrade": effectDeletes, "rollback": effectDeletes, "teardown": effectDeletes, "truncate": effectDeletes, "unlink": effectDeletes, "nuke": effectDeletes,
	"push": effectElsewhere, "publish": effectElsewhere, "unpublish": effectElsewhere, "deploy": effectElsewhere, "undeploy": effectElsewhere, "upload": effectElsewhere,
	"release": effectElsewhere, "yank": effectElsewhere, "promote": effectElsewhere, "dcommit": effectElsewhere, "login": effectElsewhere, "logout": effectElsewhere,
	"dlx": effectElsewhere, "clone": effectElsewhere,
}

// verbClass returns the class of the strongest verb among the first words of a program that takes a subcommand or the name of a task there;
// for others these words are files and texts.
func verbClass(r *Record, words []string) (class string) {
	if len(r.Sub) == 0 && !r.spec.unknown && r.Code == "" && r.Always != "2" && r.Always != "3" {
		return ""
	}
	for _, word := range words {
		if strings.ContainsAny(word, "/=. ") {
			continue // a path or a text
		}
		for _, part := range strings.FieldsFunc(strings.ToLower(word), func(c rune) bool { return c == ':' || c == '-' || c == '_' }) {
			if found := strongVerbs[part]; found != "" {
				class = strongest(class, found)
			}
		}
	}
	return class
}

// asks reports the classes that need approval even if the command runs in the sandbox: effects that cannot be undone, and effects on
// other people or machines. In the sandbox, the other classes can change the project only.
func asks(class string) bool {
	return class == effectDeletes || class == effectForce || class == effectElsewhere || class == effectUnguarded
}

// Contained reports that the effects of a command, if it runs in the sandbox, stay in the project and can be undone. If not, why is the
// reason, for people. With permission "auto" such a command runs in the sandbox without approval. What a sandbox bounds (Analysis.Bounded)
// is as good as a script of the project here: only the sandbox knows what it does, and only a sandbox that hides keys may run it.
func Contained(a *scan.Analysis) (held bool, why string) {
	switch {
	case a.Refused || a.Opaque && !a.Bounded:
		return false, a.Why
	case len(a.Protected) > 0:
		return false, "it touches " + a.Protected[0].Path
	case len(a.External) > 0:
		return false, "it " + string(a.External[0].Access) + "s " + a.External[0].Path + ", outside the project"
	}
	for _, c := range a.Calls {
		if asks(c.Class) {
			return false, c.Text + " " + c.Class
		}
	}
	return true, ""
}

// strongest returns a if it needs approval (asks) or b is empty, else b.
func strongest(a, b string) string {
	if asks(a) || b == "" {
		return a
	}
	return b
}

// isInstalled reports that the first word after the options is a program in node_modules/.bin of each folder in which the call may
// run: npx tsc then starts it and downloads nothing. A word with a slash or an "@" names a folder, a scope or a version, which may
// be downloaded.
func isInstalled(c *scan.Visit) bool {
	dirs, placed := c.Dirs()
	for _, a := range c.Args[1:] {
		s, ok := a.One()
		if !ok || !placed {
			return false
		}
		if strings.HasPrefix(s, "-") {
			continue
		}
		for _, dir := range dirs {
			if !isThere(c, c.Real(dir)+"/node_modules/.bin/"+s) {
				return false
			}
		}
		return !strings.ContainsAny(s, "/@")
	}
	return false
}

// ReachesElsewhere reports that a call of the command has the class effectElsewhere: it uses another server, repository or registry.
// Contained is false for such a command, so it runs only if a person, a grant or a permission rule allows it.
func ReachesElsewhere(a *scan.Analysis) bool {
	return slices.ContainsFunc(a.Calls, func(c scan.Call) bool { return c.Class == effectElsewhere })
}

// alwaysOf returns the pattern of the grant that "always" gives for a call: its first words and " *". The record says how many words:
// "git push *" is useful, "git *" would cover everything. If one of these words is an option, a path or an assignment, or has a
// wildcard, the pattern is the exact text of the call, since "git -c … *" would allow anything. It is empty if the text cannot be
// a pattern (see exactText).
func alwaysOf(text string, args []scan.Word, name string, r *Record) string {
	words := []string{name}
	for _, a := range args[1:] {
		s, ok := a.One()
		if !ok || len(words) >= 3 {
			break
		}
		words = append(words, s)
	}
	// Without a number in the record the prefix is the program's name.
	n := 1
	if r.Always != "" {
		n, _ = strconv.Atoi(r.Always)
		if sub, used := r.sub(words[1:]); used > 0 && sub.Always != "" {
			n, _ = strconv.Atoi(sub.Always)
		}
	}
	// The toolchain before the subcommand takes one of the words.
	if len(words) > 1 && name == "cargo" && strings.HasPrefix(words[1], "+") {
		n = 3 // cargo +nightly build
	}
	exact := exactText(text)
	first, _, _ := strings.Cut(text, " ")
	if len(args) < n || len(words) < n && len(args) > len(words) {
		return exact
	}
	// first is the program as rules see it: with its folder, unless that is a system folder such as /usr/bin.
	prefix := []string{first}
	for _, word := range words[1:min(n, len(words))] {
		if strings.HasPrefix(word, "-") || strings.ContainsAny(word, " *?$`\\/=~\n") {
			return exact
		}
		prefix = append(prefix, word)
	}
	if strings.ContainsAny(first, "*?") {
		return ""
	}
	return strings.Join(prefix, " ") + " *"
}
