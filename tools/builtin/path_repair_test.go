package builtin

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/text/unicode/norm"

	"github.com/pillion-dev/pillion/tools/permission"
)

// Names as models write them lead to the file that they mean, never to a folder "~" or "file:" in the project.
func TestPathsAsModelsWriteThem(t *testing.T) {
	b := newBench(t, nil)
	b.env.Home = filepath.Join(filepath.Dir(b.dir), "home")
	if err := os.MkdirAll(b.env.Home, 0o755); err != nil {
		t.Fatal(err)
	}
	b.put("a b.txt", "here\n")
	b.put(norm.NFD.String("café.txt"), "here\n")
	b.put("'odd'", "odd\n")
	b.put("~odd/x", "odd\n")
	b.put("../home/h.txt", "home\n")
	slash := filepath.ToSlash(b.dir)
	for name, want := range map[string]string{
		"a b.txt": "here", " a b.txt\n": "here", "`a b.txt`": "here", `\"a b.txt\"`: "here", "file://" + slash + "/a%20b.txt": "here", "file://localhost" + slash + "/a%20b.txt": "here",
		"café.txt": "here", "'odd'": "odd", "~odd/x": "odd", "~/h.txt": "home", "$HOME/h.txt": "home", "${HOME}/h.txt": "home",
	} {
		r, err := b.call(Read(b.env), `{"filePath":"`+strings.ReplaceAll(name, "\n", `\n`)+`"}`)
		if err != nil || !strings.Contains(r.Output, "1: "+want) {
			t.Errorf("%q: %v\n%s", name, err, r.Output)
		}
	}
	for _, name := range []string{"file://" + slash + "/new1.txt", "new2.txt ", "~/new3.txt", "$HOME/new4.txt"} {
		if _, err := b.call(Write(b.env), `{"filePath":"`+name+`","content":"x\n"}`); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	b.text("new1.txt")
	b.text("new2.txt")
	b.text("../home/new3.txt")
	b.text("../home/new4.txt")
	for _, name := range []string{"~", "file:", "$HOME"} {
		if _, err := os.Lstat(filepath.Join(b.dir, name)); err == nil {
			t.Errorf("there is a folder %q in the project", name)
		}
	}
}

// A name that is expanded is judged by where it leads.
func TestAnExpandedPathIsAskedAsOutside(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	b := newBench(t, func(r permission.Request) (permission.Reply, error) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, r.Permission)
		return permission.Reply{}, permission.ErrRejected
	})
	b.env.Home = filepath.Join(filepath.Dir(b.dir), "home")
	for _, name := range []string{"~/x", "file:///etc/passwd"} {
		asked = nil
		if _, err := b.call(Write(b.env), `{"filePath":"`+name+`","content":"x"}`); kindOf(err) != "rejected" || len(asked) != 1 || asked[0] != "external_directory" {
			t.Errorf("%s: %v, asked %v", name, err, asked)
		}
	}
}

func TestWindowsPath(t *testing.T) {
	for given, want := range map[string]string{
		"/C:/x/y": "C:/x/y", "/c:/x": "c:/x", `/c:\x`: `c:\x`, "/c/Users/me": "C:/Users/me", "/c": "C:/", "/d/": "D:/",
		"/etc/hosts": "/etc/hosts", "c/x": "c/x", "/": "/", "": "", "/c:": "/c:", "/1/x": "/1/x", "C:/x": "C:/x",
	} {
		if got := windowsPath(given); got != want {
			t.Errorf("windowsPath(%q) = %q, want %q", given, got, want)
		}
	}
}
