package config

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/pillion-dev/pillion/tools/skill"
)

// The configuration on docs/extending.md is one.
func TestTheExtendingPagesConfiguration(t *testing.T) {
	page, err := os.ReadFile("../../docs/extending.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)```jsonc pillion.jsonc\n(.*?)```").FindSubmatch(page)
	if m == nil {
		t.Fatal("there is none")
	}
	user := t.TempDir()
	write(t, filepath.Join(user, "pillion.jsonc"), string(m[1]))
	root := t.TempDir()
	c, problems := Load(Sources{Cwd: root, Root: root, UserDir: user, Env: env("DOCS_TOKEN=t", "BRAVE_KEY=k")})
	if len(problems) > 0 {
		t.Error(problems)
	}
	if c.MCP["docs"].Headers["Authorization"] != "Bearer t" || c.WebSearch.Key != "k" || len(c.Plugin) != 1 || len(c.Web.Allow) != 1 {
		t.Errorf("%+v", c)
	}
}

// The agents, commands and skills on docs/extending.md are what it says they are.
func TestTheExtendingPagesMarkdown(t *testing.T) {
	page, err := os.ReadFile("../../docs/extending.md")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for _, m := range regexp.MustCompile("(?s)```markdown ([^\n]*)\n(.*?)\n```").FindAllSubmatch(page, -1) {
		write(t, filepath.Join(root, ".pillion", string(m[1])), string(m[2])+"\n")
	}
	c, problems := Load(Sources{Cwd: root, Root: root, UserDir: t.TempDir(), Env: env(), Trusted: true})
	if len(problems) > 0 {
		t.Error(problems)
	}
	if a := c.Agent["reviewer"]; a.Mode != "subagent" || a.Prompt == "" || a.Description == "" {
		t.Errorf("%+v", a)
	}
	if x := c.Command["review"]; x.Agent != "reviewer" || x.Hint != "branch" || x.Template == "" {
		t.Errorf("%+v", x)
	}
	f := skill.New(skill.Places{Cwd: root, Root: root})
	if s, ok := f.Get("release"); !ok || s.Description == "" || len(f.Problems()) > 0 {
		t.Errorf("%+v %v", f.Skills(), f.Problems())
	}
}
