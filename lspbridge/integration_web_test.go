package lspbridge

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools/change"
)

// HTML has a server without problems of its own: those are of its embedded styles and scripts, each with its own.
func TestHTML(t *testing.T) {
	const page = "<!DOCTYPE html>\n<html>\n<head><style>\np { color: red; }\n</style></head>\n<body><p id=\"x\" style=\"margin: 0\" onclick=\"go(1)\">hello</p>\n" +
		"<script>\nconst n = 1;\n</script>\n<script type=\"module\">\nconst m = 2;\n</script></body>\n</html>\n"
	m, root := project(t, "html", map[string]string{"a.html": page})
	ctx, path := longer(t), filepath.Join(root, "a.html")
	if r := m.Diagnostics(ctx, path); r.Certainty != change.Fresh || len(r.Items) != 0 {
		t.Fatalf("%s %q %q", r.Certainty, r.Reason, messages(r.Items))
	}
	for _, c := range []struct{ from, to, says string }{
		{"color: red", "color red", "colon expected"},
		{"margin: 0", "margin 0", "colon expected"},
		{"n = 1", "n = ", "expression expected"},
		{"m = 2", "m = (2", "')' expected"},
		{"go(1)", "go(1", "')' expected"},
	} {
		broken := strings.Replace(page, c.from, c.to, 1)
		d := m.Check(ctx, []Proposal{{Path: path, Text: broken}})
		if d.Certainty != change.Fresh || !strings.Contains(strings.ToLower(messages(d.Introduced)), c.says) || len(d.Fixed) != 0 {
			t.Errorf("%s: %s %q, introduced %q", c.to, d.Certainty, d.Reason, messages(d.Introduced))
		}
		write(t, path, broken)
		m.Changed(ctx, []Proposal{{Path: path, Text: broken}})
		d = m.Check(ctx, []Proposal{{Path: path, Text: page}})
		if d.Certainty != change.Fresh || !strings.Contains(strings.ToLower(messages(d.Fixed)), c.says) || len(d.Introduced) != 0 {
			t.Errorf("back from %s: %s %q, fixed %q, introduced %q", c.to, d.Certainty, d.Reason, messages(d.Fixed), messages(d.Introduced))
		}
		write(t, path, page)
		m.Changed(ctx, []Proposal{{Path: path, Text: page}})
	}
	if list, err := m.DocumentSymbols(ctx, path); err != nil || len(list) == 0 {
		t.Errorf("%+v %v", list, err)
	}
}

// Comments are a mistake in JSON and none in the files of programs that read them; a schema out of the network is not
// fetched, and that it was not is nobody's mistake.
func TestJSONKinds(t *testing.T) {
	m, root := project(t, "json", map[string]string{"a.json": "{}\n", "tsconfig.json": "{}\n", ".vscode/settings.json": "{}\n"})
	ctx := longer(t)
	for name, want := range map[string]string{"a.json": "Comments are not permitted in JSON", "tsconfig.json": "", ".vscode/settings.json": ""} {
		d := m.Check(ctx, []Proposal{{Path: filepath.Join(root, name), Text: "{\n  // why\n  \"$schema\": \"https://example.test/s.json\"\n}\n"}})
		if got := messages(d.Introduced); d.Certainty != change.Fresh || !strings.Contains(got, want) || want == "" && got != "" || len(d.Introduced) > 1 {
			t.Errorf("%s: %s %q, introduced %q", name, d.Certainty, d.Reason, got)
		}
	}
}

// ESLint answers beside TypeScript: both have their say of one file, and its fixes are on offer.
func TestESLintBesideTypeScript(t *testing.T) {
	const broken = "const s = 1;\nvar unused = s == 2;\nundefinedThing();\nlet q = 2;\nconsole.log(q);\n"
	m, root := project(t, "eslint", map[string]string{"package.json": `{"private":true}`, "tsconfig.json": `{"compilerOptions":{"allowJs":true,"checkJs":true,"noEmit":true}}`,
		"eslint.config.js": "module.exports = [{ files: ['**/*.js'], rules: { eqeqeq: 'error', 'no-var': 'error', 'prefer-const': 'error' } }];\n", "a.js": broken})
	library := filepath.Join(filepath.Dir(filepath.Dir(m.o.Bin[0])), "eslint", "node_modules")
	if _, err := os.Stat(filepath.Join(library, "eslint")); err != nil {
		t.Skip("eslint is not installed: testdata/install-servers.sh")
	}
	if err := os.Symlink(library, filepath.Join(root, "node_modules")); err != nil {
		t.Skip(err)
	}
	ctx, path := longer(t), filepath.Join(root, "a.js")
	r := m.Diagnostics(ctx, path)
	for _, want := range []string{"Expected '===' and instead saw '=='.", "Unexpected var", "Cannot find name 'undefinedThing'"} {
		if r.Certainty != change.Fresh || !strings.Contains(messages(r.Items), want) {
			t.Fatalf("%s %q lacks %q: %q", r.Certainty, r.Reason, want, messages(r.Items))
		}
	}
	d := m.Check(ctx, []Proposal{{Path: path, Text: strings.Replace(broken, "==", "===", 1)}})
	if d.Certainty != change.Fresh || !strings.Contains(messages(d.Fixed), "Expected '==='") || strings.Contains(messages(d.Introduced), "===") {
		t.Errorf("%s %q, fixed %q, introduced %q", d.Certainty, d.Reason, messages(d.Fixed), messages(d.Introduced))
	}
	i := slices.IndexFunc(r.Items, func(d change.Problem) bool { return strings.Contains(d.Message, "Use 'const' instead") })
	list, err := m.CodeActions(ctx, path, ProblemRange(r.Items[i]), []string{"quickfix"}, r.Items[i:i+1])
	j := slices.IndexFunc(list, func(a Action) bool { return a.Server == "eslint" && strings.HasPrefix(a.Title, "Fix this") })
	if err != nil || j < 0 {
		t.Fatalf("%d actions %v", len(list), err)
	}
	var got []FileEdit
	if err := m.RunAction(ctx, list[j], collect(&got)); err != nil || len(got) != 1 || !strings.Contains(got[0].New, "const q = 2") {
		t.Errorf("%s: %+v %v", list[j].Title, got, err)
	}
}
