package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A person with one language reads about that language's server. The other servers are one line, or --all; a dependency's
// files do not count.
func TestDoctorListsTheServersThatTheProjectNeeds(t *testing.T) {
	cwd := filepath.Join(atHome(t), "project")
	put(t, filepath.Join(cwd, "main.go"), "package main\n")
	put(t, filepath.Join(cwd, "web/page.vue"), "<template/>\n")
	put(t, filepath.Join(cwd, ".gitignore"), "vendored/\n")
	put(t, filepath.Join(cwd, "vendored/lib.rs"), "")
	doctor := func(args ...string) string {
		c := exec.Command(os.Args[0], append([]string{"doctor", "-C", cwd}, args...)...)
		c.Env = append(os.Environ(), "PILLION_TEST_MAIN=1")
		out, err := c.Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	some, all := doctor(), doctor("--all")
	for server, needed := range map[string]bool{"gopls": true, "vue": true, "rust-analyzer": false, "ocaml-lsp": false} {
		line := "language server " + server + " "
		if strings.Contains(some, line) != needed || !strings.Contains(all, line) {
			t.Errorf("%s: in the short list %t, in the long one %t", server, strings.Contains(some, line), strings.Contains(all, line))
		}
	}
	if !strings.Contains(some, "for files that this project does not have") || strings.Contains(all, "for files that this project does not have") {
		t.Errorf("the other servers are not counted in one line:\n%s", some)
	}
	var found []finding
	if err := json.Unmarshal([]byte(doctor("--json")), &found); err != nil {
		t.Fatal(err)
	}
	files := map[string]int{}
	for _, f := range found {
		files[f.Name] = f.Files
	}
	if n, known := files["language server rust-analyzer"]; files["language server gopls"] != 1 || n != 0 || !known {
		t.Errorf("files of each server: %v", files)
	}
}
