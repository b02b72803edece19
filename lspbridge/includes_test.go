package lspbridge

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestIncludeUsers(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"inc/a.h":      "#pragma once\nint a(void);\n",
		"inc/b.h":      "#include \"a.h\"\n",
		"other/a.h":    "",
		"src/direct.c": "#include <a.h>\n",
		"src/far.c":    "  #  include \"../inc/b.h\"\n",
		"src/not.c":    "#include \"other/a.h\"\n// #include \"a.h\"\nchar *s = \"#include <a.h>\";\n",
		"src/list.def": "#include \"inc/a.h\"\n",
		"src/def.cpp":  "#include \"list.def\"\n",
		"src/round.h":  "#include \"round.h\"\n#include \"b.h\"\n",
		"notes.txt":    "#include \"a.h\"\n",
		"src/xa.c":     "#include \"xa.h\"\n",
		"src/objc.m":   "#import \"a.h\"\n",
	} {
		write(t, filepath.Join(root, name), text)
	}
	var i includes
	look := func() string {
		users, complete := i.users(t.Context(), clangd(), root, []string{filepath.Join(root, "inc", "a.h")})
		if !complete {
			t.Error("not complete")
		}
		for n, u := range users {
			users[n], _ = filepath.Rel(root, u)
		}
		slices.Sort(users)
		return filepath.ToSlash(strings.Join(users, " "))
	}
	const want = "inc/b.h src/def.cpp src/direct.c src/far.c src/list.def src/objc.m src/round.h"
	for range 2 { // read, and remembered
		if got := look(); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
	write(t, filepath.Join(root, "src", "direct.c"), "int direct;\n// a longer text\n")
	if got := look(); got != strings.Replace(want, "src/direct.c ", "", 1) {
		t.Errorf("after a change: %s", got)
	}
}
