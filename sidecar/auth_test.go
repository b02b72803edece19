package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/sidecar/keys"
	"github.com/pillion-dev/pillion/sidecar/protocol"
)

// lentKeys is Auth for one provider and no network.
type lentKeys struct{ store *keys.Store }

func (l lentKeys) Lend(provider, key string) error { return l.store.Lend(provider, key) }

func (l lentKeys) Providers(context.Context) []protocol.AuthProvider {
	p := protocol.AuthProvider{ID: "anthropic", Name: "Anthropic", Source: "none"}
	if k, ok := l.store.All()["anthropic"]; ok {
		p.Source = string(k.Source)
	}
	return []protocol.AuthProvider{p}
}

// The command line: a key that is piped in, listed without being shown, used, forgotten.
func TestKeysOnTheCommandLine(t *testing.T) {
	home := atHome(t)
	for _, v := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "DBUS_SESSION_BUS_ADDRESS", "PILLION_MODEL"} {
		t.Setenv(v, "")
	}
	run := func(in string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
		cmd.Env, cmd.Dir, cmd.Stdin = append(os.Environ(), "PILLION_TEST_MAIN=1"), home, strings.NewReader(in)
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	if out := run("", "auth", "list", "--local=false"); !strings.Contains(out, "no key; set ANTHROPIC_API_KEY, or run: pillion auth login anthropic") {
		t.Error(out)
	}
	if out := run("sk-ant-secret\n", "auth", "login", "anthropic", "--stdin"); !strings.Contains(out, "Stored the key") || strings.Contains(out, "secret") {
		t.Error(out)
	}
	info, err := os.Stat(filepath.Join(home, "state", "pillion", "auth.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if out := run("", "auth", "list", "--json", "--local=false"); !strings.Contains(out, `"id":"anthropic","name":"Anthropic","source":"file"`) || strings.Contains(out, "secret") {
		t.Error(out)
	}
	if out := run("", "models"); !strings.Contains(out, "anthropic/") || !strings.Contains(out, "pillion auth") {
		t.Error(out)
	}
	if out := run("", "auth", "logout", "anthropic"); !strings.Contains(out, "Deleted the key") {
		t.Error(out)
	}
	if out := run("", "auth", "logout", "anthropic"); !strings.Contains(out, "no key is stored for anthropic") {
		t.Error(out)
	}
	if out := run("sk-ant-secret\n", "auth", "login", "antropic", "--stdin"); strings.Contains(out, "Stored the key") || !strings.Contains(out, "did you mean anthropic?") {
		t.Errorf("a slip of the finger: %s", out)
	}
	if out := run("sk-own-secret\n", "auth", "login", "myproxy", "--stdin"); !strings.Contains(out, "Stored the key") || !strings.Contains(out, "provider.myproxy.baseURL") {
		t.Errorf("a provider that is yet to be configured: %s", out)
	}
	for _, bad := range []string{"", "two words", "half\x00key"} {
		if out := run(bad, "auth", "login", "anthropic", "--stdin"); strings.Contains(out, "is kept") {
			t.Errorf("%q: %s", bad, out)
		}
	}
}
