package app

import (
	"os"
	"path/filepath"
	"testing"
	"time"

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

// The setting lsp_idle_timeout is what the servers get, in milliseconds.
func TestIdleTimeoutOfServers(t *testing.T) {
	for text, want := range map[string]time.Duration{
		`{}`:                          0, // lspbridge's default
		`{"lsp_idle_timeout": 90000}`: 90 * time.Second,
		`{"lsp_idle_timeout": 0}`:     -1,
		`{"lsp_idle_timeout": -5}`:    -1,
	} {
		user := t.TempDir()
		if err := os.WriteFile(filepath.Join(user, "pillion.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, problems := config.Load(config.Sources{Cwd: user, Root: user, UserDir: user})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		a := New(Options{Place: NewWorkplace("test"), Ephemeral: true})
		if got := a.Servers.options(user, c).Idle; got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
		a.Close()
	}
}
