package affected

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/tools/change"
)

// program matches files that a compiler or an interpreter runs. Of documents, settings and data nobody expects a test.
var program = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\.([cm]?[jt]sx?|vue|svelte|go|py|rs|c|cc|cpp|cxx|h|hh|hpp|hxx|m|mm|java|kt|kts|scala|cs|fs|swift|rb|php|pl|pm|lua|ex|exs|erl|hs|ml|clj|dart|jl|r|zig|nim|sh|bash|zsh|awk|sql|proto)$`)
})

// target finds the target of a makefile that runs its tests, by the names that the GNU coding standards give it ("Standard Targets for
// Users") and the usual one.
var target = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^(test|check)[ \t]*:([^=]|$)`) })

// own is the command with which the project itself runs its tests, for a proposal that changes programs which no runner knows; "" if
// it changes none, or the project names no such command. Plan has no run for them: such a command can do anything, so it is for the
// person to set.
func own(p *Project) string {
	for _, f := range p.changedPaths() {
		if !program().MatchString(f) || known(p, f) {
			continue
		}
		for dir := filepath.Dir(f); ; dir = filepath.Dir(dir) {
			if command := ownIn(p, dir, f); command != "" {
				if dir != p.Root {
					return "cd " + quote(strings.TrimPrefix(rel(p.Root, dir), "./")) + " && " + command
				}
				return command
			}
			if dir == p.Root || dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return ""
}

// known reports whether a runner knows the tests of a file; there may be none.
func known(p *Project, f string) bool {
	has := func(is func(name string) bool) bool {
		return slices.ContainsFunc(p.List, func(f string) bool { return is(filepath.Base(f)) })
	}
	switch filepath.Ext(f) {
	case ".go":
		return has(func(name string) bool { return name == "go.mod" })
	case ".rs":
		return has(func(name string) bool { return name == "Cargo.toml" })
	case ".py":
		return has(pyTestFile().MatchString)
	}
	return scripts().MatchString(f) && slices.ContainsFunc(runners, func(r runner) bool {
		s, ok := r.(scriptTests)
		if ok {
			_, ok = s.home(p, filepath.Dir(f))
		}
		return ok
	})
}

// ownIn is the command that a folder names for the tests of a file; "" for none.
func ownIn(p *Project, dir, f string) string {
	if text, ok := p.Read(filepath.Join(dir, "package.json")); ok && scripts().MatchString(f) {
		var m struct{ Scripts map[string]string }
		// npm init writes a script that prints "no test specified" and fails.
		if json.Unmarshal([]byte(text), &m) == nil && m.Scripts["test"] != "" && !strings.Contains(m.Scripts["test"], "no test specified") {
			return "npm test"
		}
	}
	for _, name := range []string{"GNUmakefile", "makefile", "Makefile"} { // in make's order
		if text, ok := p.Read(filepath.Join(dir, name)); ok {
			if m := target().FindStringSubmatch(text); m != nil {
				return "make " + m[1]
			}
			break
		}
	}
	return ""
}

// Unplanned is the evidence of a proposal whose tests no runner knows: they did not run, and what the person can set. ok is false where
// there is nothing to say.
func Unplanned(p *Project) (c change.Check, ok bool) {
	command := own(p)
	if command == "" {
		return c, false
	}
	setting, err := json.Marshal([]string{command})
	if err != nil {
		return c, false
	}
	return change.Check{Command: "tests", Status: change.EvidenceNotRun, Reason: "which of them are affected is not known here; to run all, set \"verify\": " + string(setting)}, true
}
