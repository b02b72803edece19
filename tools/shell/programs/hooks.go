package programs

import (
	"github.com/pillion-dev/pillion/tools/shell/scan"
	"path"
	"strings"
)

// hookManager notes a write to .git/hooks if args call a program that installs Git hooks, such as husky, by its name or as a package,
// module or path. A hook runs at the user's next commit, outside the sandbox that contained the command, and .git/hooks is a
// protected path. args begin with the program.
func hookManager(args []scan.Word, c *scan.Visit) {
	if len(args) == 0 {
		return
	}
	name := args[0].Text
	// husky@9 is husky with a version. An @ at the start begins a scope: @org/tool.
	if at := strings.LastIndexByte(name, '@'); at > 0 {
		name = name[:at]
	}
	name = strings.ReplaceAll(path.Base(name), "_", "-")
	writesHooks(recordOf(c, strings.TrimSuffix(name, ".js")).Hooks, args[1:], c)
}

// writesHooks notes a write to .git/hooks if args of a program make it install hooks. words is Record.Hooks of the program.
func writesHooks(words string, args []scan.Word, c *scan.Visit) {
	if words == "" {
		return
	}
	// "* a b" in the record: the program installs hooks unless its first word is a or b. A word with an unknown value counts as one
	// that installs hooks.
	but, most := strings.CutPrefix(words, "*")
	found := most && len(args) == 0
	for i, a := range args {
		known := hasField(but, a.Text)
		found = found || !most && known || most && i == 0 && !known || !a.Known()
	}
	if found {
		protectedFile(".git/hooks", c)
		c.NoGrant = true
	}
}

// protectedFile notes a write to a file that a program changes without being given its name. name is relative to the worktree.
func protectedFile(name string, c *scan.Visit) {
	c.TouchPath(c.Worktree()+"/"+name, scan.Write)
	if !c.Guarded() {
		c.Opaque("it changes " + name)
	}
}

// onlyPaths reports that the last kind of the program's words is a path that may be anywhere.
func (s *spec) onlyPaths() bool {
	last := s.words[len(s.words)-1]
	return last != kindText && last != kindTree && last != kindRemote
}

// packageCall analyzes a call of a package's program that a package manager starts, as npx does. Anybody can publish a package under
// the name of a known program, so the name proves nothing: rules see the call, but no grant covers it. The record of that name
// only helps to find the paths among its words. rest begins with the package.
func packageCall(rest []scan.Word, c *scan.Visit) {
	if len(rest) == 0 {
		return
	}
	// A copy, because its first word is replaced below.
	inner := c.With(append([]scan.Word(nil), rest...))
	name, _ := rest[0].One()
	if at := strings.LastIndexByte(name, '@'); at > 0 {
		name = name[:at]
	}
	own := &unknownRecord.spec
	// The record is used only if name is its own key, not one of its other names (clang, gcc-ar), if the program neither only reads
	// (cat) nor starts another one, and if its words are paths. Otherwise all words that look like paths count as written.
	if r := recordOf(c, name); r.name == name && !r.Reads && !r.spec.unknown && r.Runs == "" && r.spec.onlyPaths() {
		inner.Args[0], inner.Name = scan.Plain(name), name
		own = nil
	}
	c.Mention(scan.TextOf(rest), "")
	ordinary(name, inner, own)
	hookManager(rest, c)
}
