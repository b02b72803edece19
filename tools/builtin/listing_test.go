package builtin

import (
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/fuzzy"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/skill"
)

func TestListingKeepsItsBudget(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for range 500 {
		all := make([]fuzzy.Described, 1+r.Intn(60))
		whole := 0
		for i := range all {
			all[i] = fuzzy.Described{Name: fmt.Sprintf("name-%d", i), Text: strings.Repeat("é", r.Intn(300))}
			whole += len("\n- : ") + len(all[i].Name) + len(all[i].Text)
		}
		budget := 30 + r.Intn(12_000)
		text, left := listing(all, budget)
		if len(text) > budget || !utf8.ValidString(text) {
			t.Fatalf("%d bytes of %d", len(text), budget)
		}
		lines := strings.Count(text, "\n- ")
		if lines+left != len(all) {
			t.Fatalf("%d lines and %d left of %d", lines, left, len(all))
		}
		if whole <= budget && (left > 0 || strings.Contains(text, "…")) {
			t.Fatalf("%d bytes fit in %d, and the list is cut: %s", whole, budget, text)
		}
		// Where something is cut, little of the budget is left unused: a text could not be a character longer.
		if left == 0 && strings.Contains(text, "…") && budget-len(text) > 6*len(all) {
			t.Fatalf("%d bytes of %d unused by %d entries", budget-len(text), budget, len(all))
		}
	}
}

// A project with 900 skills (26zl/cybersec-toolkit has 882): the description lists as many as fit, and the model finds the others by words.
func TestManySkillsAreFoundByWords(t *testing.T) {
	root := t.TempDir()
	for i := range 900 {
		text := fmt.Sprintf("---\nname: skill-with-a-long-name-of-the-kind-that-people-write-%03d\ndescription: %s\n---\nStep %d.", i, strings.Repeat("Does what many others do. ", 10), i)
		if i == 899 {
			text = "---\nname: zz-invoice-export\ndescription: Exports invoices for the tax office.\n---\nRun export.sh."
		}
		dir := filepath.Join(root, ".claude/skills", fmt.Sprint(i))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	skills := skill.New(skill.Places{Cwd: root, Root: root})
	text, ok := describeSkills(skills, permission.Default())
	if !ok || len(text) > maxListing+500 || strings.Contains(text, "zz-invoice-export") || !strings.Contains(text, "more are not listed") {
		t.Fatalf("%t %d bytes: %s", ok, len(text), text[max(0, len(text)-300):])
	}
	env := Env{Cwd: root, Root: root, Skills: skills}
	gate := permission.NewGate(permission.GateOptions{Rules: permission.Default})
	r, err := invoke(t, Skill(env), `{"name":"export an invoice"}`, tools.Host{Gate: gate})
	if err != nil || !strings.Contains(r.Output, "\n- zz-invoice-export: Exports invoices for the tax office.") || strings.Count(r.Output, "\n- ") > maxLike {
		t.Fatalf("%v %s", err, r.Output)
	}
	if r, err = invoke(t, Skill(env), `{"name":"zz-invoice-export"}`, tools.Host{Gate: gate}); err != nil || !strings.Contains(r.Output, "Run export.sh.") {
		t.Fatalf("%v %s", err, r.Output)
	}
	if _, err = invoke(t, Skill(env), `{"name":"qqq"}`, tools.Host{Gate: gate}); err == nil || len(err.Error()) > maxListing {
		t.Fatalf("%v", err)
	}
}
