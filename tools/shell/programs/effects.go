package programs

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// A grant, which a person gives by answering "always", covers calls by their first words: git clean *. It was given for what
// one call did, and must not cover more: git clean -fdx deletes what git clean -n listed. So a call whose words have a stronger effect
// than the program has without them is covered by a grant of exactly its text only, and asking for it offers no more.

// The classes of effects, in words that a person reads.
// The texts are in approval prompts and in records (Record.Base, the keys of Record.Effect).
const (
	effectDeletes   = "deletes"             // files, history, or what runs elsewhere
	effectForce     = "forces"              // overrides a check or a refusal
	effectElsewhere = "reaches elsewhere"   // another server, repository, registry or account
	effectCode      = "loads other code"    // plugins, configuration that runs code, packages that are named
	effectMore      = "changes more"        // the same in more places: recursive, all, global
	effectUnguarded = "lowers a protection" // no verification, insecure, privileged
	effectNone      = "none"                // in a record: the option only looks strong
)

// Their order is the one in which Limits lists options: what cannot be taken back comes first.
var effectClasses = []string{effectDeletes, effectForce, effectElsewhere, effectCode, effectMore, effectUnguarded, effectNone}

// strongWords are the parts of a long option's name that tell its class, for every program, known or not. What they
// say wrongly costs a question; records correct it with the class "none".
// A part of a compound name counts like the whole: --delete-branch is "delete".
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

// elsewhere finds addresses among words: https://…, git@host:path, host:path after a user's name.
// The schemes without "//" are the short addresses of package managers: github:owner/name.
var elsewhere = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://|^[A-Za-z0-9_.-]+@[A-Za-z0-9_.-]+:|^(git|ssh|github|gitlab|bitbucket|file|npm):`)

// stronger says which word of a call does more than the program does without it, and the class of that; empty when
// none does. r is the record of the subcommand, args are the words after its name.
// The record's own lists come first: they know what a letter means. Of several strong words the first one is named; a
// word that is in two of the lists gets the class that comes first in the alphabet.
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
			return s, effectMore // it only reads without
		}
		switch {
		case !exact && (r.Base == effectDeletes || r.Base == effectMore):
			return s, effectMore // rm *: which files that is changes
		case len(s) > 1 && s[0] == '-':
			if class := strongOption(r, s); class != "" {
				return s, class
			}
		case elsewhere.MatchString(s) && !strings.ContainsAny(s, " \n"):
			return s, effectElsewhere
		}
	}
	return "", ""
}

// strongIn reports a word that is in a list of options and words of a record. "NAME=" stands for assignments, "+" and
// ":" for words that begin so, "@" for words with a version (name@v1), "*" for any word that is not an option.
// Options are compared with optionIn, so abbreviations and clusters count.
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

// camel takes a name in camel case apart: globalSetup is global and Setup.
var camel = regexp.MustCompile(`[A-Z]?[a-z0-9]+`)

// strongOption is the class that an option's name tells.
func strongOption(r *Record, s string) string {
	key, _, _ := strings.Cut(s, "=")
	if hasField(r.Effect[effectNone], key) {
		return ""
	}
	name := strings.ToLower(strings.TrimLeft(key, "-"))
	if len(name) < 3 || !strings.HasPrefix(key, "--") && r.Style == "" && r.known {
		return "" // letters: the record lists those that matter
	}
	if class := strongWords[name]; class != "" {
		return class
	}
	parts := strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '_' || r == '.' })
	// --no-delete does less; --no-verify skips the checks that hooks make.
	if len(parts) > 1 && parts[0] == "no" && parts[1] != "verify" {
		return ""
	}
	// Camel case, as JavaScript's tools spell: --globalSetup, --testRunner.
	for _, word := range camel.FindAllString(strings.TrimLeft(key, "-"), -1) {
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

// remember fills in what "always" remembers of a call, and what else it is not covered by.
// It sets Always, Exact and Effect. An empty Always means that "always" is not offered for the call.
func remember(c *scan.Visit, r *Record, args []scan.Word) {
	// Without a subcommand that the record knows, the program's own fields count.
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
	// The program's own list holds the options that all its subcommands share; a subcommand may declare one of them harmless.
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
	// A pattern would cover calls without the strong word, which the person has not been asked about.
	if strings.HasSuffix(c.Always, " *") {
		c.Always = exactText(c.Text)
	}
}

// tameWords are the parts of a long option's name with which a program says what it would do and does not do it.
// They are parts of names between dashes, or whole names: --dry-run, --check, --just-print.
var tameWords = []string{"dry", "check", "simulate", "noop", "preview", "whatif", "no-act", "just-print"}

// withTame keeps an option that makes a program harmless in the pattern of a grant: black --check * does not cover black. When
// the option does not directly follow the first words, the pattern is the exact text of the call.
// Otherwise an "always" given to a dry run would cover the run that writes.
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

// tame reports an option without which the program would do more.
// The options of ReadsWith count, and for every program those whose name holds one of tameWords.
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

// exactText is a text as a pattern that matches nothing else; empty when it holds wildcards, which patterns cannot quote.
// Nor does a pattern serve for a text with $, a backquote, a backslash, a line end or a leading ~.
func exactText(text string) string {
	if strings.ContainsAny(text, "*?$`\\\n") || strings.HasPrefix(text, "~") {
		return ""
	}
	return text
}

// Limits lists, for the person who is about to answer "always", options that the pattern of the grant will not cover: "-f -x".
// Empty when the record lists none.
// program is a name without its folder; words are those after it.
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
	// A longer list does not fit the line of the approval prompt.
	const shown = 4
	if len(list) > shown {
		list = append(list[:shown], "…")
	}
	return strings.Join(list, " ")
}

// class is what a call does at most, as far as its record says: the class of its strongest word, else the program's own.
// Unlike stronger it falls back on Base, since it answers what a call does, not what its options add.
func class(r *Record, args []scan.Word) string {
	sub, used := r, 0
	var words []string
	for _, a := range args {
		if s, ok := a.One(); ok && !strings.HasPrefix(s, "-") && len(words) < 2 {
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
	return r.Base
}

// asks reports the classes that a person decides about even where the command cannot leave the project: what cannot be
// taken back, and what reaches other people or machines.
// The other classes change the project at most, when the command runs in the sandbox.
func asks(class string) bool {
	return class == effectDeletes || class == effectForce || class == effectElsewhere || class == effectUnguarded
}

// Contained reports that a command's effects stay in the project, when it runs in the sandbox, and can be taken back. why
// is the reason against it, in words.
// It is what permission "auto" decides by: a call that it holds runs in the sandbox without a question.
func Contained(a *scan.Analysis) (held bool, why string) {
	switch {
	case a.Refused || a.Opaque:
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

// strongest is the class that a person decides about, if one of the two is.
func strongest(a, b string) string {
	if asks(a) || b == "" {
		return a
	}
	return b
}

// isInstalled reports a package's program that the project has installed: npx tsc starts it and fetches nothing.
// A word with a slash or an "@" names a folder, a scope or a version, which may be fetched.
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

// ReachesElsewhere reports a command that, by its records, works with another server, repository or registry. Contained
// asks about each, so one that runs was agreed to with that in view.
func ReachesElsewhere(a *scan.Analysis) bool {
	return slices.ContainsFunc(a.Calls, func(c scan.Call) bool { return c.Class == effectElsewhere })
}

// alwaysOf is what "always" remembers of a call: its first words and " *", or the exact text when an option is
// among those words, since git -c … * would allow anything. Empty when no pattern can say it.
// The number of words comes from the record: "git push *" is useful, "git *" would cover everything. A word that holds a path,
// a wildcard or "=" is never a part of the prefix, since the same pattern would then stand for one file only, or for many.
func alwaysOf(text string, args []scan.Word, name string, r *Record) string {
	words := []string{name}
	for _, a := range args[1:] {
		s, ok := a.One()
		if !ok || len(words) >= 3 {
			break
		}
		words = append(words, s)
	}
	// Without a number in the record the program's name alone is kept.
	n := 1
	if r.Always != "" {
		n, _ = strconv.Atoi(r.Always)
		if sub, used := r.sub(words[1:]); used > 0 && sub.Always != "" {
			n, _ = strconv.Atoi(sub.Always)
		}
	}
	// The toolchain before the subcommand takes one of the words.
	if len(words) > 2 && name == "cargo" && strings.HasPrefix(words[1], "+") {
		n = 3 // cargo +nightly build
	}
	// As in exactText: a pattern cannot quote these characters.
	exact := text
	if strings.ContainsAny(exact, "*?$`\\\n") || strings.HasPrefix(exact, "~") {
		exact = ""
	}
	first, _, _ := strings.Cut(text, " ")
	if len(args) < n || len(words) < n && len(args) > len(words) {
		if len(args) < n && exact != "" {
			return exact
		}
		return exact
	}
	// first is the program as the rules see it: with its folder, where it was started by a path of its own.
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
