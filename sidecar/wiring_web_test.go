package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// The web tools are in the real program: webfetch always, the searches when an engine is configured.
func TestWebToolsAreThere(t *testing.T) {
	for config, want := range map[string][]string{
		`{}`:                                   {"webfetch"},
		`{"websearch": {"provider": "exa"}}`:   {"codesearch", "webfetch", "websearch"},
		`{"websearch": {"provider": "brave"}}`: {"webfetch", "websearch"},
	} {
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, "c", "pillion"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "c", "pillion", "pillion.jsonc"), []byte(config), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), os.Args[0], "tool", "list")
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PILLION_TEST_MAIN=1", "HOME="+dir, "XDG_CONFIG_HOME="+dir+"/c", "XDG_STATE_HOME="+dir+"/s", "OPENCODE_ENABLE_EXA=")
		out, err := cmd.CombinedOutput()
		got := regexp.MustCompile(`(?m)^(webfetch|websearch|codesearch)\b`).FindAllString(string(out), -1)
		slices.Sort(got)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v %v\n%s", config, got, err, out)
		}
	}
}
