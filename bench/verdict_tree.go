package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const howTree = "New files, first files of new folders, deleted, renamed and moved files in real projects, one edit of each kind for each project: duplicate declarations, missing imports, tests, build tags, files that take an import over, and edits that break nothing. " +
	"Truth and words are those of the section above. Each edit is judged twice: as a proposal, when nothing of it is on the disk, and *written*, after it is on the disk and the servers were told. " +
	"Every case is kept in `.cache/verdict-tree.jsonl`."

// treeProjects are those of the corpora in which files are made, deleted and renamed.
var treeProjects = []string{"go github.com/go-chi/chi/v5@v5.1.0", "go github.com/spf13/cobra@v1.8.1", "go github.com/yuin/goldmark@v1.7.8", "ts 5 redux@5.0.1", "ts 7 redux@5.0.1", "ts 5 @tanstack/table-core@8.20.5", "ts 7 @tanstack/table-core@8.20.5",
	"ts 5 immer@10.1.1", "ts 7 immer@10.1.1", "python Debian's click", "python Debian's requests", "c argon2@0.41.1", "c node-expat@2.4.1", "c lz4@0.6.5"}

// verdictTree measures the verdict on edits that make, delete and rename files.
func (b *bench) verdictTree() {
	_, _, with := corpusServers()
	var list []corpus
	for _, c := range corpora(with) {
		if slices.Contains(treeProjects, c.language+" "+c.name) {
			c.edits = len(treeKinds[strings.Fields(c.language)[0]])
			c.watch = nil // where a file does not parse, tsc says nothing of its marker; and which files there are a watcher may hear late
			list = append(list, c)
		}
	}
	b.verdictsOn(&verdicts{tree: true}, list, "verdict-tree")
}

// tree is a project to whose folders and files edits are made.
type tree struct {
	r     *rand.Rand
	files []string          // relative, with slashes
	texts map[string]string // by file
	goMod string
	has   map[string]bool // every file and folder of the project, whatever its language
}

// treeKind is a way to make, delete or rename files. make returns false where the project has no place for it.
type treeKind struct {
	name string
	make func(t *tree) (mutant, bool)
}

// readTree reads a project.
func readTree(dir, kind string, r *rand.Rand) (*tree, error) {
	t := &tree{r: r, texts: map[string]string{}, has: map[string]bool{}}
	list, err := sources(dir, kind)
	if err != nil {
		return nil, err
	}
	for _, p := range list {
		b, err := os.ReadFile(p)
		if err != nil {
			return nil, err
		}
		rel, _ := filepath.Rel(dir, p)
		rel = filepath.ToSlash(rel)
		t.files = append(t.files, rel)
		t.texts[rel] = string(b)
	}
	goMod, _ := os.ReadFile(filepath.Join(dir, "go.mod")) // only Go has one
	t.goMod = string(goMod)
	err = filepath.WalkDir(dir, func(p string, _ os.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, p)
		t.has[filepath.ToSlash(rel)] = true
		return err
	})
	return t, err
}

// any is one of the files; those that a pattern does not match are left out, and found are the pattern's groups at one of its places.
func (t *tree) any(pattern string) (file string, found []string, ok bool) {
	find := regexp.MustCompile(pattern)
	for range 60 {
		file = t.files[t.r.IntN(len(t.files))]
		if all := find.FindAllStringSubmatch(t.texts[file], -1); len(all) > 0 {
			return file, all[t.r.IntN(len(all))], true
		}
	}
	return "", nil, false
}

// made is a new file.
func (t *tree) made(file, format string, a ...any) (mutant, bool) {
	file = strings.TrimPrefix(file, "./")
	return mutant{edited: edited{file: file, text: fmt.Sprintf(format, a...), made: true}}, !t.has[file]
}

// and adds a further new file to an edit.
func (t *tree) and(m mutant, ok bool, file, format string, a ...any) (mutant, bool) {
	other, free := t.made(file, format, a...)
	m.more = append(m.more, other.edited)
	return m, ok && free
}

// deleted is the deletion of any file.
func (t *tree) deleted() (mutant, bool) {
	file := t.files[t.r.IntN(len(t.files))]
	return mutant{edited: edited{file: file, old: t.texts[file], gone: true}}, true
}

// moved is the renaming of any file, with its text as it is.
func (t *tree) moved(to func(dir, stem, ext string) string) (mutant, bool) {
	m, _ := t.deleted()
	dir, base := path.Split(m.file)
	ext := path.Ext(base)
	name := path.Clean(to(dir, strings.TrimSuffix(base, ext), ext))
	m.more = []edited{{file: name, text: m.old, made: true, from: m.file}}
	return m, !t.has[name]
}

// inFolderOf is a file name in the folder of a file.
func inFolderOf(file, name string) string { return path.Join(path.Dir(file), name) }

const goPackage = `(?m)^package (\w+)$`

// newIn is a new file in the package of any Go file that is no test; format begins behind the package clause.
func newIn(name, format string) func(t *tree) (mutant, bool) {
	return func(t *tree) (mutant, bool) {
		file, p, ok := t.any(goPackage)
		if !ok || strings.HasSuffix(file, "_test.go") {
			return mutant{}, false
		}
		return t.made(inFolderOf(file, name), "%s", strings.Replace(format, "PACKAGE", p[1], 1))
	}
}

// plainIn is a new file beside any file, with this text.
func plainIn(name, text string) func(t *tree) (mutant, bool) {
	return func(t *tree) (mutant, bool) {
		return t.made(inFolderOf(t.files[t.r.IntN(len(t.files))], name), "%s", text)
	}
}

// importOf is the path by which one TypeScript file imports another.
func importOf(from, to string) string {
	rel, _ := filepath.Rel(path.Dir(from), strings.TrimSuffix(to, path.Ext(to)))
	if rel = filepath.ToSlash(rel); !strings.HasPrefix(rel, ".") {
		rel = "./" + rel
	}
	return rel
}

const (
	tsExport  = `(?m)^export (?:async )?(?:function|class|const) (\w+)`
	pyDefined = `(?m)^(?:def|class) ([A-Za-z]\w*)`
)

// treeKinds by language. What an edit breaks is for the compiler to say.
var treeKinds = map[string][]treeKind{
	"go": {
		{"new file: a name declared twice", func(t *tree) (mutant, bool) {
			file, d, ok := t.any(`(?m)^(?:func|type) ([A-Za-z]\w*)[^\n]*`)
			if !ok || d[1] == "init" || d[1] == "main" {
				return mutant{}, false
			}
			p := regexp.MustCompile(goPackage).FindStringSubmatch(t.texts[file])
			name := map[bool]string{false: "zz_qx.go", true: "zz_qx_test.go"}[strings.HasSuffix(file, "_test.go")]
			return t.made(inFolderOf(file, name), "package %s\n\nvar %s int\n", p[1], d[1])
		}},
		{"new file: a name that is not declared", newIn("zz_qx.go", "package PACKAGE\n\nvar _ = undefinedQx\n")},
		{"new file: a package that does not exist", func(t *tree) (mutant, bool) {
			module, known := t.module()
			m, ok := newIn("zz_qx.go", "package PACKAGE\n\nimport _ \""+module+"/qxmissing\"\n")(t)
			return m, ok && known
		}},
		{"new file: an unused import", newIn("aa_qx.go", "package PACKAGE\n\nimport \"net/mail\"\n")},
		{"new file: an import cycle", func(t *tree) (mutant, bool) {
			module, known := t.module()
			file, i, ok := t.any(`"` + regexp.QuoteMeta(module) + `/([^"\n]+)"`)
			if !known || !ok || strings.HasSuffix(file, "_test.go") {
				return mutant{}, false
			}
			back := path.Join(module, path.Dir(file))
			for _, f := range t.files {
				if path.Dir(f) == i[1] && !strings.HasSuffix(f, "_test.go") {
					p := regexp.MustCompile(goPackage).FindStringSubmatch(t.texts[f])
					return t.made(inFolderOf(f, "zz_qx.go"), "package %s\n\nimport _ %q\n", p[1], back)
				}
			}
			return mutant{}, false
		}},
		{"new file: another package", newIn("zz_qx.go", "package qxother\n")},
		{"new file: an embedded file that does not exist", newIn("zz_qx.go", "package PACKAGE\n\nimport _ \"embed\"\n\n//go:embed qxmissing.txt\nvar fileQx string\n")},
		{"new file: excluded by its build tag", newIn("zz_qx.go", "//go:build qxoff\n\npackage PACKAGE\n\nvar _ = undefinedQx\n")},
		{"new file: excluded by its name", newIn("zz_qx_windows.go", "package PACKAGE\n\nvar FineQx = 1\n")},
		{"new file: included by its build tag", newIn("zz_qx.go", "//go:build unix && !qxoff\n\npackage PACKAGE\n\nvar _ int = \"\"\n")},
		{"new file: a test", newIn("zz_qx_test.go", "package PACKAGE\n\nimport \"testing\"\n\nfunc TestQx(t *testing.T) {\n\tt.Wrong(1)\n}\n")},
		{"new file: a test in a package of its own", newIn("zz_qx_test.go", "package PACKAGE_test\n\nimport \"testing\"\n\nfunc TestQx(t *testing.T) {\n\tvar n int = \"\"\n\tt.Log(n)\n}\n")},
		{"new file: fine", newIn("zz_qx.go", "package PACKAGE\n\n// FineQx is nothing.\nfunc FineQx() int { return 1 }\n")},
		{"new file: a fine test", newIn("zz_qx_test.go", "package PACKAGE\n\nimport \"testing\"\n\nfunc TestQx(t *testing.T) { t.Log(1) }\n")},
		{"new package: a wrong type", func(t *tree) (mutant, bool) {
			return t.made("qxpkg/deep/a.go", "package deep\n\nvar X int = \"\"\n")
		}},
		{"new package: fine", func(t *tree) (mutant, bool) { return t.made("qxpkg/a.go", "package qxpkg\n\nvar X int\n") }},
		{"new package: used wrongly", func(t *tree) (mutant, bool) { return t.packageWithUser("qxpkg.Missing") }},
		{"new package: used", func(t *tree) (mutant, bool) { return t.packageWithUser("qxpkg.X") }},
		{"a file deleted", (*tree).deleted},
		{"a file renamed", func(t *tree) (mutant, bool) {
			return t.moved(func(dir, stem, ext string) string {
				if s, ok := strings.CutSuffix(stem, "_test"); ok {
					return dir + s + "qx_test" + ext
				}
				return dir + stem + "qx" + ext
			})
		}},
		{"a file renamed to a test", func(t *tree) (mutant, bool) {
			return t.moved(func(dir, stem, ext string) string { return dir + stem + "qx_test" + ext })
		}},
		{"a file moved into a folder", func(t *tree) (mutant, bool) {
			return t.moved(func(dir, stem, ext string) string { return dir + "qxdir/" + stem + ext })
		}},
	},
	"ts": {
		{"new file: a name that is not declared", plainIn("zzQx.ts", "export const a = undefinedQx\n")},
		{"new file: a module that does not exist", plainIn("zzQx.ts", "export * from './qxMissing'\n")},
		{"new file: a wrong type", plainIn("zzQx.ts", "export const a: number = ''\n")},
		{"new file: broken syntax", plainIn("zzQx.ts", "export function f( {\n")},
		{"new file: imports what is not exported", func(t *tree) (mutant, bool) {
			file, _, found := t.any(tsExport)
			m, ok := t.made(inFolderOf(file, "zzQx.ts"), "import { missingQx } from '%s'\nexport const a = missingQx\n", importOf(inFolderOf(file, "zzQx.ts"), file))
			return m, ok && found
		}},
		{"new file: imports what is exported", func(t *tree) (mutant, bool) {
			file, x, ok := t.any(tsExport)
			if !ok {
				return mutant{}, false
			}
			return t.made(inFolderOf(file, "zzQx.ts"), "import { %s } from '%s'\nexport const a: unknown = %[1]s\n", x[1], importOf(inFolderOf(file, "zzQx.ts"), file))
		}},
		{"new file: fine", plainIn("zzQx.ts", "export const a = 1\n")},
		{"new file: declares a global twice", plainIn("zzQx.ts", "declare var name: symbol\n")},
		{"new file: widens a global type", func(t *tree) (mutant, bool) {
			name := []string{"Error", "Promise<T>", "Map<K, V>", "ArrayLike<T>", "Iterable<T>", "PropertyDescriptor", "Function", "AbortSignal"}[t.r.IntN(8)]
			file := t.files[t.r.IntN(len(t.files))]
			return t.made(inFolderOf(file, "zzQx.ts"), "export {}\ndeclare global {\n  interface %s { qx: symbol }\n}\n", name)
		}},
		{"new file: takes the import of a folder over", func(t *tree) (mutant, bool) {
			for range 60 {
				if f := t.files[t.r.IntN(len(t.files))]; path.Base(f) == "index.ts" && path.Dir(f) != "." {
					return t.made(path.Dir(f)+".ts", "export const qx = 1\n")
				}
			}
			return mutant{}, false
		}},
		{"new folder: a wrong type", plainIn("qxdir/deep/a.ts", "export const a: number = ''\n")},
		{"new file: used wrongly", func(t *tree) (mutant, bool) {
			file := t.files[t.r.IntN(len(t.files))]
			m, ok := t.made(inFolderOf(file, "qxNew.ts"), "export const a = 1\n")
			return t.and(m, ok, inFolderOf(file, "zzQx.ts"), "import { b } from './qxNew'\nexport const c = b\n")
		}},
		{"new file: used", func(t *tree) (mutant, bool) {
			file := t.files[t.r.IntN(len(t.files))]
			m, ok := t.made(inFolderOf(file, "qxNew.ts"), "export const a = 1\n")
			return t.and(m, ok, inFolderOf(file, "zzQx.ts"), "import { a } from './qxNew'\nexport const c: number = a\n")
		}},
		{"a file deleted", (*tree).deleted},
		{"a file renamed", func(t *tree) (mutant, bool) {
			return t.moved(func(dir, stem, ext string) string { return dir + stem + "Qx" + ext })
		}},
		{"a file moved into a folder", func(t *tree) (mutant, bool) {
			return t.moved(func(dir, stem, ext string) string { return dir + "qxdir/" + stem + ext })
		}},
	},
	"python": {
		{"new file: a name that is not defined", plainIn("zz_qx.py", "a = undefined_qx\n")},
		{"new file: a module that does not exist", plainIn("zz_qx.py", "from . import missing_qx\n")},
		{"new file: a wrong type", plainIn("zz_qx.py", "a: int = ''\n")},
		{"new file: broken syntax", plainIn("zz_qx.py", "def f(:\n")},
		{"new file: imports what is not defined", func(t *tree) (mutant, bool) {
			file, _, found := t.any(pyDefined)
			m, ok := t.made(inFolderOf(file, "zz_qx.py"), "from .%s import missing_qx\n", strings.TrimSuffix(path.Base(file), ".py"))
			return m, ok && found
		}},
		{"new file: imports what is defined", func(t *tree) (mutant, bool) {
			file, x, ok := t.any(pyDefined)
			if !ok || path.Base(file) == "__init__.py" {
				return mutant{}, false
			}
			return t.made(inFolderOf(file, "zz_qx.py"), "from .%s import %s\n\na = %[2]s\n", strings.TrimSuffix(path.Base(file), ".py"), x[1])
		}},
		{"new file: fine", plainIn("zz_qx.py", "a = 1\n")},
		{"new file: a stub", func(t *tree) (mutant, bool) {
			m, _ := t.deleted()
			return t.made(m.file+"i", "qx: int\n")
		}},
		{"new file: takes a module of the library over", func(t *tree) (mutant, bool) {
			_, x, ok := t.any(`(?m)^import (\w+)$`)
			if !ok {
				return mutant{}, false
			}
			return t.made(x[1]+".py", "qx = 1\n")
		}},
		{"new folder: a wrong type", plainIn("qxdir/deep/a.py", "a: int = ''\n")},
		{"new file: used wrongly", func(t *tree) (mutant, bool) {
			file := t.files[t.r.IntN(len(t.files))]
			m, ok := t.made(inFolderOf(file, "qxnew.py"), "a = 1\n")
			return t.and(m, ok, inFolderOf(file, "zz_qx.py"), "from .qxnew import b\n")
		}},
		{"new file: used", func(t *tree) (mutant, bool) {
			file := t.files[t.r.IntN(len(t.files))]
			m, ok := t.made(inFolderOf(file, "qxnew.py"), "a = 1\n")
			return t.and(m, ok, inFolderOf(file, "zz_qx.py"), "from .qxnew import a\n\nb: int = a\n")
		}},
		{"a file deleted", (*tree).deleted},
		{"a file renamed", func(t *tree) (mutant, bool) {
			return t.moved(func(dir, stem, ext string) string { return dir + stem + "_qx" + ext })
		}},
		{"a file moved into a folder", func(t *tree) (mutant, bool) {
			return t.moved(func(dir, stem, ext string) string { return dir + "qxdir/" + stem + ext })
		}},
	},
	"c": {
		{"new file: a name that is not declared", plainIn("zz_qx.c", "int qx(void) { return undefined_qx; }\n")},
		{"new file: a header that does not exist", plainIn("zz_qx.c", "#include \"missing_qx.h\"\n")},
		{"new file: broken syntax", plainIn("zz_qx.c", "int qx(void) { return 1 }\n")},
		{"new file: a declaration that differs", func(t *tree) (mutant, bool) {
			for range 60 {
				file, x, ok := t.any(`(?m)^(?:int|void|size_t) (\w+)\(`)
				if ok && strings.HasSuffix(file, ".h") {
					return t.made(inFolderOf(file, "zz_qx.c"), "#include \"%s\"\nstruct qx { int a; };\nstruct qx %s(void);\n", path.Base(file), x[1])
				}
			}
			return mutant{}, false
		}},
		{"new file: fine", plainIn("zz_qx.c", "int qx(void) { return 1; }\n")},
		{"new header: used wrongly", func(t *tree) (mutant, bool) {
			file := t.files[t.r.IntN(len(t.files))]
			m, ok := t.made(inFolderOf(file, "qxnew.h"), "int qx_new(int a);\n")
			return t.and(m, ok, inFolderOf(file, "zz_qx.c"), "#include \"qxnew.h\"\nint qx(void) { return qx_new(1, 2); }\n")
		}},
		{"new header: used", func(t *tree) (mutant, bool) {
			file := t.files[t.r.IntN(len(t.files))]
			m, ok := t.made(inFolderOf(file, "qxnew.h"), "int qx_new(int a);\n")
			return t.and(m, ok, inFolderOf(file, "zz_qx.c"), "#include \"qxnew.h\"\nint qx(void) { return qx_new(1); }\n")
		}},
		{"new header: takes an include over", func(t *tree) (mutant, bool) {
			for range 60 {
				file, x, ok := t.any(`(?m)^#\s*include ["<]([^">\n]+\.h)[">]`)
				if ok && !t.has[inFolderOf(file, x[1])] {
					return t.made(inFolderOf(file, x[1]), "int qx;\n")
				}
			}
			return mutant{}, false
		}},
		{"a file deleted", (*tree).deleted},
		{"a file renamed", func(t *tree) (mutant, bool) {
			return t.moved(func(dir, stem, ext string) string { return dir + stem + "_qx" + ext })
		}},
		{"a file moved into a folder", func(t *tree) (mutant, bool) {
			return t.moved(func(dir, stem, ext string) string { return dir + "qxdir/" + stem + ext })
		}},
	},
}

// module is the path of the project's Go module.
func (t *tree) module() (string, bool) {
	m := regexp.MustCompile(`(?m)^module (\S+)`).FindStringSubmatch(t.goMod)
	if m == nil {
		return "", false
	}
	return m[1], true
}

// packageWithUser is a new Go package that declares X, with a user in another package.
func (t *tree) packageWithUser(use string) (mutant, bool) {
	module, ok := t.module()
	file, p, found := t.any(goPackage)
	if !ok || !found || strings.HasSuffix(file, "_test.go") {
		return mutant{}, false
	}
	m, ok := t.made("qxpkg/a.go", "package qxpkg\n\nvar X int\n")
	return t.and(m, ok, inFolderOf(file, "zz_qx.go"), "package %s\n\nimport %q\n\nvar _ = %s\n", p[1], module+"/qxpkg", use)
}

// treeMutants makes n edits to the files of a project, kind after kind; fewer where the project has no place for them.
func treeMutants(dir, kind string, n int, seed uint64) ([]mutant, error) {
	t, err := readTree(dir, kind, rand.New(rand.NewPCG(seed, 23)))
	if err != nil {
		return nil, err
	}
	kinds := slices.Clone(treeKinds[kind])
	t.r.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	var out []mutant
	for i := 0; len(out) < n && i < 4*len(kinds); i++ {
		k := kinds[i%len(kinds)]
		m, ok := k.make(t)
		if m.kind = k.name; ok && !slices.ContainsFunc(out, func(x mutant) bool { return x.id() == m.id() }) {
			out = append(out, m)
		}
	}
	return out, nil
}
