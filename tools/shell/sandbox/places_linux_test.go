package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What a tool makes in the home folder on first use has to be there before: the sandbox does not let it.
func TestCachesOfTheMachinesToolsAreThere(t *testing.T) {
	home, bin := t.TempDir(), t.TempDir()
	for _, name := range []string{"npm", "go"} {
		put(t, filepath.Join(bin, name), "#!/bin/sh\n")
		if err := os.Chmod(filepath.Join(bin, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin)
	places := cachePlaces(home, func(name string) string { return map[string]string{"GOCACHE": "/elsewhere"}[name] })
	for name, want := range map[string]bool{".npm": true, "go/pkg": true, ".cache/go-build": false, ".cargo/registry": false, ".cache/pip": false} {
		if _, err := os.Stat(filepath.Join(home, name)); err == nil != want {
			t.Errorf("%s: %v, want %v", name, err == nil, want)
		}
	}
	if len(existing(places)) < 2 {
		t.Errorf("writable are %q", existing(places))
	}
}

// The caches of tools are writable where the installed tools themselves keep them, with their variables and without.
func TestToolsKeepTheirCachesInPlaces(t *testing.T) {
	home, elsewhere := t.TempDir(), t.TempDir()
	found := 0
	for _, tool := range []struct {
		variables string
		ask       []string
	}{
		{"GOCACHE XDG_CACHE_HOME", []string{"go", "env", "GOCACHE"}}, {"GOMODCACHE GOPATH", []string{"go", "env", "GOMODCACHE"}}, {"npm_config_cache", []string{"npm", "config", "get", "cache"}},
		{"PIP_CACHE_DIR XDG_CACHE_HOME", []string{"pip", "cache", "dir"}}, {"UV_CACHE_DIR XDG_CACHE_HOME", []string{"uv", "cache", "dir"}}, {"CCACHE_DIR XDG_CACHE_HOME", []string{"ccache", "-k", "cache_dir"}},
	} {
		if _, err := exec.LookPath(tool.ask[0]); err != nil {
			continue
		}
		for _, variable := range append(strings.Fields(tool.variables), "") {
			env := map[string]string{"HOME": home, "PATH": os.Getenv("PATH")}
			if variable != "" {
				env[variable] = filepath.Join(elsewhere, variable)
			}
			cmd := exec.Command(tool.ask[0], tool.ask[1:]...)
			cmd.Dir, cmd.Env = home, nil
			for name, value := range env {
				cmd.Env = append(cmd.Env, name+"="+value)
			}
			out, err := cmd.Output()
			if err != nil {
				t.Logf("%q: %v", tool.ask, err)
				continue
			}
			cache := strings.TrimSpace(string(out))
			found++
			if !slices.ContainsFunc(cachePlaces(home, func(name string) string { return env[name] }), func(place string) bool {
				return place == cache || strings.HasPrefix(cache, place+"/")
			}) {
				t.Errorf("with %q, %q keeps its cache in %s, which is not writable", variable, tool.ask, cache)
			}
		}
	}
	if found < 3 {
		t.Errorf("only %d answers", found)
	}
}

// A person is told of each means that is missing, in words of its own.
func TestSupportIsDescribed(t *testing.T) {
	all := Support{Landlock: minLandlock, Mounts: true, Netns: true, Overlay: true, Cgroup: "/x"}
	for what, s := range map[string]Support{
		"protected files in the project are read-only; each project has its own view of package caches; no network but its own loopback; process limit by control group": all,
		"protected files in the project are put back":               {Landlock: minLandlock},
		"files in the project are read-only; network not covered; ": {Landlock: 3, Mounts: true},
		"; no TCP (UDP is not covered); process limit by RLIMIT":    {Landlock: 4},
		"Landlock 9: writes only in":                                {Landlock: 9},
		"(UDP is not covered)":                                      {Landlock: 9, Cgroup: "x"},
		"; no TCP and UDP; process limit by control group":          {Landlock: 10, Cgroup: "x"},
		"sandbox-exec: writes and network":                          {Profile: true, Landlock: 3},
		"Linux 5.1 is too old":                                      {Landlock: minLandlock - 1, Mounts: true, Why: "Linux 5.1 is too old"},
	} {
		if got := s.String(); !strings.Contains(got, what) {
			t.Errorf("%+v is described as %q, want %q", s, got, what)
		}
	}
}

func TestACommandThatWentAgainstTheProcessLimitIsTold(t *testing.T) {
	box := &Box{Processes: 100}
	ended := Result{Output: "bash: fork: retry: Resource temporarily unavailable\nend\n"}
	if said := box.Passed(ended); !strings.Contains(said, "100 processes") {
		t.Errorf("it said %q", said)
	}
	if said := box.Passed(Result{Output: "end\n"}); said != "" {
		t.Errorf("it said %q", said)
	}
	ended.Exit = 1
	if said := box.Passed(ended); said != "" || box.Stopped(ended) == "" {
		t.Errorf("it said %q, beside %q", said, box.Stopped(ended))
	}
}

func TestAForgedGitFileOpensNothing(t *testing.T) {
	base := t.TempDir()
	victim, root := filepath.Join(base, "victim"), filepath.Join(base, "project")
	put(t, filepath.Join(victim, "config"), "")
	put(t, filepath.Join(victim, "commondir"), ".")
	put(t, filepath.Join(root, ".git"), "gitdir: "+victim+"\n")
	if g := gitPlaces(root); len(g.writable) != 0 {
		t.Errorf("writable %q", g.writable)
	}
	os.Remove(filepath.Join(root, ".git"))
	put(t, filepath.Join(root, ".git", "worktrees", "w", "gitdir"), filepath.Join(victim, ".git")+"\n")
	put(t, filepath.Join(victim, ".git"), "gitdir: /elsewhere\n")
	if g := gitPlaces(root); len(g.writable) != 0 {
		t.Errorf("writable %q", g.writable)
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
