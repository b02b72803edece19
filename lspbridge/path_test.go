package lspbridge

import (
	"path/filepath"
	"runtime"
	"testing"
)

// Servers name files in many ways.
func TestURIsOfServers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("names of another system")
	}
	for given, want := range map[string]string{
		"file:///a%20b/c.go": "/a b/c.go", "file:///a b/c.go": "/a b/c.go", "file:/a/b.go": "/a/b.go", "FILE:///a/b.go": "/a/b.go", "file:///a/../b.go": "/b.go",
		"file://localhost/a/b.go": "/a/b.go", "file://LOCALHOST/a%20b": "/a b", "file://elsewhere/share/b.go": "",
		"file:///%C3%A9.go": "/é.go", "file:///é.go": "/é.go", "file:///a%23b.go": "/a#b.go", "file:///no/such#L3": "/no/such", "file:///a%25b.go": "/a%b.go", "file:///a%ZZ.go": "/a%ZZ.go",
		"file:///a%00b": "", "untitled:a": "", "/a/b.go": "", "file:": "", "": "",
	} {
		if got := uriPath(given); got != want {
			t.Errorf("%s names %q, want %q", given, got, want)
		}
	}
	sharp := filepath.Join(t.TempDir(), "c# and f?.fs")
	write(t, sharp, "")
	for _, u := range []string{"file://" + sharp, string(pathURI(sharp))} {
		if got := uriPath(u); got != sharp {
			t.Errorf("%s names %q", u, got)
		}
	}
}
