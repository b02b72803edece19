package lspbridge

import (
	"path/filepath"
	"runtime"
	"strings"
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

// scripts/windows-test.sh runs it.
func TestWindowsURIsOfServers(t *testing.T) {
	if runtime.GOOS != "windows" {
		t.Skip("on Windows only")
	}
	for given, want := range map[string]string{
		"file:///c%3A/a%20b/c.go": `C:\a b\c.go`, "file:///C:/a.go": `C:\a.go`, "file:///c:/a/../b.go": `C:\b.go`, "file:/c:/a.go": `C:\a.go`, "file://localhost/c%3a/a.go": `C:\a.go`,
		"file:///c%3A/%C3%A9.go": `C:\é.go`, "file://server/share/a.go": `\\server\share\a.go`, "file:///a.go": "", "file:": "",
	} {
		if got := uriPath(given); !strings.EqualFold(got, want) {
			t.Errorf("%s names %q, want %q", given, got, want)
		}
	}
	for _, path := range []string{`C:\a b\c#d.go`, `c:\é.go`, `\\server\share\a.go`} {
		if got := uriPath(string(pathURI(path))); !strings.EqualFold(got, path) {
			t.Errorf("%s becomes %s", path, got)
		}
	}
}
