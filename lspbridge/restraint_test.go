package lspbridge

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the table of docs/SECURITY.md")

// straced are the servers that TestAnUntrustedProjectRunsNothingThroughItsServers runs under strace in `make test`, since set-up installs them.
var straced = []string{"gopls", "typescript", "pyright", "clangd", "bash", "json", "css", "html", "yaml", "svelte", "php", "dockerfile"}

// What docs/SECURITY.md says of each server is what its row says.
func TestRestraints(t *testing.T) {
	const page, begin, end = "../docs/SECURITY.md", "-update -->\n", "<!-- /restraints -->"
	var b strings.Builder
	b.WriteString("| server | in a folder that is not trusted | shown under strace |\n|---|---|---|\n")
	var refused []string
	for _, row := range Servers() {
		r := row.Untrusted
		if r == nil {
			refused = append(refused, row.ID)
			continue
		}
		text := r.Why
		if len(r.Programs) > 0 {
			text += " Only " + strings.Join(r.Programs, ", ") + " is started."
		}
		shown := "yes"
		if !slices.Contains(straced, row.ID) {
			shown = "only where it is installed, and `make test` does not install it: not tested"
			if row.ID == "rust-analyzer" {
				shown = "that it does not start beside such files; the rest is not tested"
			}
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", row.ID, text, shown)
	}
	slices.Sort(refused)
	fmt.Fprintf(&b, "\nNot started until the folder is trusted, because they run build files, plugins or configuration of the project, or because\nit has not been shown yet that they do not: %s.\n", strings.Join(refused, ", "))
	old, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(old), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("the page has no place for the table")
	}
	now := head + begin + b.String() + end + tail
	if now == string(old) {
		return
	}
	if !*update {
		t.Fatalf("docs/SECURITY.md is out of date; run go test ./lspbridge -run TestRestraints -update")
	}
	if err := os.WriteFile(page, []byte(now), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A row without a word on what it runs is not started, nor a program that the word does not cover, nor one beside a file
// that names programs; what the person added is.
func TestARowSaysHowItIsRestrained(t *testing.T) {
	root := t.TempDir()
	p := newPrograms(Options{Root: root}, nil)
	restrained := &Restraint{Programs: []string{"good"}, NotWith: []string{"tool*.toml"}, Init: `{"a":{"safe":true}}`, Env: []string{"X=1"}}
	for _, c := range []struct {
		name string
		row  Server
		argv string
		says string
	}{
		{"unknown", Server{ID: "x"}, "/bin/x", "not trusted"},
		{"another program", Server{ID: "x", Untrusted: restrained}, "/bin/other", "only good is started"},
		{"covered", Server{ID: "x", Untrusted: restrained, Init: `{"a":{"safe":false,"b":1}}`}, "/bin/good", ""},
		{"the person's own", Server{ID: "x", Added: true}, "/bin/x", ""},
	} {
		row, err := p.restrain(c.row, []string{c.argv}, root)
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.name == "covered" && (row.Init != `{"a":{"b":1,"safe":true}}` || !slices.Contains(row.Env, "X=1") || !slices.ContainsFunc(row.Env, func(e string) bool { return strings.HasSuffix(e, "=core.fsmonitor") })) {
			t.Errorf("started with %s and %q", row.Init, row.Env)
		}
	}
	write(t, root+"/.hidden/deep/tool-x.toml", "")
	if _, err := p.restrain(Server{ID: "x", Untrusted: restrained}, []string{"/bin/good"}, root); err == nil || !strings.Contains(err.Error(), "tool-x.toml") {
		t.Errorf("beside a file that names programs: %v", err)
	}
}

// PATH may name a folder of the project, or hold a link into it.
func TestProgramsInsideAnUntrustedProjectAreNotFound(t *testing.T) {
	root, elsewhere := t.TempDir(), t.TempDir()
	write(t, root+"/bin/a-server", "#!/bin/sh\n")
	if err := os.Chmod(root+"/bin/a-server", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(root+"/bin/a-server", elsewhere+"/a-server"); err != nil {
		t.Skip(err)
	}
	row := Server{ID: "x", Commands: [][]string{{"a-server"}}, Install: "npm i -g x"}
	for _, dir := range []string{root + "/bin", elsewhere} {
		t.Setenv("PATH", dir)
		if _, argv, err := newPrograms(Options{Root: root}, nil).find(row, root); err == nil {
			t.Errorf("found %s", argv[0])
		}
		if _, _, err := newPrograms(Options{Root: root, Trusted: true}, nil).find(row, root); err != nil {
			t.Errorf("trusted: %v", err)
		}
	}
}
