package app

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// A server is fetched only after a yes; go is a script here that notes that it ran.
func TestInstallServerAsks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the package manager of this test is a shell script")
	}
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "go"), []byte("#!/bin/sh\nprintf '#!/bin/sh\\n' > \"$GOBIN/gopls\"; chmod +x \"$GOBIN/gopls\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":/bin:/usr/bin")
	for name, c := range map[string]struct {
		id, answer string
		yes, Texts bool
		says, err  string
		installed  bool
	}{
		"yes":             {id: "gopls", answer: "y\n", Texts: true, says: "Install it? [y/N] Installed: ", installed: true},
		"yes without end": {id: "gopls", answer: "YES", Texts: true, says: "Installed: ", installed: true},
		"no":              {id: "gopls", answer: "n\n", Texts: true, err: "nothing was installed"},
		"an empty line":   {id: "gopls", answer: "\n", Texts: true, err: "nothing was installed"},
		"an end":          {id: "gopls", Texts: true, err: "nothing was installed"},
		"no terminal":     {id: "gopls", err: "again with --yes"},
		"said before":     {id: "gopls", yes: true, says: "GOBIN=", installed: true},
		"not from here":   {id: "rust-analyzer", yes: true, err: "rustup component add rust-analyzer"},
		"no such server":  {id: "emacs", yes: true, err: "unknown language server \"emacs\""},
	} {
		cache := filepath.Join(t.TempDir(), "servers")
		var out strings.Builder
		var err error
		if c.Texts {
			err = InstallServer(t.Context(), c.id, cache, c.yes, strings.NewReader(c.answer), &out)
		} else {
			err = InstallServer(t.Context(), c.id, cache, c.yes, nil, &out)
		}
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) || !strings.Contains(out.String(), c.says) {
			t.Errorf("%s: %v\n%s", name, err, out.String())
		}
		if _, err := os.Stat(filepath.Join(cache, "go", "bin", "gopls")); (err == nil) != c.installed {
			t.Errorf("%s: installed is %v", name, err == nil)
		}
	}
}
