package programs

import (
	"github.com/pillion-dev/pillion/tools/shell/scan"
	"path"
	"strings"
)

// hookManagers are the programs that write git's hooks, which git runs from then on, with the words that make them do
// so. "*" says that they do it unless the first word is one of those behind it.
var hookManagers = map[string]string{
	"husky": "* run --help --version -h -v", "husky-run": "*", "simple-git-hooks": "* --help --version", "yorkie": "*", "rusty-hook": "init", "lefthook": "install add uninstall -f --force --reset-hooks-path", "pre-commit": "install uninstall init-templatedir migrate-config", "prek": "install uninstall install-hooks init-templatedir",
	"overcommit": "--install --uninstall -i -u --force --sign", "captainhook": "install uninstall enable disable", "grumphp": "git:init git:deinit", "whisky": "install uninstall update", "cghooks": "add update remove", "hk": "install uninstall", "git-secrets": "--install", "nbstripout": "--install --uninstall", "nbdime": "config-git", "talisman": "--githook install",
	"gptcommit": "install uninstall", "git-hooks": "* list --help --version", "githooks": "* list --help --version", "ghooks": "*", "trunk": "init git-hooks", "opencommit": "hook", "oco": "hook", "aicommits": "hook",
}

// hookManager looks at a program that may write git's hooks, however it is started: by its name, its package's, its
// module's or its address.
func hookManager(args []scan.Word, c *scan.Visit) {
	if len(args) == 0 {
		return
	}
	name := args[0].Text
	if at := strings.LastIndexByte(name, '@'); at > 0 {
		name = name[:at]
	}
	name = strings.ReplaceAll(path.Base(name), "_", "-")
	words, ok := hookManagers[strings.TrimSuffix(name, ".js")]
	if !ok {
		return
	}
	but, most := strings.CutPrefix(words, "*")
	found := most && len(args) < 2
	for i, a := range args[1:] {
		known := hasField(but, a.Text)
		found = found || !most && known || most && i == 0 && !known || !a.Known()
	}
	if found {
		protectedFile(".git/hooks", c)
		c.NoGrant = true
	}
}

// packageCall looks at the program of a package that a package manager starts: which one it is nobody knows for sure,
// so its name alone is listed, but what is known of tools of that name counts.
func packageCall(rest []scan.Word, c *scan.Visit) {
	if len(rest) == 0 {
		return
	}
	inner := c.With(append([]scan.Word(nil), rest...))
	name, _ := rest[0].One()
	if at := strings.LastIndexByte(name, '@'); at > 0 {
		name = name[:at]
	}
	s := generic
	if _, own := harmful[name]; !own && specs[name] != "" && wrappers[name] == "" && !strings.HasSuffix(specs[name], "x*") {
		inner.Args[0] = scan.Plain(name)
		s = specOf(name)
	}
	c.Mention(scan.TextOf(rest), "")
	if !runners(name, inner) {
		pathArgs(inner, s)
	}
	hookManager(rest, c)
}
