package permission

import (
	"fmt"
	"strings"
	"testing"
)

func TestParseKeepsOrderAndOrigin(t *testing.T) {
	config := `{"bash": {"*": "ask", "git *": "allow"}, "edit": "deny"}`
	rs, err := Parse([]byte(config), func(at int) string { return fmt.Sprintf("c:%d", at) })
	if err != nil {
		t.Fatal(err)
	}
	want := `[{bash * ask c:10 false} {bash git * allow c:22 false} {edit * deny c:49 false}]`
	if got := fmt.Sprint(rs); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestParseMistakes(t *testing.T) {
	at := func(offset int) string { return fmt.Sprintf("p.jsonc:1:%d", offset+1) }
	for _, c := range []struct{ name, config, want string }{
		{"misspelt", `{"bash":"alow"}`, `p.jsonc:1:9: permission.bash is "alow", want "allow", "ask" or "deny"; did you mean "allow"?`},
		{"another word", `{"bash":{"x":"never"}}`, `p.jsonc:1:14: permission.bash["x"] is "never", want "allow", "ask" or "deny"; did you mean "deny"?`},
		{"upper case", `"ASK"`, `p.jsonc:1:1: permission is "ASK", want "allow", "ask" or "deny"; did you mean "ask"?`},
		{"true", `{"bash":true}`, `p.jsonc:1:9: permission.bash is true, want "allow", "ask", "deny" or {"pattern": "action"}; did you mean "allow"?`},
		{"null", `{"bash":null}`, `p.jsonc:1:9: permission.bash is null, want "allow"`},
		{"null section", `null`, `permission is null`},
		{"number", `7`, `permission is 7`},
		{"false", `{"bash":false}`, `p.jsonc:1:9: permission.bash is false, want "allow", "ask", "deny" or {"pattern": "action"}; did you mean "deny"?`},
		{"list", `{"bash":["ls"]}`, `p.jsonc:1:9: permission.bash is a list`},
		{"list section", `[1,[2]]`, `permission is a list`},
		{"too deep", `{"bash":{"x":{"y":"ask"}}}`, `patterns don't nest`},
		{"bad syntax below", `{"bash":{"a":"allow" "b":"deny"},"c":"deny"}`, `permission: invalid character`},
		{"unfinished", `{"bash":`, `ends in the middle`},
		{"bad syntax", `{"bash" "ask"}`, `p.jsonc:1:8: permission: invalid character`},
		{"rest", `"ask" "deny"`, `p.jsonc:1:7: something follows`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse([]byte(c.config), at)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestParseReportsAllMistakesAndKeepsTheRest(t *testing.T) {
	rs, err := Parse([]byte(`{"a":"no","b":[1,{"c":2}],"c":"deny","d":{"x":1,"y":"ask"}}`), nil)
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("three mistakes, got %v", err)
	}
	if got := fmt.Sprint(rs); got != `[{c * deny  false} {d y ask  false}]` {
		t.Errorf("rules %s", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`{"bash":{"*":"ask"}}`)
	f.Add(`[{"a":`)
	f.Fuzz(func(t *testing.T, config string) {
		Parse([]byte(config), func(at int) string {
			if at < 0 || at > len(config) {
				t.Errorf("offset %d outside %d bytes", at, len(config))
			}
			return ""
		})
	})
}

func TestLint(t *testing.T) {
	for _, c := range []struct{ name, config, want string }{
		{"misspelt name", `{"bahs":"deny"}`, `did you mean "bash"?`},
		{"void rule", `{"bash":{"git *":"allow","*":"ask"}}`, `never applies`},
		{"void by a later name", `{"edit":"deny","*":"allow"}`, `never applies`},
		{"fine", `{"*":"ask","my_tool":"allow","bash":{"*":"ask","git *":"allow"}}`, ""},
	} {
		got := strings.Join(Lint(rules(t, c.config)), "\n")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

// What wins stands before in the same file, or in another one, which the sentence names.
func TestLintSaysWhereTheLaterRuleIs(t *testing.T) {
	const sameFile, other = "; put the general rule first", ", from "
	for _, c := range []struct{ first, later, want string }{
		{"p.jsonc:2:3", "p.jsonc:9:3", sameFile},
		{"p.jsonc:2:3", "q.jsonc:2:3", other + "q.jsonc:2:3"},
		{`C:\p.jsonc:2:3`, `C:\q.jsonc:9:3`, other + `C:\q.jsonc:9:3`},
		{`C:\p.jsonc:2:3`, `C:\p.jsonc:9:3`, sameFile},
	} {
		got := strings.Join(Lint(Ruleset{{Permission: "bash", Pattern: "git *", Action: Allow, Origin: c.first}, {Permission: "bash", Pattern: "*", Action: Ask, Origin: c.later}}), "\n")
		if !strings.HasSuffix(got, " wins"+c.want) {
			t.Errorf("%s, then %s: %q", c.first, c.later, got)
		}
	}
}

func TestLintNamesAManagedSlipOnce(t *testing.T) {
	slip := Rule{Permission: "bahs", Pattern: "*", Action: Deny, Origin: "managed", Managed: true}
	again := slip
	again.Managed = false
	if got := Lint(Ruleset{slip, again}); len(got) != 1 {
		t.Errorf("%q", got)
	}
}

// A managed rule stands among the others once more, and no order makes it useless.
func TestLintLeavesManagedRules(t *testing.T) {
	floor := Rule{Permission: "bash", Pattern: "git *", Action: Deny, Origin: "managed", Managed: true}
	again := floor
	again.Managed = false
	general := Rule{Permission: "bash", Pattern: "*", Action: Ask, Origin: "managed", Managed: true}
	for name, rs := range map[string]Ruleset{
		"a rule that stands once more":  {floor, again, {Permission: "bash", Pattern: "*", Action: Ask, Origin: "mine"}},
		"before a managed general rule": {{Permission: "bash", Pattern: "git *", Action: Allow, Origin: "mine"}, general},
	} {
		if got := Lint(rs); got != nil {
			t.Errorf("%s: %q", name, got)
		}
	}
}
