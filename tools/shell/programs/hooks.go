package programs

import (
	"github.com/pillion-dev/pillion/tools/shell/scan"
	"path"
	"strings"
)

// hookManager looks at a program that may write git's hooks, however it is started: by its name, its package's, its
// module's or its address.
// A hook runs at the person's next commit, outside of everything that contained the command. So installing one asks for the
// protected folder .git/hooks, however the tool was started.
func hookManager(args []scan.Word, c *scan.Visit) {
	if len(args) == 0 {
		return
	}
	name := args[0].Text
	// husky@9 is husky; a leading @ is a scope: @org/tool.
	if at := strings.LastIndexByte(name, '@'); at > 0 {
		name = name[:at]
	}
	name = strings.ReplaceAll(path.Base(name), "_", "-")
	writesHooks(recordOf(c, strings.TrimSuffix(name, ".js")).Hooks, args[1:], c)
}

// writesHooks notes the hooks that a hook manager writes with one of these words among args.
func writesHooks(words string, args []scan.Word, c *scan.Visit) {
	if words == "" {
		return
	}
	// "* a b" in the record: every first word installs, except a and b. Without a word at all such a tool installs too.
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

// protectedFile notes a write to a file that a program changes without being given its name.
func protectedFile(name string, c *scan.Visit) {
	c.TouchPath(c.Worktree()+"/"+name, scan.Write)
	if !c.Guarded() {
		c.Opaque("it changes " + name)
	}
}

// onlyPaths reports that all words may be paths of any place.
func (s *spec) onlyPaths() bool {
	last := s.words[len(s.words)-1]
	return last != kindText && last != kindTree && last != kindRemote
}

// packageCall looks at the program of a package that a package manager starts: which one it is cannot be known for sure,
// so its name alone is listed, but what is known of tools of that name counts.
// The name alone proves nothing: anybody may publish a package under the name of a program.
func packageCall(rest []scan.Word, c *scan.Visit) {
	if len(rest) == 0 {
		return
	}
	// A copy of the words, because the first one is replaced below.
	inner := c.With(append([]scan.Word(nil), rest...))
	name, _ := rest[0].One()
	if at := strings.LastIndexByte(name, '@'); at > 0 {
		name = name[:at]
	}
	own := &unknownRecord.spec
	// A package may have any name. Only a name under which a record is written is trusted to mean that program, and only
	// where all its words are paths: another name (clang, gcc-ar) or a reader's name (cat) may be a different program.
	if r := recordOf(c, name); r.name == name && !r.Reads && !r.spec.unknown && r.Runs == "" && r.spec.onlyPaths() {
		inner.Args[0], inner.Name = scan.Plain(name), name
		own = nil
	}
	c.Mention(scan.TextOf(rest), "")
	ordinary(name, inner, own)
	hookManager(rest, c)
}
