package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"go/build"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/lspbridge"
)

// mutation is a way to edit a file: what is found is replaced by what to makes of it.
type mutation struct {
	kind    string
	find    *regexp.Regexp
	to      string // with $1 …
	harmful bool
}

// renamed is what a name is replaced by.
const renamed = "${1}${2}Qx"

// mutations by language. Each is one line of a text; whether it breaks the build is for the compiler to say.
var mutations = map[string][]mutation{
	"go": {
		{"rename a declaration", regexp.MustCompile(`(?m)^(func (?:\([^)]*\) )?)([A-Za-z]\w*)`), renamed, true},
		{"rename a type", regexp.MustCompile(`(?m)^(type )([A-Za-z]\w*)`), renamed, true},
		{"add a parameter", regexp.MustCompile(`(?m)^(func (?:\([^)]*\) )?\w+\()(\w)`), "${1}extraQx struct{}, ${2}", true},
		{"change a type", regexp.MustCompile(`(?m)\b(\w+ )(int|bool|string)\b`), "${1}chan struct{}", true},
		{"mistype a name", regexp.MustCompile(`(?m)^(\t+(?:return |if )?)([a-z]\w+)\b`), renamed, true},
		{"delete a line", regexp.MustCompile(`(?m)^\t+\w[^\n{}]*\n`), "", true},
		{"remove an import", regexp.MustCompile(`(?m)^\t"[\w./-]+"\n`), "", true},
		{"rename a field", regexp.MustCompile(`(?m)^(\t)([A-Za-z]\w*)( +[\w.*\[\]]+(?: +` + "`[^`\\n]*`" + `)?\n)`), "${1}${2}Qx${3}", true},
		{"return less", regexp.MustCompile(`(?m)^(\t+return )[^\n,(){]+, `), "${1}", true},
	},
	"ts": {
		{"rename a declaration", regexp.MustCompile(`(?m)^(export (?:default )?(?:async )?(?:function|const|class|interface|type|enum) )(\w+)`), renamed, true},
		{"add a parameter", regexp.MustCompile(`(?m)^((?:export )?(?:default )?function \w+\()(\w)`), "${1}extraQx: symbol, ${2}", true},
		{"change a type", regexp.MustCompile(`(?m): (?:string|number|boolean)\b`), ": symbol", true},
		{"mistype a name", regexp.MustCompile(`(?m)^(\s+(?:return |if \())([a-z]\w+)\b`), renamed, true},
		{"delete a line", regexp.MustCompile(`(?m)^  \w[^\n{}()]*;\n`), "", true},
		{"remove an export", regexp.MustCompile(`(?m)^export ((?:async )?(?:function|const|class|interface|type|enum) )`), "$1", true},
		{"rename a member", regexp.MustCompile(`(?m)^(  (?:readonly )?)(\w+)(\??: )`), "${1}${2}Qx${3}", true},
	},
	"js": {
		{"rename a declaration", regexp.MustCompile(`(?m)^((?:export )?(?:default )?(?:async )?(?:function|const|class) )(\w+)`), renamed, true},
		{"change a type in a comment", regexp.MustCompile(`\{(?:string|number|boolean)\}`), "{symbol}", true},
		{"mistype a name", regexp.MustCompile(`(?m)^(\s+(?:return |if \())([a-z]\w+)\b`), renamed, true},
		{"delete a line", regexp.MustCompile(`(?m)^[ \t]+(?:const|let|\w+\.)[^\n{}()]*;?\n`), "", true},
		{"remove an export", regexp.MustCompile(`(?m)^export ((?:async )?(?:function|const|class) )`), "$1", true},
		{"rename a member", regexp.MustCompile(`(?m)^(\t|  )(\w+)(\(.*\) \{\n)`), "${1}${2}Qx${3}", true},
	},
	"python": {
		{"rename a declaration", regexp.MustCompile(`(?m)^(def |class )([A-Za-z]\w*)`), renamed, true},
		{"mistype a name", regexp.MustCompile(`(?m)^(    +(?:return |if ))([a-z]\w+)\b`), renamed, true},
		{"delete a line", regexp.MustCompile(`(?m)^    +\w[^\n:()\[\]{}\\]*\n`), "", true},
		{"remove an import", regexp.MustCompile(`(?m)^(?:import \w+|from [\w.]+ import [\w, ]+)\n`), "", true},
		{"break the syntax", regexp.MustCompile(`(?m)^(def \w+)\(`), "${1}", true},
	},
	// What PHP rejects when it compiles a file. Names of other files are looked up only when a line is run, so no compiler says anything of them.
	"php": {
		{"delete a semicolon", regexp.MustCompile(`(?m)^( +(?:return\b|\$\w)[^\n;{]*);\n`), "${1}\n", true},
		{"mistype a keyword", regexp.MustCompile(`(?m)^( +(?:public|private|protected) (?:static )?)function `), "${1}functoin ", true},
		{"delete a brace", regexp.MustCompile(`(?m)^    \{\n`), "", true},
		{"open a string", regexp.MustCompile(`(?m)( = '[^'\n]*)';\n`), "${1};\n", true},
		{"delete a parenthesis", regexp.MustCompile(`(?m)^( +(?:if|foreach) \([^\n{]*)\) \{\n`), "${1} {\n", true},
		{"declare twice", regexp.MustCompile(`(?m)^((?:    use [\w\\]+;\n)?    (?:public|protected|private) const (\w+) = [^\n;]+;\n)`), "${1}${1}", true},
	},
	"c": {
		{"rename a declaration", regexp.MustCompile(`(?m)^((?:static |extern |inline )*(?:const )?(?:unsigned )?(?:int|void|size_t|bool|char|uint32_t|TS\w+|ZSTD_\w+)\s\*?)(\w+)\(`), "${1}${2}Qx(", true},
		{"rename a field", regexp.MustCompile(`(?m)^(  (?:\w+ )+\*?)(\w+);`), "${1}${2}Qx;", true},
		{"mistype a name", regexp.MustCompile(`(?m)^(  +(?:return |if \())([a-z]\w+)\b`), renamed, true},
		{"delete a line", regexp.MustCompile(`(?m)^  +\w[^\n{}()]*;\n`), "", true},
	},
}

// harmless are edits that break nothing.
var harmless = []mutation{
	{"a comment", regexp.MustCompile(`\n\n`), "\n\n%c nothing changes\n", false},
	{"a blank line", regexp.MustCompile(`\n\n`), "\n\n\n", false},
}

var commentOf = map[string]string{"go": "//", "ts": "//", "js": "//", "python": "#", "c": "//", "php": "//"}

// extensions of the files that are edited.
var sourceOf = map[string][]string{"go": {".go"}, "ts": {".ts", ".tsx"}, "js": {".js", ".jsx", ".mjs"}, "python": {".py"}, "c": {".c", ".h", ".cc", ".cpp", ".hpp"}, "php": {".php"}}

// edited is a file in an edit. One that is made has no old text, one that is gone no new one.
type edited struct {
	file       string // relative to the project, with slashes
	old, text  string
	made, gone bool
	from       string // the old name of a renamed file, whose deletion is in the same edit
}

// mutant is one edit of a project.
type mutant struct {
	edited
	kind string
	more []edited // further files
}

// id tells the edits of a project apart.
func (m mutant) id() string {
	words := m.file + "\x00" + m.text
	for _, f := range m.more {
		words += fmt.Sprint("\x00", f.file, "\x00", f.text)
	}
	if m.gone {
		words += "\x00gone"
	}
	sum := sha256.Sum256([]byte(words))
	return hex.EncodeToString(sum[:6])
}

// files are all files of an edit.
func (m mutant) files() []edited { return append([]edited{m.edited}, m.more...) }

// put makes the edit in a copy of the project.
func (m mutant) put(dir string) error {
	for _, f := range m.files() {
		if err := f.write(dir, f.text, f.gone); err != nil {
			return err
		}
	}
	return nil
}

// takeBack makes the project what it was before the edit. Folders that the edit has made are removed.
func (m mutant) takeBack(dir string) error {
	for _, f := range m.files() {
		if err := f.write(dir, f.old, f.made); err != nil {
			return err
		}
	}
	return nil
}

// reverse is the edit that takes this one back.
func (m mutant) reverse() mutant {
	var back []edited
	for _, f := range m.files() {
		back = append(back, edited{file: f.file, old: f.text, text: f.old, made: f.gone, gone: f.made})
	}
	return mutant{edited: back[0], more: back[1:], kind: m.kind}
}

// proposals are the edit's files as lspbridge checks them.
func (m mutant) proposals(dir string) (all []lspbridge.Proposal) {
	at := func(file string) string { return filepath.Join(dir, filepath.FromSlash(file)) }
	for _, f := range m.files() {
		p := lspbridge.Proposal{Path: at(f.file), Text: f.text, Old: f.old, Delete: f.gone}
		if f.from != "" {
			p.From = at(f.from)
		}
		all = append(all, p)
	}
	return all
}

func (f edited) write(dir, text string, absent bool) error {
	path := filepath.Join(dir, filepath.FromSlash(f.file))
	if !absent {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		return os.WriteFile(path, []byte(text), 0o600)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// Only empty folders go; those that a project has are not empty.
	for d := filepath.Dir(path); d != dir && os.Remove(d) == nil; d = filepath.Dir(d) {
	}
	return nil
}

// mutants makes n edits of a project's files; every fourth is harmless, of PHP every other: all of its other edits break a file.
func mutants(dir, kind string, n int, seed uint64) ([]mutant, error) {
	files, err := sources(dir, kind)
	if err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(seed, 22))
	var out []mutant
	for try := 0; len(out) < n && try < 200*n; try++ {
		path := files[r.IntN(len(files))]
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		text := string(b)
		of := mutations[kind]
		if every := map[bool]int{false: 4, true: 2}[kind == "php"]; len(out)%every == every-1 {
			of = harmless
		}
		m := of[r.IntN(len(of))]
		places := m.find.FindAllStringSubmatchIndex(text, -1)
		if len(places) == 0 {
			continue
		}
		at := places[r.IntN(len(places))]
		to := strings.ReplaceAll(m.to, "%c", commentOf[kind])
		now := text[:at[0]] + string(m.find.ExpandString(nil, to, text, at)) + text[at[1]:]
		rel, _ := filepath.Rel(dir, path)
		if now != text && !slices.ContainsFunc(out, func(x mutant) bool { return x.file == rel && x.text == now }) {
			out = append(out, mutant{edited: edited{file: filepath.ToSlash(rel), old: text, text: now}, kind: m.kind})
		}
	}
	return out, nil
}

// sources are the files of a project that are edited.
func sources(dir, kind string) (files []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || strings.HasPrefix(d.Name(), "_")) {
			return filepath.SkipDir
		}
		if err == nil && d.Type().IsRegular() && slices.Contains(sourceOf[kind], filepath.Ext(path)) && !strings.HasSuffix(path, ".d.ts") {
			// The compiler is asked about this system only; the verdict speaks of other systems' files as well.
			if ok, err := build.Default.MatchFile(filepath.Dir(path), d.Name()); kind != "go" || err == nil && ok {
				files = append(files, path)
			}
		}
		return err
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("no %s files in %s", kind, dir)
	}
	return files, err
}
