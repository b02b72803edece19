package config

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
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
