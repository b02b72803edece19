package sandbox

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Random trees that change between looks: what is remembered must give what a look at everything gives.
func TestHiddenFilesAreFoundAtEveryDepthWhateverChanges(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	root := t.TempDir()
	names := []string{"a", "web", ".hidden", "node_modules", "vendor", "b c"}
	var h HiddenFiles
	hidden := func(p string) bool { return filepath.Base(p) == ".env" }
	quiet := func(p string) bool { return !strings.Contains(filepath.Base(p), ".env") }
	old := time.Now().Add(-time.Hour)
	deepest, most := 0, 0
	for step := range 300 {
		dir := root
		for range r.IntN(7) {
			dir = filepath.Join(dir, names[r.IntN(len(names))])
		}
		inside := slices.ContainsFunc(strings.Split(dir, string(filepath.Separator)), func(p string) bool { return slices.Contains(dependencies, p) })
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, []string{".env", "main.go", ".env.example"}[r.IntN(3)])
		if r.IntN(4) == 0 {
			os.Remove(file)
		} else if err := os.WriteFile(file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if inside { // these are looked at again when their top changes
			h = HiddenFiles{}
		}
		found, unseen := h.find([]string{root, filepath.Join(root, "a")}, hidden, quiet, "")
		var fresh HiddenFiles
		want, _ := fresh.find([]string{root}, hidden, nil, "")
		slices.Sort(found)
		slices.Sort(want)
		if !slices.Equal(found, want) || len(unseen) > 0 {
			t.Fatalf("step %d: %q, and there are %q; not seen %q", step, found, want, unseen)
		}
		most = max(most, len(want))
		for _, f := range found {
			deepest = max(deepest, strings.Count(strings.TrimPrefix(f, root), "/"))
		}
		// An old time makes the look trust what it remembers. A change afterwards gives the folder a new one.
		_ = filepath.WalkDir(root, func(p string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() && r.IntN(2) == 0 {
				if info, err := d.Info(); err == nil && time.Since(info.ModTime()) < time.Minute {
					old = old.Add(time.Second) // never a time that it had before
					_ = os.Chtimes(p, old, old)
				}
			}
			return nil
		})
	}
	if deepest < 4 || most < 10 {
		t.Errorf("at most %d files, %d deep: the trees were too small", most, deepest)
	}
}

// A folder that could not be looked at is one that may not be read, and the next look goes on.
func TestWhatALookDoesNotReachIsNotReadable(t *testing.T) {
	root := t.TempDir()
	for i := range 20 {
		dir := filepath.Join(root, fmt.Sprint(i))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, ".env"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		past := time.Now().Add(-time.Hour)
		_ = os.Chtimes(dir, past, past)
	}
	past := time.Now().Add(-time.Hour)
	_ = os.Chtimes(root, past, past)
	h := HiddenFiles{folders: map[string]*seenFolder{}, left: 31}
	quiet := func(p string) bool { return false }
	suspects, unseen := h.look(root, place{}, quiet)
	if len(suspects) != 5 || len(unseen) != 15 { // 21 for the root, then 2 a folder
		t.Fatalf("found %d, left %d", len(suspects), len(unseen))
	}
	h.left = 1000
	suspects, unseen = h.look(root, place{}, quiet)
	if len(suspects) != 20 || len(unseen) != 0 || h.left != 1000-15*2 {
		t.Errorf("the second look found %d, left %d folders and read %d entries", len(suspects), len(unseen), 1000-h.left)
	}
}

// Rules that change make the look forget; a grant counts at once.
func TestALookFollowsTheRules(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "x", "secret.txt")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	past := time.Now().Add(-time.Hour)
	for _, d := range []string{root, filepath.Dir(file)} {
		_ = os.Chtimes(d, past, past)
	}
	var h HiddenFiles
	always := func(string) bool { return true }
	if found, _ := h.find([]string{root}, always, always, "all quiet"); len(found) != 0 {
		t.Errorf("quiet files were asked about: %q", found)
	}
	never := func(string) bool { return false }
	if found, _ := h.find([]string{root}, always, never, "other rules"); !slices.Equal(found, []string{file}) {
		t.Errorf("after a change of the rules: %q", found)
	}
	if found, _ := h.find([]string{root}, never, never, "other rules"); len(found) != 0 {
		t.Errorf("after a grant: %q", found)
	}
}

// Programs that bring a folder of their own keep tokens beside their bin.
func TestNoTokenBesideAProgramIsReadable(t *testing.T) {
	home := t.TempDir()
	write := func(name string) string {
		p := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		return p
	}
	secrets := []string{".cargo/credentials.toml", ".docker/config.json", ".fly/config.yml", ".pulumi/credentials.json", ".foundry/keystores/a", ".config/git/credentials", ".config/composer/auth.json"}
	programs := []string{".cargo/bin/cargo", ".docker/bin/docker", ".fly/bin/fly", ".pulumi/bin/pulumi", ".foundry/bin/cast", ".config/composer/vendor/bin/x", ".tools/go/bin/go", ".tools/go/src/fmt/print.go", "sdk/go/bin/go", "sdk/go/src/fmt/print.go"}
	var path []string
	for _, s := range secrets {
		write(s)
	}
	for _, p := range programs {
		if f := write(p); filepath.Base(filepath.Dir(f)) == "bin" {
			path = append(path, filepath.Dir(f))
		}
	}
	getenv := func(name string) string {
		if name == "PATH" {
			return strings.Join(path, string(filepath.ListSeparator))
		}
		return ""
	}
	readable, kept := homeReadable(home, getenv), homeSecrets(home, getenv)
	may := func(name string) bool {
		p := filepath.Join(home, name)
		in := func(list []string) bool {
			return slices.ContainsFunc(list, func(dir string) bool { return dir == p || below(dir, p) })
		}
		return in(readable) && !in(kept)
	}
	for _, s := range secrets {
		if may(s) {
			t.Error(s, "is readable for a command that runs without a question")
		}
	}
	for _, p := range programs {
		if !may(p) {
			t.Error(p, "is not readable")
		}
	}
}
