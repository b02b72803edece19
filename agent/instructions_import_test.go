package agent

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What CLAUDE.md imports comes with it, as deep as Claude Code goes, and nothing from outside the project: the file may be a
// stranger's, and what it names is sent to a model.
func TestImportsOfInstructions(t *testing.T) {
	home, root := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	put := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(filepath.Join(root, ".git", "HEAD"), "ref: refs/heads/main\n")
	put(filepath.Join(home, "secret.md"), "SECRET")
	put(filepath.Join(root, "CLAUDE.md"), "Mine. See @docs/style.md and @.env, @~/secret.md, @"+filepath.Join(home, "secret.md")+", @link.md, `@docs/code.md`.\n```\n@docs/code.md\n```\nme@docs/code.md\n")
	put(filepath.Join(root, "CLAUDE.local.md"), "For me alone.")
	put(filepath.Join(root, "docs/style.md"), "STYLE @more.md @../CLAUDE.md")
	put(filepath.Join(root, "docs/more.md"), "MORE")
	put(filepath.Join(root, "docs/code.md"), "CODE")
	put(filepath.Join(root, ".env"), "KEY=SECRET")
	if err := os.Symlink(filepath.Join(home, "secret.md"), filepath.Join(root, "link.md")); err != nil {
		t.Fatal(err)
	}
	all := strings.Join(Instructions(root, Imports{}), "\n---\n")
	for _, want := range []string{"Mine.", "STYLE", "MORE", "For me alone."} {
		if strings.Count(all, want) != 1 {
			t.Errorf("%q is there %d times in\n%s", want, strings.Count(all, want), all)
		}
	}
	for _, not := range []string{"SECRET", "CODE"} {
		if strings.Contains(all, not) {
			t.Errorf("%q is in\n%s", not, all)
		}
	}
	put(filepath.Join(home, ".claude", "CLAUDE.md"), "Own. @~/secret.md")
	if all = strings.Join(Instructions(root, Imports{}), "\n"); !strings.Contains(all, "SECRET") {
		t.Errorf("the user's own file may import the user's own files:\n%s", all)
	}
}

// What may be imported is decided outside of this package, for each file: any text inside, plain text outside, whatever links say. What is
// left out is named once.
func TestWhoDecidesAboutImports(t *testing.T) {
	home, root := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	for path, text := range map[string]string{
		"HOME/style.md": "STYLE @deep.md", "HOME/deep.md": "DEEP", "HOME/key.pem": "KEY", "HOME/no.md": "NO",
		"package.json": "PACKAGE", "README": "SHORT", ".env": "ENV", "picture.png": "PNG\x00", "CLAUDE.md": "@~/style.md @~/key.pem @~/no.md @package.json @README @.env @picture.png @out.md @nothing.md @~/style.md",
		".git/HEAD": "ref: x\n", "docs/x": "",
	} {
		at := filepath.Join(root, path)
		if rest, ok := strings.CutPrefix(path, "HOME/"); ok {
			at = filepath.Join(home, rest)
		}
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(home, "no.md"), filepath.Join(root, "out.md")); err != nil {
		t.Fatal(err)
	}
	inside := func(path string) bool { return filepath.Base(path) != ".env" }
	for _, c := range []struct {
		name      string
		o         Imports
		want, not []string
		left      []string
	}{
		{"nobody", Imports{}, nil, []string{"STYLE", "DEEP", "KEY", "NO", "PACKAGE", "SHORT", "ENV", "PNG"}, []string{"style.md", "key.pem", "no.md", "package.json", "README", ".env", "picture.png"}},
		{"inside", Imports{Inside: inside}, []string{"PACKAGE", "SHORT"}, []string{"STYLE", "DEEP", "KEY", "NO", "ENV", "PNG"}, []string{"style.md", "key.pem", "no.md", ".env"}},
		{"outside too", Imports{Inside: inside, Outside: func(path string) bool { return filepath.Base(path) != "no.md" }},
			[]string{"STYLE", "DEEP", "PACKAGE", "SHORT"}, []string{"KEY", "NO", "ENV", "PNG"}, []string{"key.pem", "no.md", ".env"}},
	} {
		blocks := Instructions(root, c.o)
		_, all, _ := strings.Cut(strings.Join(blocks, "\n"), "@nothing.md @~/style.md")
		for _, want := range c.want {
			if strings.Count(all, want) != 1 {
				t.Errorf("%s: %q is there %d times in\n%s", c.name, want, strings.Count(all, want), all)
			}
		}
		for _, not := range c.not {
			if strings.Contains(all, not) {
				t.Errorf("%s: %q is in\n%s", c.name, not, all)
			}
		}
		var left []string
		for _, l := range LeftImports(root, c.o) {
			left = append(left, filepath.Base(l.Path))
			if l.From != filepath.Join(root, "CLAUDE.md") || l.Why == "" {
				t.Errorf("%s: %+v", c.name, l)
			}
		}
		if !slices.Equal(left, c.left) {
			t.Errorf("%s: left %q, want %q", c.name, left, c.left)
		}
	}
}

// ofProject is projectInstructions without what is left out.
func ofProject(dir string) []string {
	blocks, _ := projectInstructions(dir, Imports{})
	return blocks
}

// Files for other agents count where a project has none of the common ones.
func TestInstructionsForOtherAgents(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	for _, name := range []string{"GEMINI.md", ".cursorrules", ".github/copilot-instructions.md"} {
		root := t.TempDir()
		for path, text := range map[string]string{".git/HEAD": "ref: x\n", name: "theirs"} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := Instructions(root, Imports{}); len(got) != 1 || !strings.HasSuffix(got[0], "theirs") {
			t.Errorf("%s: %q", name, got)
		}
		if err := os.WriteFile(filepath.Join(root, "AGENTS.md"), []byte("ours"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := Instructions(root, Imports{}); len(got) != 1 || !strings.HasSuffix(got[0], "ours") {
			t.Errorf("%s beside AGENTS.md: %q", name, got)
		}
	}
}

// A CLAUDE.md that imports AGENTS.md counts with all that it says; files that are left out for another are named.
func TestInstructionsOfSeveralAgents(t *testing.T) {
	for _, x := range []struct {
		name         string
		files        map[string]string
		want, unused []string
	}{
		{"imports", map[string]string{"AGENTS.md": "COMMON", "CLAUDE.md": "@AGENTS.md\nCLAUDE @docs/a.md", "docs/a.md": "DOC"}, []string{"COMMON", "CLAUDE", "DOC"}, nil},
		{"each its own", map[string]string{"AGENTS.md": "COMMON", "CLAUDE.md": "OTHER", "GEMINI.md": "COMMON"}, []string{"COMMON"}, []string{"CLAUDE.md"}},
		{"in the folder", map[string]string{".claude/CLAUDE.md": "CLAUDE"}, []string{"CLAUDE"}, nil},
		{"the folder imports", map[string]string{"AGENTS.md": "COMMON", ".claude/CLAUDE.md": "CLAUDE @../AGENTS.md"}, []string{"CLAUDE", "COMMON"}, nil},
		{"overridden", map[string]string{"AGENTS.md": "COMMON", "AGENTS.override.md": "OVER"}, []string{"OVER"}, []string{"AGENTS.md"}},
		{"for Codex", map[string]string{"~/.codex/AGENTS.md": "CODEX", "AGENTS.md": "COMMON"}, []string{"CODEX", "COMMON"}, nil},
	} {
		t.Run(x.name, func(t *testing.T) {
			home, root := t.TempDir(), t.TempDir()
			t.Setenv("HOME", home)
			t.Setenv("XDG_CONFIG_HOME", t.TempDir())
			x.files[".git/HEAD"] = "ref: x\n"
			for path, text := range x.files {
				at := filepath.Join(root, path)
				if rest, ok := strings.CutPrefix(path, "~/"); ok {
					at = filepath.Join(home, rest)
				}
				if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			all := strings.Join(Instructions(root, Imports{}), "\n")
			for _, word := range []string{"COMMON", "CLAUDE", "DOC", "OTHER", "OVER", "CODEX"} {
				// "CLAUDE" and others are also in the names of files.
				if got, want := strings.Contains("\n"+all, "\n"+word) || strings.Contains(all, "\n@AGENTS.md\n"+word), slices.Contains(x.want, word); got != want {
					t.Errorf("%s: %v, want %v in\n%s", word, got, want, all)
				}
			}
			var unused []string
			for _, u := range UnusedInstructions(root, Imports{}) {
				unused = append(unused, filepath.Base(u[0]))
			}
			if !slices.Equal(unused, x.unused) {
				t.Errorf("unused: %q, want %q", unused, x.unused)
			}
		})
	}
}

// As in Claude Code, the model does not get the comments of CLAUDE.md, and nothing in them is imported. Comments in code are kept, and so
// are those in the files of other agents.
func TestCommentsInInstructions(t *testing.T) {
	root := t.TempDir()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	put(t, filepath.Join(root, ".git/HEAD"), "ref: refs/heads/main\n")
	put(t, filepath.Join(root, "docs/old.md"), "OLD")
	text := "One.\n<!-- For people:\n@docs/old.md -->\nTwo <!-- inside a line -->.\n```html\n<!-- kept -->\n```\n  <!-- after --> \nThree.\n<!-- without an end\n"
	put(t, filepath.Join(root, "CLAUDE.md"), text)
	got := Instructions(root, Imports{})
	want := "One.\nTwo <!-- inside a line -->.\n```html\n<!-- kept -->\n```\nThree.\n<!-- without an end"
	if len(got) != 1 || !strings.HasSuffix(got[0], "CLAUDE.md\n"+want) {
		t.Errorf("%q", got)
	}
	if unused := UnusedInstructions(root, Imports{}); len(unused) > 0 {
		t.Errorf("unused: %v", unused)
	}
	put(t, filepath.Join(root, "AGENTS.md"), text)
	if err := os.Remove(filepath.Join(root, "CLAUDE.md")); err != nil {
		t.Fatal(err)
	}
	if got = Instructions(root, Imports{}); len(got) != 1 || !strings.HasSuffix(got[0], strings.TrimSpace(text)) {
		t.Errorf("%q", got)
	}
}
