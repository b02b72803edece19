package lspbridge

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// HTML has a server without problems of its own: its embedded styles and scripts have some.
func TestHTML(t *testing.T) {
	const broken = "<!DOCTYPE html>\n<html>\n<head><style>\np { colr }\n</style></head>\n<body><p id=\"x\">hello</p></body>\n</html>\n"
	m, root := project(t, "html", map[string]string{"a.html": broken})
	ctx, path := longer(t), filepath.Join(root, "a.html")
	r := m.Diagnostics(ctx, path)
	if r.State != Fresh || !strings.Contains(strings.ToLower(messages(r.Items)), "colon expected") {
		t.Fatalf("%s %q %q", r.State, r.Reason, messages(r.Items))
	}
	d := m.Check(ctx, []Proposal{{Path: path, Text: strings.Replace(broken, "colr", "color: red", 1)}})
	if d.State != Fresh || len(d.Fixed) == 0 || len(d.Introduced) != 0 {
		t.Errorf("%s %q, fixed %q, introduced %q", d.State, d.Reason, messages(d.Fixed), messages(d.Introduced))
	}
	if list, err := m.DocumentSymbols(ctx, path); err != nil || len(list) == 0 {
		t.Errorf("%+v %v", list, err)
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
		if r.State != Fresh || !strings.Contains(messages(r.Items), want) {
			t.Fatalf("%s %q lacks %q: %q", r.State, r.Reason, want, messages(r.Items))
		}
	}
	d := m.Check(ctx, []Proposal{{Path: path, Text: strings.Replace(broken, "==", "===", 1)}})
	if d.State != Fresh || !strings.Contains(messages(d.Fixed), "Expected '==='") || strings.Contains(messages(d.Introduced), "===") {
		t.Errorf("%s %q, fixed %q, introduced %q", d.State, d.Reason, messages(d.Fixed), messages(d.Introduced))
	}
	i := slices.IndexFunc(r.Items, func(d Diagnostic) bool { return strings.Contains(d.Message, "Use 'const' instead") })
	list, err := m.CodeActions(ctx, path, r.Items[i].Range, []string{"quickfix"}, r.Items[i:i+1])
	j := slices.IndexFunc(list, func(a Action) bool { return a.Server == "eslint" && strings.HasPrefix(a.Title, "Fix this") })
	if err != nil || j < 0 {
		t.Fatalf("%d actions %v", len(list), err)
	}
	var got []FileEdit
	if err := m.RunAction(ctx, list[j], collect(&got)); err != nil || len(got) != 1 || !strings.Contains(got[0].New, "const q = 2") {
		t.Errorf("%s: %+v %v", list[j].Title, got, err)
	}
}
