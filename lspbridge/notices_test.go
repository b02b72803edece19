package lspbridge

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// A question about a whole project starts the servers of all its files, and says that one is missing only for a language of
// which a good part of the project is; of another when somebody asks about a file of it. What does not run is not started to
// sum a turn up.
func TestServersOfLanguagesThatNobodyAskedAboutStayQuiet(t *testing.T) {
	root := t.TempDir()
	for _, f := range []string{"go.mod", "a.go", "b.go", "c.go", ".github/workflows/ci.yaml", "README.md", "package.json", "web/x.ts"} {
		write(t, filepath.Join(root, filepath.FromSlash(f)), "")
	}
	for i := range 30 {
		write(t, filepath.Join(root, "pkg", string(rune('a'+i%26))+string(rune('a'+i/26))+".go"), "package pkg\n")
	}
	t.Setenv("PATH", t.TempDir()) // nothing is installed
	var mu sync.Mutex
	var told []string
	m := New(Options{Root: root, NoWatch: true, Missing: func(server, _ string) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, server)
	}})
	defer m.Close(context.Background())
	wait := func(want ...string) {
		t.Helper()
		deadline := time.Now().Add(2 * time.Minute)
		for {
			mu.Lock()
			got := slices.Sorted(slices.Values(told))
			mu.Unlock()
			if slices.Equal(got, want) {
				return
			}
			if time.Now().After(deadline) || len(got) > len(want) {
				t.Fatalf("told of %v, want %v", got, want)
			}
			time.Sleep(5 * time.Millisecond) // Warm answers nobody
		}
	}
	ctx := longer(t)
	if got := m.RunningDiagnostics(ctx); len(got) != 0 {
		t.Errorf("servers that did not run were asked: %v", got)
	}
	wait()
	m.ProjectDiagnostics(ctx)
	wait("gopls")
	m.Warm(filepath.Join(root, "web/x.ts"))
	wait("gopls", "typescript")
	m.ProjectDiagnostics(ctx)
	wait("gopls", "typescript") // once is enough
}

// A project of several packages lacks one server several times, but a person reads of it once, with the files of all packages.
func TestAMissingServerOfSeveralPackagesIsReportedOnce(t *testing.T) {
	root := t.TempDir()
	for _, f := range []string{"mix.exs", "lib/a.ex", "installer/mix.exs", "installer/b.ex", "tests/mix.exs", "tests/c.exs", "templates/Dockerfile.eex", "README.md"} {
		write(t, filepath.Join(root, filepath.FromSlash(f)), "")
	}
	t.Setenv("PATH", t.TempDir()) // nothing is installed
	var mu sync.Mutex
	var told []string
	m := New(Options{Root: root, NoWatch: true, Missing: func(_, text string) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, text)
	}})
	defer m.Close(context.Background())
	var got []string
	for _, r := range m.ProjectDiagnostics(longer(t)) {
		got = append(got, r.Reason)
	}
	want := []string{
		"4 .exs and 2 .ex files not checked: elixir-ls not found; see https://github.com/elixir-lsp/elixir-ls, or set lsp.elixir-ls.command",
		"1 Dockerfile.eex file not checked: docker-langserver not found; run pillion doctor --install dockerfile, or install it with npm i -g dockerfile-language-server-nodejs, or set lsp.dockerfile.command",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	mu.Lock()
	defer mu.Unlock()
	notice := "elixir-ls not found. Edits to .ex, .exs files are not checked by it.\nSee https://github.com/elixir-lsp/elixir-ls, or set lsp.elixir-ls.command."
	if !slices.Equal(told, []string{notice}) {
		t.Errorf("told %q, want %q", told, notice)
	}
}
