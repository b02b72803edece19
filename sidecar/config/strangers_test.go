package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools/permission"
)

// Whatever form another program has for "not this one", it counts in a folder that nobody trusts and in one that is trusted, against what the
// other files allow.
func TestEveryFormOfADenyCounts(t *testing.T) {
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name, file, text string
		denied           [][2]string // permissions with patterns
		free             [][2]string // that stay as they were
	}{
		{"comments", ".claude/settings.json", "{\n // team\n \"permissions\": {\"deny\": [\"Bash(curl:*)\", \"Bash(*)\",],},\n}", [][2]string{{"bash", "ls"}, {"bash", "curl x"}}, nil},
		{"sandbox", ".claude/settings.local.json", `{"sandbox": {"filesystem": {"denyRead": ["~/.ssh", "./keys/**"], "denyWrite": ["//etc"]}, "network": {"deniedDomains": ["*.evil.example"]}}}`,
			[][2]string{{"read", "keys/a"}, {"read", home + "/.ssh/id"}, {"list", home + "/.ssh"}, {"edit", "/etc/x"}, {"webfetch", "https://a.evil.example/x"}}, [][2]string{{"read", "a.go"}, {"edit", "a.go"}, {"webfetch", "https://go.dev/"}}},
		{"tools of a server, Cursor", ".cursor/mcp.json", `{"mcpServers": {"db": {"command": "db", "disabledTools": ["drop-all", "a.b"]}}}`, [][2]string{{"db_drop-all", "x"}, {"db_a_b", "x"}}, [][2]string{{"db_list", "x"}}},
		{"tools of a server, Gemini", ".gemini/settings.json", `{"mcpServers": {"db": {"httpUrl": "https://x", "excludeTools": ["drop"]}}}`, [][2]string{{"db_drop", "x"}}, [][2]string{{"db_list", "x"}}},
		{"tools of a server, Codex", ".codex/config.toml", "[mcp_servers.db]\ncommand = \"db\"\ndisabled_tools = [\"drop\"]\n", [][2]string{{"db_drop", "x"}}, [][2]string{{"db_list", "x"}}},
		{"rules of Codex", ".codex/rules/default.rules", "# prefix_rule(pattern = [\"no\"], decision = \"forbidden\")\nprefix_rule(\n  pattern = [\"git\", [\"push\", 'fetch']], # both\n  decision = \"forbidden\", match = [[\"git\", \"push\", \"x\"]], justification = 'it\\'s \"shared\"')\nprefix_rule(pattern=[\"ls\"], decision=\"allow\")\nprefix_rule(pattern=names, decision=\"forbidden\")\nprefix_rule(pattern=[\"rm\"], decision='forbidden',)\n",
			[][2]string{{"bash", "git push origin"}, {"bash", "git fetch"}, {"bash", "rm x"}, {"bash", "rm"}}, [][2]string{{"bash", "git status"}, {"bash", "ls"}, {"bash", "rmdir x"}, {"bash", "no x"}}},
		{"permissions of Cursor's editor", ".cursor/permissions.json", `{"terminalAllowlist": ["git"], "permissions": {"allow": ["Shell(git *)"], "deny": ["Read(**/*.pem)", "Write($HOME/Library/**)", "Shell(curl *)"]}}`,
			[][2]string{{"read", "a/b.pem"}, {"edit", home + "/Library/x"}, {"bash", "curl x"}, {"bash", "curl"}}, [][2]string{{"read", "a.go"}, {"bash", "ls"}, {"bash", "curlew"}}},
		{"policies of Gemini", ".gemini/policies/team.toml", `[[rule]]
toolName = "run_shell_command"
commandPrefix = ["rm -rf", "git push"]
decision = "deny"
priority = 100
[[rule]]
toolName = "run_shell_command"
commandPrefix = "git"
decision = "allow"
priority = 50
[[rule]]
toolName = "run_shell_command"
commandPrefix = "ls"
decision = "allow"
priority = 500
[[rule]]
mcpName = "db"
toolName = "drop"
decision = "deny"
priority = 10
[[rule]]
toolName = ["write_file", "web_fetch"]
decision = "deny"
priority = 1
[[rule]]
toolName = "web_fetch"
decision = "allow"
priority = 2
[[rule]]
decision = "allow"
priority = 0
`, [][2]string{{"bash", "rm -rf x"}, {"bash", "git push"}, {"db_drop", "x"}, {"edit", "a.go"}}, [][2]string{{"bash", "rm x"}, {"bash", "git status"}, {"db_list", "x"}, {"webfetch", "https://go.dev/"}, {"read", "a.go"}}},
		{"ignore file", ".cursorignore", "# keys\nsecret/\n*.cred\n/top.txt\n!secret/open\n*\n", [][2]string{{"read", "secret/a"}, {"read", "x/secret/a"}, {"edit", "a.cred"}, {"read", "x/b.cred"}, {"read", "top.txt"}, {"list", "secret"}, {"read", "secret/open"}}, [][2]string{{"read", "a.go"}, {"edit", "credo.go"}, {"read", "secrets.go"}}},
		{"ignore file of Gemini", ".geminiignore", "build/\r\n", [][2]string{{"read", "build/x"}}, [][2]string{{"read", "builder/x"}}},
	} {
		t.Run(x.name, func(t *testing.T) {
			root := t.TempDir()
			write(t, filepath.Join(root, x.file), x.text)
			write(t, filepath.Join(root, "pillion.jsonc"), `{"permission": {"*": "allow"}}`)
			for _, trusted := range []bool{false, true} {
				s := Sources{Cwd: root, Root: root, Trusted: trusted, Env: env(), Editor: []byte(`{"permission": {"*": "allow"}}`)}
				c, problems := Load(s)
				if len(problems) > 0 {
					t.Error(problems)
				}
				for _, d := range x.denied {
					if got, _ := c.Permission.Rules.Evaluate(d[0], d[1]); got != permission.Deny {
						t.Errorf("trusted %v: %s %s is %s", trusted, d[0], d[1], got)
					}
				}
				for _, f := range x.free {
					if got, _ := c.Permission.Rules.Evaluate(f[0], f[1]); got != permission.Allow {
						t.Errorf("trusted %v: %s %s is %s", trusted, f[0], f[1], got)
					}
				}
				before := Stamp(s)
				write(t, filepath.Join(root, x.file), x.text+"\n")
				if Stamp(s) == before {
					t.Error("a change is not noticed")
				}
				write(t, filepath.Join(root, x.file), x.text)
			}
		})
	}
}

// A server that a file of another program turns off does not start, whichever file of that program defines it and whatever is trusted; one of the
// same name that the person has defined in pillion.jsonc is theirs.
func TestAServerThatIsTurnedOffStaysOff(t *testing.T) {
	servers := `{"mcpServers": {"fs": {"command": "fs"}, "other": {"command": "other"}}}`
	off := `{"disabledMcpjsonServers": ["fs"], "enableAllProjectMcpServers": true}`
	for _, x := range []struct {
		name  string
		files map[string]string
		home  map[string]string
		want  map[string]bool
	}{
		{"in the project", map[string]string{".mcp.json": servers, ".claude/settings.json": off}, nil, map[string]bool{"fs": false, "other": true}},
		{"by the person", map[string]string{".mcp.json": servers}, map[string]string{".claude/settings.json": off}, map[string]bool{"fs": false, "other": true}},
		{"turned on by the project", map[string]string{".mcp.json": servers, ".claude/settings.local.json": off, "pillion.jsonc": `{"mcp": {"fs": {"enabled": true}}}`}, nil, map[string]bool{"fs": false, "other": true}},
		{"another of that name", map[string]string{".claude/settings.json": off, "pillion.jsonc": `{"mcp": {"fs": {"command": ["mine"]}}}`}, nil, map[string]bool{"fs": true}},
		{"denied by name", map[string]string{".claude/settings.json": `{"deniedMcpServers": [{"serverName": "fs"}, {"serverUrl": "https://*"}]}`, "pillion.jsonc": `{"mcp": {"fs": {"command": ["mine"]}}}`}, nil, map[string]bool{"fs": false}},
		{"in its own entry", map[string]string{".cursor/mcp.json": `{"mcpServers": {"fs": {"command": "fs", "disabled": true}, "other": {"command": "o", "disabled": false}}}`}, nil, map[string]bool{"fs": false, "other": true}},
		{"excluded by Gemini", map[string]string{".gemini/settings.json": `{"mcp": {"excluded": ["fs"]}, "mcpServers": {"fs": {"command": "fs"}, "other": {"command": "o"}}}`}, nil, map[string]bool{"fs": false, "other": true}},
	} {
		t.Run(x.name, func(t *testing.T) {
			root, home := t.TempDir(), t.TempDir()
			for path, text := range x.files {
				write(t, filepath.Join(root, path), text)
			}
			for path, text := range x.home {
				write(t, filepath.Join(home, path), text)
			}
			c, problems := Load(Sources{Cwd: root, Root: root, Home: home, Trusted: true, Env: env()})
			if len(problems) > 0 {
				t.Error(problems)
			}
			for name, want := range x.want {
				if s := c.MCP[name]; len(s.Command) == 0 || (s.Enabled == nil || *s.Enabled) != want {
					t.Errorf("%s is on: %v, want %v (%s)", name, !want, want, c.Origin("mcp."+name+".enabled"))
				}
			}
		})
	}
	root := t.TempDir()
	write(t, filepath.Join(root, ".mcp.json"), servers)
	write(t, filepath.Join(root, ".claude/settings.json"), off)
	in, err := Import(Sources{Root: root, Cwd: root, Env: env()}, "claude", false)
	if err != nil || !strings.Contains(in.Text, `"fs":    {"command": ["fs"], "enabled": false}`) || strings.Count(in.Text, "enabled") != 1 {
		t.Errorf("imported: %v\n%s", err, in.Text)
	}
}

// Variables of each program's form reach a server; a form that asks the person is named.
func TestVariablesOfServers(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, ".cursor/mcp.json"), `{"mcpServers": {"c": {"command": "x", "args": ["${env:TOK}", "${workspaceFolder}/a", "${workspaceFolderBasename}", "${userHome}/b"], "timeout": 5000}}}`)
	write(t, filepath.Join(root, ".vscode/mcp.json"), `{"inputs": [], "servers": {"v": {"command": "x", "env": {"K": "${input:key}"}}}}`)
	write(t, filepath.Join(root, ".mcp.json"), `{"mcpServers": {"m": {"url": "${U:-https://d}/x", "headers": {"A": "Bearer ${TOK}"}}}}`)
	c, problems := Load(Sources{Cwd: root, Root: root, Home: "/home/me", Trusted: true, Env: env("TOK=t")})
	if len(problems) > 0 {
		t.Error(problems)
	}
	if got, want := c.MCP["c"].Command, []string{"x", "t", root + "/a", filepath.Base(root), "/home/me/b"}; !slices.Equal(got, want) || c.MCP["c"].Timeout != 5000 {
		t.Errorf("%q, want %q", got, want)
	}
	if m := c.MCP["m"]; m.URL != "https://d/x" || m.Headers["A"] != "Bearer t" {
		t.Errorf("%+v", m)
	}
	named(t, c, "inputs is not used", "${input:key} is not used")
}

// named checks that the notes about unused settings contain texts.
func named(t *testing.T, c *Config, want ...string) {
	t.Helper()
	said := ""
	for _, u := range c.Unsupported() {
		said += u.String() + "\n"
	}
	for _, w := range want {
		if !strings.Contains(said, w) {
			t.Errorf("no %q in\n%s", w, said)
		}
	}
}

// Everything of these files that has no effect is named; what restricts an agent has one.
func TestAgentsAndCommandsOfOthers(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, ".claude/agents/plan.md"), "---\nname: careful\ndescription: d\npermissionMode: plan\nmaxTurns: 7\nskills: [a]\nmodel: inherit\n---\nX")
	write(t, filepath.Join(root, ".cursor/agents/look.md"), "---\nname: look\ndescription: d\nreadonly: true\nmodel: fast\n---\nX")
	write(t, filepath.Join(root, ".cursor/commands/fix.md"), "Fix it")
	write(t, filepath.Join(root, ".claude/commands/c.md"), "---\nargument-hint: [a] [b]\nallowed-tools: Bash(git:*)\nhooks: {}\n---\nDo $1")
	write(t, filepath.Join(root, ".gemini/settings.json"), `{"general": {"vimMode": true}, "tools": {"allowed": ["x"]}}`)
	for _, dir := range []string{".github/prompts", ".github/agents"} {
		write(t, filepath.Join(root, dir, "x.md"), "x")
	}
	c, problems := Load(Sources{Cwd: root, Root: root, Trusted: true, Env: env()})
	if len(problems) > 0 {
		t.Error(problems)
	}
	for _, name := range []string{"careful", "look"} {
		rules := append(slices.Clone(permission.Default()), c.Agent[name].Permission.Rules...)
		edit, _ := rules.Evaluate("edit", "a.go")
		bash, _ := rules.Evaluate("bash", "make")
		if edit != permission.Deny || bash != permission.Ask {
			t.Errorf("%s: edit is %s, bash is %s", name, edit, bash)
		}
	}
	if c.Agent["careful"].Steps != 7 || c.Command["fix"].Template != "Fix it" || c.Command["c"].Hint != "[a] [b]" {
		t.Errorf("%+v %+v", c.Agent["careful"], c.Command)
	}
	named(t, c, "agent.careful.skills is not used", "command.c.allowed-tools is not used", "command.c.hooks is not used", "general is not used", "tools.allowed is not used", filepath.Join(".github", "prompts"), filepath.Join(".github", "agents"))
}

// Nothing of a provider of Codex's is lost without a word.
func TestImportOfCodexProviders(t *testing.T) {
	home := t.TempDir()
	write(t, filepath.Join(home, ".codex/config.toml"), "model = \"m\"\nmodel_provider = \"az\"\n[model_providers.az]\nbase_url = \"https://az\"\nquery_params = { api-version = \"1.2\" }\nhttp_headers = { \"X.Y\" = \"b\" }\nenv_http_headers = { Z = \"ZV\" }\nstream_max_retries = 3\n")
	in, err := Import(Sources{Home: home, UserDir: filepath.Join(home, "u"), Env: env()}, "codex", true)
	if err != nil || len(in.Problems) > 0 {
		t.Fatal(err, in.Problems)
	}
	for _, want := range []string{`"queryParams": {"api-version": "1.2"}`, `"X.Y": "b"`, `"Z": "{env:ZV}"`} {
		if !strings.Contains(in.Text, want) {
			t.Errorf("no %s in\n%s", want, in.Text)
		}
	}
	if len(in.Left) != 1 || in.Left[0].Setting != "model_providers.az.stream_max_retries" {
		t.Error(in.Left)
	}
}

// Rules of Codex that are not read are named, and no input makes the reader go on for ever.
func TestRulesOfCodexThatAreNotRead(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, ".codex/rules/a.rules"), "prefix_rule(pattern=[\"ls\"], decision=\"prompt\")\nprefix_rule(pattern=names, decision=\"forbidden\")\n")
	c, _ := Load(Sources{Cwd: root, Root: root, Env: env()})
	named(t, c, "a.rules:1:1: prefix_rule ls is not used", "a.rules:2:1: prefix_rule is not used")
	for _, text := range []string{"prefix_rule", "prefix_rule(", "prefix_rule(pattern", "prefix_rule(pattern=[", "prefix_rule(pattern=[[]])", "prefix_rule(pattern=\"x", "prefix_rule(\"a\")", "'\\", "prefix_rule(pattern=[\"a\" \"b\"])", "prefix_rule(pattern=[\"" + strings.Repeat("x\",\"", 3000), "(((((", "prefix_rule(pattern=" + strings.Repeat("[", 1<<20), "prefix_rule(prefix_rule(prefix_rule("} {
		write(t, filepath.Join(root, ".codex/rules/a.rules"), text)
		if c, _ := Load(Sources{Cwd: root, Root: root, Env: env()}); len(c.Permission.Rules) > 0 {
			t.Errorf("%q makes rules: %v", text, c.Permission.Rules)
		}
	}
}

// A list of the only tools or servers that are allowed holds, whatever is trusted and whatever other files say.
func TestOnlyWhatAListAllowsIsOffered(t *testing.T) {
	for _, x := range []struct {
		name  string
		files map[string]string
		own   string              // the person's pillion.jsonc
		tools map[string][]string // by server that is on; nil: all
		off   []string
	}{
		{name: "Codex", files: map[string]string{".codex/config.toml": "[mcp_servers.db]\ncommand = \"db\"\nenabled_tools = [\"list\", \"get-one\"]\n[mcp_servers.all]\ncommand = \"x\"\n[mcp_servers.none]\ncommand = \"x\"\nenabled_tools = []\n"},
			tools: map[string][]string{"db": {"list", "get-one"}, "all": nil, "none": {}}},
		{name: "Gemini", files: map[string]string{".gemini/settings.json": `{"mcpServers": {"db": {"command": "db", "includeTools": ["list(x)", "get"]}, "b": {"command": "b"}, "c": {"command": "c"}}, "mcp": {"allowed": ["db", "c"], "excluded": ["c"]}}`},
			tools: map[string][]string{"db": {"list", "get"}}, off: []string{"b", "c"}},
		{name: "Gemini's older names", files: map[string]string{".gemini/settings.json": `{"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}, "c": {"command": "c"}}, "allowMCPServers": ["a", "c"], "excludeMCPServers": ["c"]}`},
			tools: map[string][]string{"a": nil}, off: []string{"b", "c"}},
		{name: "Copilot and VS Code", files: map[string]string{".vscode/mcp.json": `{"servers": {"a": {"command": "a", "tools": ["*"]}, "b": {"command": "b", "tools": ["x"]}, "c": {"command": "c", "tools": "y"}}}`},
			tools: map[string][]string{"a": nil, "b": {"x"}, "c": {"y"}}},
		{name: "another file has the server", files: map[string]string{".codex/config.toml": "[mcp_servers.db]\nenabled_tools = [\"list\"]\n"}, own: `{"mcp": {"db": {"command": ["mine"]}, "my": {"command": ["mine"], "tools": ["a"]}}}`,
			tools: map[string][]string{"db": {"list"}, "my": {"a"}}},
		{name: "two lists", files: map[string]string{".codex/config.toml": "[mcp_servers.db]\nenabled_tools = [\"a\", \"b\"]\n", ".cursor/mcp.json": `{"mcpServers": {"db": {"command": "db", "includeTools": ["b", "c"]}}}`},
			own: `{"mcp": {"db": {"command": ["mine"], "tools": ["b", "c", "d"]}}}`, tools: map[string][]string{"db": {"b"}}},
		{name: "Claude Code, names", files: map[string]string{".claude/settings.json": `{"allowedMcpServers": [{"serverName": "a"}]}`, ".mcp.json": `{"mcpServers": {"a": {"command": "a"}, "b": {"url": "https://b.example"}}}`},
			own: `{"mcp": {"mine": {"command": ["mine"]}}}`, tools: map[string][]string{"a": nil}, off: []string{"b", "mine"}},
		{name: "Claude Code, commands and addresses", files: map[string]string{".claude/settings.json": `{"allowedMcpServers": [{"serverName": "a"}, {"serverName": "d"}, {"serverCommand": ["npx", "-y", "x"]}, {"serverUrl": "https://*.example/*"}]}`,
			".mcp.json": `{"mcpServers": {"a": {"command": "a"}, "b": {"command": "npx", "args": ["-y", "x"]}, "c": {"url": "https://c.example/mcp"}, "d": {"url": "https://evil/mcp"}, "e": {"command": "npx", "args": ["-y", "x", "y"]}}}`},
			tools: map[string][]string{"b": nil, "c": nil}, off: []string{"a", "d", "e"}},
		{name: "Claude Code, none", files: map[string]string{".claude/settings.json": `{"allowedMcpServers": []}`}, own: `{"mcp": {"mine": {"command": ["mine"]}}}`, off: []string{"mine"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			root, user := t.TempDir(), t.TempDir()
			for file, text := range x.files {
				write(t, filepath.Join(root, file), text)
			}
			write(t, filepath.Join(user, "pillion.jsonc"), x.own)
			if x.own == "" {
				write(t, filepath.Join(user, "pillion.jsonc"), "{}")
			}
			for _, trusted := range []bool{true, false} {
				c, problems := Load(Sources{Cwd: root, Root: root, UserDir: user, Trusted: trusted, Env: env()})
				if len(problems) > 0 {
					t.Error(problems)
				}
				for name, want := range x.tools {
					s, ok := c.MCP[name]
					if !trusted && !ok { // a server of the project waits for trust; the list is there before
						continue
					}
					if !ok || s.Enabled != nil || !slices.Equal(s.Tools, want) || (s.Tools == nil) != (want == nil) {
						t.Errorf("trusted %v: %s: %+v, want the tools %q", trusted, name, s, want)
					}
				}
				for _, name := range x.off {
					if s, ok := c.MCP[name]; (ok || trusted) && (s.Enabled == nil || *s.Enabled) {
						t.Errorf("trusted %v: %s is on: %+v", trusted, name, s)
					}
				}
			}
		})
	}
	root := t.TempDir()
	write(t, filepath.Join(root, ".gemini/settings.json"), `{"tools": {"core": ["read_file", "GlobTool", "run_shell_command(ls)"]}}`)
	c, _ := Load(Sources{Cwd: root, Root: root, Env: env(), Editor: []byte(`{"permission": {"*": "allow"}}`)})
	for name, want := range map[string]permission.Action{"read": permission.Allow, "glob": permission.Allow, "bash": permission.Allow, "edit": permission.Deny, "webfetch": permission.Deny, "websearch": permission.Deny, "grep": permission.Deny} {
		if got, _ := c.Permission.Rules.Evaluate(name, "x"); got != want {
			t.Errorf("Gemini's core tools: %s is %s, want %s", name, got, want)
		}
	}
}

// An import carries what is allowed along.
func TestImportsOfAllowLists(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, ".codex/config.toml"), "[mcp_servers.db]\ncommand = \"db\"\nenabled_tools = [\"list\"]\n")
	write(t, filepath.Join(root, ".claude/settings.json"), `{"allowedMcpServers": [{"serverName": "a"}, {"serverUrl": "https://c.example/*"}]}`)
	write(t, filepath.Join(root, ".mcp.json"), `{"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}, "c": {"url": "https://c.example/mcp"}}}`)
	in, err := Import(Sources{Root: root, Cwd: root, Env: env()}, "codex", false)
	if err != nil || !strings.Contains(in.Text, `"tools": ["list"]`) {
		t.Errorf("%v\n%s", err, in.Text)
	}
	in, err = Import(Sources{Root: root, Cwd: root, Env: env()}, "claude", false)
	if err != nil || strings.Count(in.Text, `"enabled": false`) != 1 || !strings.Contains(in.Text, `"b": {"command": ["b"], "enabled": false}`) {
		t.Errorf("%v\n%s", err, in.Text)
	}
}

// A deny with an exception, or with a condition that is not known here, asks.
func TestPoliciesWithExceptionsAsk(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, ".gemini/policies/a.toml"), "[[rule]]\ntoolName = \"run_shell_command\"\ndecision = \"deny\"\npriority = 1\n[[rule]]\ntoolName = \"run_shell_command\"\ncommandPrefix = \"git status\"\ndecision = \"allow\"\npriority = 2\n"+
		"[[rule]]\ntoolName = \"web_fetch\"\nargsPattern = \"evil\"\ndecision = \"deny\"\npriority = 1\n[[rule]]\ntoolName = \"read_file\"\ndecision = \"ask_user\"\npriority = 1\n")
	c, problems := Load(Sources{Cwd: root, Root: root, Env: env()})
	if len(problems) > 0 {
		t.Error(problems)
	}
	for _, want := range [][2]string{{"bash", "ls"}, {"webfetch", "https://go.dev/"}, {"read", "a.go"}} {
		if got, _ := c.Permission.Rules.Evaluate(want[0], want[1]); got != permission.Ask {
			t.Errorf("%v is %s", want, got)
		}
	}
	if got, _ := c.Permission.Rules.Evaluate("edit", "a.go"); got == permission.Deny {
		t.Error("edits are denied")
	}
}

// A server in OpenCode's file that is written as other programs want it starts with its arguments and variables.
func TestAServerWrittenForAnotherProgramIsRepaired(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "opencode.json"), `{"mcp": {"dbg": {"type": "local", "command": "python", "args": ["-m", "mcp_dbg"], "env": {"K": "v"}}, "own": {"command": ["a", "b"], "environment": {"E": "1"}}}}`)
	c, problems := Load(Sources{Cwd: root, Root: root, Trusted: true, Env: env()})
	if len(problems) > 0 {
		t.Error(problems)
	}
	if s := c.MCP["dbg"]; !slices.Equal(s.Command, []string{"python", "-m", "mcp_dbg"}) || s.Environment["K"] != "v" {
		t.Errorf("%+v", s)
	}
	if s := c.MCP["own"]; !slices.Equal(s.Command, []string{"a", "b"}) || s.Environment["E"] != "1" {
		t.Errorf("%+v", s)
	}
}
