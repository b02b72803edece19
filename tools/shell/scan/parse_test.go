package scan

import (
	"strings"
	"testing"
	"time"
)

// nestings are constructs that hold one of their own kind: what opens one, what closes it, and what stands innermost.
var nestings = []struct{ name, open, inner, shut string }{
	{"if", "if a; then ", "b", "; fi"},
	{"condition", "if ", "b", "; then a; fi"},
	{"elif", "if a; then b; el", "if a; then b; fi", ""},
	{"else", "if a; then b; else ", "b", "; fi"},
	{"while", "while a; do ", "b", "; done"},
	{"until", "until ", "b", "; do a; done"},
	{"for", "for i in x; do ", "b", "; done"},
	{"case", "case a in a) ", "b", ";; esac"},
	{"block", "{ ", "b", "; }"},
	{"subshell", "( ", "b", ")"},
	{"function", "f() { ", "b", "; }"},
	{"function without block", "f()", "{ b; }", ""},
	{"time", "time ", "b", ""},
	{"coproc", "coproc { ", "b", "; }"},
	{"substitution", "echo \"$(", "b", ")\""},
	{"process", "cat <(", "b", ")"},
	{"default", "echo ${x:-", "b", "}"},
	{"arithmetic", "$((1 + ", "2", "))"},
	{"minus", "", "", ""}, // filled in below: its level is one character within one expansion
	{"mixed", "while a; do if b; then x=$(", "c", "); fi; done"},
}

// nested is n levels of a construct. The elif is one statement that grows; the minus signs stand in one arithmetic.
func nested(name, open, inner, shut string, n int) string {
	switch name {
	case "arithmetic":
		return "echo " + strings.Repeat(open, n) + inner + strings.Repeat(shut, n)
	case "minus":
		return "echo $((" + strings.Repeat("- ", n) + "1))"
	case "elif":
		return "if a; then b; " + strings.Repeat("elif a; then b; ", n) + "fi"
	}
	return strings.Repeat(open, n) + inner + strings.Repeat(shut, n)
}

// Whatever nests, by brackets or by keywords, is parsed to some depth and refused beyond it, before anything recurses into it.
func TestDeepNestingIsRefused(t *testing.T) {
	for _, c := range nestings {
		if _, err := parse(nested(c.name, c.open, c.inner, c.shut, 20), time.Minute); err != nil {
			t.Errorf("%s, 20 levels: %v", c.name, err)
		}
		for _, n := range []int{maxNesting + 1, 3 * maxNesting, 3000} {
			command := nested(c.name, c.open, c.inner, c.shut, n)
			if len(command) > MaxCommand {
				continue
			}
			if _, err := parse(command, time.Minute); err != errDeep { //nolint:errorlint // the very value, not one around it
				t.Errorf("%s, %d levels: %v", c.name, n, err)
			}
			if a := Analyze(Request{Patience: time.Minute, Command: command, Dir: "/", Root: "/"}, silent{}); !a.Opaque || a.ReadOnly {
				t.Errorf("%s, %d levels: not opaque", c.name, n)
			}
		}
	}
}

// Unclosed keywords fill the parser's stack before it learns that the text is no command.
func TestTheParserStopsWhenItsStackIsDeep(t *testing.T) {
	for _, c := range nestings {
		if c.open == "" || c.name == "elif" {
			continue
		}
		if _, err := parse(strings.Repeat(c.open, MaxCommand/len(c.open)), time.Minute); err == nil {
			t.Errorf("%s without an end was parsed", c.name)
		}
	}
	// Prose and the code of other languages hold the same words; a text that is only data nests nothing.
	prose := strings.Repeat("if you wait for it, do { so while\n", 1000)
	for _, command := range []string{"cat <<'E'\n" + prose + "E\n", "echo '" + prose + "'"} {
		command = strings.ReplaceAll(command, "{", "") // brackets are counted without regard to quotes
		if _, err := parse(command, time.Minute); err != nil {
			t.Errorf("data is refused: %v", err)
		}
	}
	// A list is long, not deep.
	for _, sep := range []string{"; ", " && ", " || ", " | ", "\n"} {
		if _, err := parse(strings.Repeat("a"+sep, 2000)+"b", time.Minute); err != nil {
			t.Errorf("2,000 calls joined by %q: %v", sep, err)
		}
	}
}

// silent is a set of programs that does nothing with any call.
type silent struct{}

func (silent) Call(*Visit)                {}
func (silent) Variable(Assignment) string { return "" }
func (silent) PlainAnswer([]string) bool  { return false }

var _ Programs = silent{}
