package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/agent/provider/wiretest"
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

// A person signs in with a plugin; the model's requests then go through it, and its tokens are nowhere but in its requests.
func TestASignInWithAPlugin(t *testing.T) {
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not installed")
	}
	home := atHome(t)
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
	srv := wiretest.New(t, wiretest.Step{Text: "hello from acme"}, wiretest.Step{Text: "a title"}, wiretest.Step{Text: "again"}, wiretest.Step{Text: "again"})
	write := func(name, text string) {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("config/pillion/plugin/acme.mjs", `
export const Acme = async () => ({ auth: {
  provider: "acme",
  loader: async (getAuth) => ({ apiKey: "dummy", fetch: async (url, init) => fetch(url, { ...init, headers: { ...init.headers, authorization: "Bearer " + (await getAuth()).access } }) }),
  methods: [{ type: "oauth", label: "Acme Max", prompts: [{ type: "text", key: "org", message: "Which\u001b[2J organisation?", validate: (v) => v ? undefined : "name one" }],
    authorize: async ({ org }) => ({ url: "", instructions: "Ask " + org + " for a code", method: "code", callback: async (code) => code === "right" ? { type: "success", access: "acme-access-token-0123456789", refresh: "acme-refresh-token-0123456789", expires: Date.now() + 1e7 } : { type: "failed" } }) }],
} })
`)
	write("config/pillion/pillion.jsonc", `{"provider": {"acme": {"npm": "@ai-sdk/openai-compatible", "baseURL": "`+srv.URL+`/v1", "models": ["m"]}}}`)
	var all strings.Builder
	run := func(in string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
		cmd.Env, cmd.Dir, cmd.Stdin = append(os.Environ(), "PILLION_TEST_MAIN=1"), home, strings.NewReader(in)
		out, _ := cmd.CombinedOutput()
		all.Write(out)
		return string(out)
	}
	if out := run("firm\nwrong\n", "auth", "login", "acme", "--method", "acme max"); !strings.Contains(out, "could not sign in") {
		t.Errorf("a wrong code: %s", out)
	}
	if out := run("", "auth", "login", "acme", "--method", "gold"); !strings.Contains(out, `no sign-in "gold"`) || !strings.Contains(out, "Acme Max (plugin ") {
		t.Errorf("a method that there is not: %s", out)
	}
	out := run("\nfirm\nright\n", "auth", "login", "acme", "--method", "1")
	if !strings.Contains(out, "Signed in to acme") || !strings.Contains(out, "Ask firm for a code") || !strings.Contains(out, "name one") || strings.Contains(out, "\x1b[2J") {
		t.Errorf("%s", out)
	}
	if out := run("", "auth", "list", "--json", "--local=false"); !strings.Contains(out, `"id":"acme","name":"acme","source":"file"`) {
		t.Error(out)
	}
	if out := run("", "models", "acme"); !strings.Contains(out, "signed in with") {
		t.Error(out)
	}
	if out := run("", "run", "--model", "acme/m", "say hello"); !strings.Contains(out, "hello from acme") {
		t.Error(out)
	}
	if got := srv.Requests(); len(got) == 0 || got[0].Header.Get("Authorization") != "Bearer acme-access-token-0123456789" {
		t.Errorf("%d requests, or another key", len(got))
	}
	if out := run("", "auth", "logout", "acme"); !strings.Contains(out, "Deleted") {
		t.Error(out)
	}
	asked := len(srv.Requests())
	run("", "run", "--model", "acme/m", "say hello")
	for _, q := range srv.Requests()[asked:] {
		if strings.Contains(q.Header.Get("Authorization"), "acme-access") {
			t.Error("the token is used after the logout")
		}
	}
	if strings.Contains(all.String(), "-token-0123456789") {
		t.Errorf("a token was printed: %s", all.String())
	}
	for _, q := range srv.Requests() {
		if strings.Contains(string(q.Body), "-token-0123456789") {
			t.Error("a token reached the model")
		}
	}
}
