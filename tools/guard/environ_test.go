package guard

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func TestChildrenGetNoKeys(t *testing.T) {
	defer SetKeyPolicy(KeyPolicy{})
	keys := []string{
		"ANTHROPIC_API_KEY=sk-1", "OPENAI_API_KEY=1", "AWS_ACCESS_KEY_ID=1", "AWS_SECRET_ACCESS_KEY=1", "AWS_SESSION_TOKEN=1", "GITHUB_TOKEN=1", "GH_TOKEN=1", "PILLION_MCP_TOKEN=1", "NPM_TOKEN=1", "AZURE_CLIENT_SECRET=1",
		"GOOGLE_APPLICATION_CREDENTIALS=/x", "PGPASSWORD=1", "MYSQL_PWD=1", "my_api_key=1", "SSHPASSPHRASE=1", "DB_PASS=1", "HF_TOKEN=1", "DATABASE_URL=postgres://u:p@h/d", "REDIS=redis://:p@h", "OPAQUE=value-of-a-configured-key", "CI_JOB_JWT_TOKEN=1", "npm_config__auth=1",
	}
	plain := []string{"PATH=/bin", "HOME=/h", "SSH_AUTH_SOCK=/s", "TOKENIZERS_PARALLELISM=1", "PWD=/x", "KEYBOARD=us", "LANG=C", "HTTPS_PROXY=http://u:p@proxy", "SITE=https://example.org/@me", "PILLION=1", "MONKEY=1", "AWS_REGION=eu", "XAUTHORITY=/x", "AUTHOR=me", "COMPASS=1", "EMPTY_TOKEN="}
	SetKeyPolicy(KeyPolicy{Known: func(v string) bool { return v == "value-of-a-configured-key" }})
	for _, who := range []string{Bash, Server, Formatter, Tool, MCP, Helper} {
		if got := WithoutKeys(slices.Concat(keys, plain), who, "/usr/bin/x"); !slices.Equal(got, plain) {
			t.Errorf("%s gets %q", who, got)
		}
	}
	if got := WithoutKeys(keys, Person, "bash"); !slices.Equal(got, keys) {
		t.Errorf("the person's own terminal lost %q", got)
	}
}

func TestThePersonHandsKeysOn(t *testing.T) {
	defer SetKeyPolicy(KeyPolicy{})
	SetKeyPolicy(KeyPolicy{Allow: map[string][]string{"bash": {"GITHUB_TOKEN", "AWS_*"}, "gopls": {"GOPRIVATE_TOKEN"}}})
	env := []string{"GITHUB_TOKEN=1", "AWS_SECRET_ACCESS_KEY=1", "GOPRIVATE_TOKEN=1", "OPENAI_API_KEY=1"}
	for who, want := range map[string]string{Bash: "GITHUB_TOKEN=1 AWS_SECRET_ACCESS_KEY=1", Server: "GOPRIVATE_TOKEN=1", MCP: ""} {
		program := map[string]string{Server: "/usr/bin/gopls"}[who]
		if got := strings.Join(WithoutKeys(env, who, program), " "); got != want {
			t.Errorf("%s: %q, want %q", who, got, want)
		}
	}
}

func TestCommandHasTheScrubbedEnvironment(t *testing.T) {
	t.Setenv("MY_API_KEY", "secret")
	if os.Getenv("MY_API_KEY") == "" || slices.Contains(Command(Bash, "true").Env, "MY_API_KEY=secret") {
		t.Error("the key was handed on")
	}
}
