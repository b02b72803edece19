package app

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pillion-dev/pillion/sidecar/config"
)

func TestServerSettingsThatWouldDoNothing(t *testing.T) {
	for text, want := range map[string]string{
		`{"lsp":{"pyright":{"disabled":true},"own":{"command":["x"],"extensions":[".own"]}}}`: "",
		"{\n  \"lsp\": {\"pyrigth\": {\"disabled\": true}}\n}":                                `2:35: unknown language server "pyrigth"; did you mean "pyright"? pillion doctor lists them; one of your own has command and extensions`,
		`{"lsp":{"own":{"extensions":[".own"]}}}`:                                             `1:29: unknown language server "own"; pillion doctor lists them; one of your own has command and extensions`,
		`{"lsp":{"own":{"command":["x"]}}}`:                                                   `1:26: lsp.own has no files: set "extensions": [".x"]`,
	} {
		user := t.TempDir()
		file := filepath.Join(user, "pillion.json")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, problems := config.Load(config.Sources{Cwd: user, Root: user, UserDir: user})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		got := ""
		for _, p := range serverProblems(c) {
			got += p.String()
		}
		if want != "" {
			want = file + ":" + want
		}
		if got != want {
			t.Errorf("%s\n%s, want\n%s", text, got, want)
		}
	}
}
