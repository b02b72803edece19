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

// A new file is imported by whose import finds nothing, or another file, until then.
func TestImportersOfANewFile(t *testing.T) {
	for _, c := range []struct {
		made  string
		files map[string]string // an importer is one that has IMPORTS in its name
		row   Server
	}{
		{"src/x.ts", map[string]string{
			"src/a_IMPORTS.ts": "import { f } from './x'\n", "src/b_IMPORTS.ts": "export * from \"./x.js\"\n", "src/d/c_IMPORTS.tsx": "const x = require('../x')\n",
			"src/d_IMPORTS.ts": "async () => { await import(`./x`) }\n", "lib/e_IMPORTS.ts": "import x from '@app/x'\n", "lib/f_IMPORTS.ts": "import type {\n  X,\n} from 'src/x'\n",
			"src/g.ts": "import './y'\nimport 'xx'\n", "src/d/h.ts": "import './x'\n", "src/i.txt": "import './x'\n", "src/x/index.ts": "export const a = 1\n",
		}, typescript()},
		{"src/d/index.ts", map[string]string{"src/a_IMPORTS.ts": "import './d'\n", "src/d/b_IMPORTS.ts": "import '.'\n", "src/c.ts": "import './d/e'\n", "src/e/d_IMPORTS.ts": "import '../d/index.js'\n", "src/d/f/g_IMPORTS.ts": "import x from \"..\"\n", "src/d/h_IMPORTS.ts": "import './'\n"}, typescript()},
		{"pkg/d/__init__.py", map[string]string{"pkg/__init__.py": "", "pkg/d/a_IMPORTS.py": "from . import x\n", "pkg/d/e/__init__.py": "", "pkg/d/e/b_IMPORTS.py": "from .. import (\n    x)\n", "pkg/d/e/g_IMPORTS.py": "import os\nfrom  ..  import\tx\n", "pkg/d/e/h_IMPORTS.py": "from..import x\n", "pkg/c_IMPORTS.py": "from .d import x\n", "d_IMPORTS.py": "import pkg.d\n", "e.py": "import sys\n"}, pyright()},
		{"pkg/x.py", map[string]string{
			"pkg/__init__.py": "", "pkg/sub/__init__.py": "", "pkg/a_IMPORTS.py": "from .x import f\n", "pkg/b_IMPORTS.py": "from . import (\n    y,\n    x as z,\n)\n",
			"pkg/sub/c_IMPORTS.py": "def f():\n    from ..x import f\n", "d_IMPORTS.py": "import os, pkg.x.y as z\n", "e_IMPORTS.py": "from pkg import x\n", "pkg/f_IMPORTS.py": "import x\n",
			"g.py": "import x\nfrom pkg.y import x\n", "pkg/sub/h.py": "from .x import f\n", "i.py": "import xx  # x\n",
		}, pyright()},
		{"pkg/y.pyi", map[string]string{"pkg/__init__.py": "", "pkg/y.py": "", "pkg/a_IMPORTS.py": "from .y import f\n"}, pyright()},
		{"random.py", map[string]string{"a_IMPORTS.py": "import random\n", "pkg/__init__.py": "", "pkg/b_IMPORTS.py": "from random import choice\n", "c.py": "import secrets\n"}, pyright()},
		{"pkg/random.py", map[string]string{"pkg/__init__.py": "", "a.py": "import random\n"}, pyright()},
	} {
		root := t.TempDir()
		var want []string
		for name, text := range c.files {
			write(t, filepath.Join(root, name), text)
			if strings.Contains(name, "IMPORTS") {
				want = append(want, filepath.Join(root, filepath.FromSlash(name)))
			}
		}
		got, complete := importing(t.Context(), c.row, root, []string{filepath.Join(root, filepath.FromSlash(c.made))})
		slices.Sort(got)
		slices.Sort(want)
		if !complete || !slices.Equal(got, want) {
			t.Errorf("%s:\n%q\nwant %q", c.made, got, want)
		}
	}
}
