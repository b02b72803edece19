package tools

import (
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools/permission"
)

func set() []Tool {
	var all []Tool
	for _, id := range []string{"read", "write", "edit", "multiedit", "apply_patch", "list", "grep", "bash", "task", "question", "invalid", "todowrite", "my_tool", "gh_issue"} {
		t := Tool{ID: id, Permission: id}
		switch id {
		case "write", "edit", "multiedit", "apply_patch":
			t.Permission = "edit"
		}
		all = append(all, t)
	}
	return append(all, Tool{ID: "read", Description: "a second read"})
}

func ids(ts []Tool) string {
	var out []string
	for _, t := range ts {
		out = append(out, t.ID)
	}
	return strings.Join(out, " ")
}

func TestOffer(t *testing.T) {
	deny := func(p, pattern string) permission.Rule {
		return permission.Rule{Permission: p, Pattern: pattern, Action: permission.Deny}
	}
	allow := func(p, pattern, origin string) permission.Rule {
		return permission.Rule{Permission: p, Pattern: pattern, Action: permission.Allow, Origin: origin}
	}
	for _, c := range []struct {
		name string
		o    OfferOptions
		want string
	}{
		{"edit and write", OfferOptions{}, "bash edit gh_issue grep list multiedit my_tool read todowrite write"},
		{"patch", OfferOptions{UsesPatch: true}, "apply_patch bash gh_issue grep list my_tool read todowrite"},
		{"somebody answers", OfferOptions{HasQuestioner: true, HasSpawner: true}, "bash edit gh_issue grep list multiedit my_tool question read task todowrite write"},
		{"edit denied hides all that edit", OfferOptions{Rules: permission.Ruleset{deny("edit", "*")}}, "bash gh_issue grep list my_tool read todowrite"},
		{"a deny for some files hides nothing", OfferOptions{Rules: permission.Ruleset{deny("edit", "*.go")}}, "bash edit gh_issue grep list multiedit my_tool read todowrite write"},
		{"a later allow for some files shows it again", OfferOptions{Rules: permission.Ruleset{deny("*", "*"), allow("edit", "docs/*", ""), allow("read", "*", "")}}, "edit multiedit read write"},
		{"a rule for the tool's own name", OfferOptions{Rules: permission.Ruleset{deny("write", "*")}}, "bash edit gh_issue grep list multiedit my_tool read todowrite"},
		{"a grant does not bring it back", OfferOptions{Rules: permission.Ruleset{deny("bash", "*"), allow("bash", "*", "session")}}, "edit gh_issue grep list multiedit my_tool read todowrite write"},
		{"wildcards in names", OfferOptions{Rules: permission.Ruleset{deny("g?_*", "*")}}, "bash edit grep list multiedit my_tool read todowrite write"},
		{"switches", OfferOptions{Switches: map[string]bool{"bash": false, "gh_*": false}}, "edit grep list multiedit my_tool read todowrite write"},
		{"all off but two", OfferOptions{Switches: map[string]bool{"*": false, "read": true, "gr*": true}}, "grep read"},
		{"apply_patch switched off for a model that was trained on it", OfferOptions{UsesPatch: true, Switches: map[string]bool{"apply_patch": false}}, "bash edit gh_issue grep list multiedit my_tool read todowrite write"},
		{"apply_patch switched on for another", OfferOptions{Switches: map[string]bool{"apply_patch": true}}, "apply_patch bash gh_issue grep list my_tool read todowrite"},
		{"a permission's switch", OfferOptions{Switches: map[string]bool{"edit": false, "write": true}}, "bash gh_issue grep list my_tool read todowrite write"},
		{"a missing key", OfferOptions{Without: []string{"gh_issue"}}, "bash edit grep list multiedit my_tool read todowrite write"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Offer(set(), c.o)
			if ids(got) != c.want {
				t.Errorf("got  %s\nwant %s", ids(got), c.want)
			}
			for _, tool := range got {
				if tool.Description != "" {
					t.Error("the second read stood in for the first")
				}
			}
		})
	}
}

func TestUsesPatch(t *testing.T) {
	for model, want := range map[string]bool{"gpt-5": true, "openai/GPT-5.2-codex": true, "gpt-6-mini": true, "gpt-4o": false, "gpt-3.5-turbo": false, "gpt-oss-120b": false, "claude-opus-4": false, "": false} {
		if UsesPatch(model) != want {
			t.Errorf("%q: %v", model, !want)
		}
	}
}

func TestRepair(t *testing.T) {
	offered := Offer(set(), OfferOptions{UsesPatch: true})
	for name, want := range map[string]string{
		"Read": "read", "READ": "read", " read\n": "read", "`grep`": "grep", "functions.bash": "bash", "read<|channel|>json": "read",
		"ls": "list", "patch": "apply_patch", "write": "", "reed": "", "": "", "invalid": "",
	} {
		got, ok := Repair(name, offered)
		if got.ID != want || ok != (want != "") {
			t.Errorf("%q: %q", name, got.ID)
		}
	}
}

func TestUnavailable(t *testing.T) {
	offered := Offer(set(), OfferOptions{})
	for name, want := range map[string]string{
		"reed":      "Model tried to call unavailable tool 'reed'. Did you mean read? Available tools: bash, ",
		"grep_file": "Model tried to call unavailable tool 'grep_file'. Did you mean grep? Available",
		"fly":       "Model tried to call unavailable tool 'fly'. Available tools: bash, edit",
		"edits":     "Model tried to call unavailable tool 'edits'. Did you mean edit? Available",
	} {
		if got := Unavailable(name, offered); !strings.HasPrefix(got, want) {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
}

func TestWild(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{{"*", "", true}, {"", "", true}, {"a", "", false}, {"a*c", "abbc", true}, {"a*b*c", "a-c", false}, {"**", "x", true}, {"?", "", false}, {"mcp_*", "mcp_a", true}, {"*_x", "a_x_x", true}} {
		if wild(c.pattern, c.name) != c.want {
			t.Errorf("%q %q", c.pattern, c.name)
		}
	}
}
