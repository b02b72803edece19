package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func env(kv ...string) func(string) string {
	return func(name string) string {
		for _, e := range kv {
			if k, v, _ := strings.Cut(e, "="); k == name {
				return v
			}
		}
		return ""
	}
}

func TestLayersMergeTowardsThePerson(t *testing.T) {
	root := t.TempDir()
	user := t.TempDir()
	write(t, filepath.Join(root, "pillion.jsonc"), `{
  // the project's own
  "model": "a/one", "steps": 5,
  "permission": {"bash": {"*": "ask", "git status": "allow"}},
  "provider": {"local": {"baseURL": "http://127.0.0.1:1/v1", "models": ["m"]}},
}`)
	write(t, filepath.Join(root, "sub", "pillion.jsonc"), `{"model": "a/two", "instructions": ["x.md"]}`)
	write(t, filepath.Join(user, "pillion.jsonc"), `{"provider": {"local": {"key": "{env:K}"}}, "permission": {"bash": "deny"}}`)
	c, problems := Load(Sources{Cwd: filepath.Join(root, "sub"), Root: root, UserDir: user, Env: env("K=secret", "PILLION_MODEL=b/three"), Trusted: true})
	if len(problems) != 0 {
		t.Fatal(problems)
	}
	if c.Model != "b/three" || c.Steps != 5 {
		t.Errorf("model %q steps %d", c.Model, c.Steps)
	}
	local := c.Provider["local"]
	if local.Key != "secret" || local.BaseURL != "http://127.0.0.1:1/v1" {
		t.Errorf("provider %+v", local)
	}
	if _, ok := local.Models["m"]; !ok {
		t.Errorf("models %+v", local.Models)
	}
	if got := c.Origin("steps"); got != filepath.Join(root, "pillion.jsonc")+":3:30" {
		t.Errorf("origin of steps: %s", got)
	}
	if c.Origin("model") != "PILLION_MODEL:1:10" {
		t.Errorf("origin of model: %s", c.Origin("model"))
	}
	var order []string
	for _, r := range c.Permission.Rules {
		order = append(order, r.Permission+" "+r.Pattern+" "+string(r.Action))
	}
	if want := []string{"bash * ask", "bash git status allow", "bash * deny"}; !slices.Equal(order, want) {
		t.Errorf("rules %q, want %q", order, want)
	}
}

func TestMistakesNameTheirPlaceAndWhatWasMeant(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"typo of a key", "{\n  \"modle\": \"x/y\"\n}", `2:3: unknown key "modle"; did you mean "model"?`},
		{"nested typo", `{"provider": {"p": {"baseUrl": "u"}}}`, `1:21: unknown key "baseUrl" in provider.p; did you mean "baseURL"?`},
		{"wrong type", `{"steps": "five"}`, `1:11: steps takes a whole number, not the string "five"`},
		{"wrong action", `{"permission": {"edit": "alow"}}`, `1:25: "alow" is not an action for permission.edit; write allow, ask or deny; did you mean "allow"?`},
		{"wrong enum", `{"log_level": "wran"}`, `1:15: "wran" is not a value of log_level; it takes debug, info, warn or error; did you mean "warn"?`},
		{"not JSON", "{\n  \"model\": }", `2:12: `},
		{"a list for an object", `{"agent": []}`, `1:11: agent takes an object, not a list`},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "pillion.jsonc")
			write(t, path, c.text)
			_, problems := Load(Sources{Cwd: dir, Root: dir})
			if len(problems) != 1 || !strings.HasPrefix(problems[0].String(), path+":"+c.want) {
				t.Errorf("got %v, want %s", problems, c.want)
			}
		})
	}
}

func TestOneMistakeLeavesTheRestInForce(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "pillion.jsonc"), `{"model": "a/b", "steps": true, "permission": {"edit": "alow", "bash": {"rm *": "deny", "ls": 5}}}`)
	c, problems := Load(Sources{Cwd: dir, Root: dir})
	if len(problems) != 3 || c.Model != "a/b" || c.Steps != 0 {
		t.Fatalf("%v %+v", problems, c)
	}
	if r := c.Permission.Rules; len(r) != 1 || r[0].Pattern != "rm *" || r[0].Origin != filepath.Join(dir, "pillion.jsonc")+":1:73" {
		t.Errorf("rules %+v", r)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(`{"model": "a/b", // c
 "permission": {"edit": {"*": "ask"}}}`)
	f.Add(`{"lsp": {"x": {"initialization": {"a": [1, 2, {}]}}}, "formatter": false}`)
	f.Fuzz(func(t *testing.T, text string) {
		_, bad := parse("f", []byte(text))
		if bad != nil {
			if bad.Line < 1 || bad.Column < 1 {
				t.Errorf("a problem without a place: %v", bad)
			}
			return
		}
		l := loader{Sources: Sources{Env: env()}, origins: map[string]string{}}
		l.text("f", []byte(text))
		_, problems := l.finish()
		for _, p := range problems {
			if p.File == "configuration" {
				t.Errorf("check let through what cannot be decoded: %v in %q", p, text)
			}
		}
	})
}

// One process serves a window with several folders: each session gets the settings of its own folder, the inner ones over the
// outer ones, and nobody else's.
func TestSettingsOfEachFolder(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Skip("no symbolic links: ", err)
	}
	folders, err := json.Marshal(map[string]any{
		filepath.Join(dir, "a"):          map[string]any{"review": "draft", "steps": 7},
		filepath.Join(dir, "a", "inner"): map[string]any{"steps": 9},
		filepath.Join(link, "b"):         map[string]any{"review": "follow"},
		"a":                              map[string]any{"review": "follow"}, // no absolute path: nobody's
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, sub := range []string{"a/inner/deep", "b", "ab"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.FromSlash(sub)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range []struct {
		cwd, review string
		steps       int
	}{{"a", "draft", 7}, {"a/inner/deep", "draft", 9}, {"b", "follow", 3}, {"ab", "preview", 3}, {".", "preview", 3}} {
		cwd := filepath.Join(dir, filepath.FromSlash(x.cwd))
		c, problems := Load(Sources{Cwd: cwd, Root: cwd, Env: env("PILLION_CONFIG_CONTENT="+`{"review":"preview","steps":3}`, "PILLION_CONFIG_FOLDERS="+string(folders))})
		if len(problems) > 0 || c.Review != x.review || c.Steps != x.steps {
			t.Errorf("%s: review %q, steps %d, problems %v; want %+v", x.cwd, c.Review, c.Steps, problems, x)
		}
	}
	if _, problems := Load(Sources{Cwd: dir, Root: dir, Env: env("PILLION_CONFIG_FOLDERS=[1]")}); len(problems) != 1 {
		t.Errorf("nonsense is not reported: %v", problems)
	}
}
