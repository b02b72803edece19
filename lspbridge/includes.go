package lspbridge

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Limits of the search for files that include one another.
const (
	maxIncluding   = 20_000   // source files of a project
	maxIncludeHead = 64 << 10 // bytes of each file: includes are at the top
)

// includes finds out from the texts which files of a project include which. clangd compiles each file separately: it reports the errors
// caused by a changed header only in files that it is asked about, and its index takes minutes to name them. An include counts for every
// file whose path ends with it. That may be more files than the compiler uses, but never fewer, except for names that macros compose.
type includes struct {
	mu    sync.Mutex
	files map[string]included // by path; guarded by mu
}

// included is what a file included when it was last read, with the time and size that reveal a change.
type included struct {
	changed time.Time
	size    int64
	names   []string // as written in the file, with slashes
}

// includeLine matches #include, #include_next and #import; the name is in quotes or angle brackets.
var includeLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^[ \t]*#[ \t]*(?:include|include_next|import)[ \t]*["<]([^">\n]+)[">]`)
})

// users returns the files of a project that include one of the given ones, directly or indirectly. complete is false when the project has
// too many files to read, or ctx ended.
func (i *includes) users(ctx context.Context, row Server, root string, of []string) (users []string, complete bool) {
	all := projectFiles(ctx, root)
	// A list that reaches the limit may be incomplete.
	if len(all) >= maxProjectFiles {
		return nil, false
	}
	by := map[string][]string{} // base name of an included file → files that include it
	words := map[string][]string{}
	n := 0
	for _, path := range all {
		if !row.matches(path) && !headerLike(path) {
			continue
		}
		if n++; n > maxIncluding || ctx.Err() != nil {
			return nil, false
		}
		for _, name := range i.of(path) {
			base := filepath.Base(name)
			by[base] = append(by[base], path)
			words[path] = append(words[path], name)
		}
	}
	seen := map[string]bool{}
	for _, p := range of {
		seen[p] = true
	}
	// Breadth first; seen ends the search where headers include each other.
	for queue := of; len(queue) > 0; {
		target := filepath.ToSlash(queue[0])
		queue = queue[1:]
		for _, user := range by[filepath.Base(target)] {
			if seen[user] || !includesIt(words[user], target) {
				continue
			}
			seen[user] = true
			users = append(users, user)
			queue = append(queue, user)
		}
	}
	return users, true
}

// importing returns the files of a project whose imports may mean one of these files, which come or go. An import may have found nothing so far,
// or the new file takes it over (x.ts from x/index.ts, x.pyi from x.py, random.py from Python's own). complete is as in users.
func importing(ctx context.Context, row Server, root string, of []string) (users []string, complete bool) {
	all := projectFiles(ctx, root)
	if len(all) >= maxProjectFiles {
		return nil, false
	}
	// What a text that imports one of the files must contain, for most texts contain none of it; nothing where a folder's name will do.
	var stems [][]byte
	for _, m := range of {
		stem, _, _ := strings.Cut(filepath.Base(m), ".")
		if standsForFolder(m) {
			stem = ""
		}
		stems = append(stems, []byte(stem))
	}
	n := 0
	for _, path := range all {
		family := inferenceFamily(path)
		if !row.matches(path) || importWords[family] == nil || slices.Contains(of, path) {
			continue
		}
		if n++; n > maxIncluding || ctx.Err() != nil {
			return nil, false
		}
		if fi, err := os.Stat(path); err != nil || !fi.Mode().IsRegular() || fi.Size() > maxImporterBytes {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil || !slices.ContainsFunc(stems, func(stem []byte) bool { return bytes.Contains(text, stem) }) {
			continue
		}
		if imports(path, string(text), of) {
			users = append(users, path)
		}
	}
	return users, true
}

// imports reports whether a text of a file imports what may be one of some files.
func imports(path, text string, of []string) bool {
	family := inferenceFamily(path)
	if importWords[family] == nil {
		return false
	}
	names := importedNames(family, []byte(text))
	return slices.ContainsFunc(of, func(m string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return mayImport(path, name, m) })
	})
}

// importWords are the words with which an import begins, by inferenceFamily: in TypeScript anywhere, in Python at the beginning of a line.
var importWords = map[string][]string{"ts": {"from", "import", "require"}, "py": {"from", "import"}}

// importPlaces are the byte offsets in a text at which an import may begin. Only these are looked at: matching whole texts would take a minute for
// 10,000 files.
func importPlaces(family string, text []byte) (all []int) {
	for _, word := range importWords[family] {
		for at := 0; ; {
			i := bytes.Index(text[at:], []byte(word))
			if i < 0 {
				break
			}
			i += at
			at = i + len(word)
			start := i
			for family == "py" && start > 0 && (text[start-1] == ' ' || text[start-1] == '\t') {
				start--
			}
			if start == 0 || text[start-1] == '\n' || family == "ts" && !isWord(text[start-1]) {
				all = append(all, i)
			}
		}
	}
	return all
}

// importedModule returns what is quoted behind from, import or require at the beginning of a text; "" for nothing.
func importedModule(text []byte) string {
	const blanks = " \t\r\n"
	rest := bytes.TrimLeft(bytes.TrimLeft(text, "abcdefghijklmnopqrstuvwxyz"), blanks)
	rest = bytes.TrimLeft(bytes.TrimPrefix(rest, []byte("(")), blanks)
	if len(rest) == 0 || !bytes.ContainsRune([]byte("\"'`"), rune(rest[0])) {
		return ""
	}
	if end := bytes.IndexAny(rest[1:], "\"'`\n"); end > 0 && rest[1+end] != '\n' {
		return string(rest[1 : 1+end])
	}
	return ""
}

// pythonImport matches an import at the beginning of a text. A module is in group 1 or 3, what is imported from it in group 2.
var pythonImport = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\A(?:from[ \t]*([.\pL\pN_]*[\pL\pN_][ \t]|\.+)[ \t]*import[ \t]*(\([^)]*\)|[^\n#]*)|import[ \t]+([^\n#]+))`)
})

// importedNames returns the modules that a text imports, as mayImport takes them: paths in TypeScript, dotted names in Python, there also each
// name that is imported from a module, because it may be a module itself.
func importedNames(family string, text []byte) (names []string) {
	for _, at := range importPlaces(family, text) {
		if family == "ts" {
			if module := importedModule(text[at:]); module != "" {
				names = append(names, module)
			}
			continue
		}
		m := pythonImport().FindSubmatch(text[at:])
		if m == nil {
			continue
		}
		module := strings.TrimRight(string(m[1]), " \t")
		from := strings.TrimSuffix(module, ".")
		if module != "" {
			names = append(names, module)
		}
		// The words of "x as y" count as names too: a superfluous one costs one request.
		for _, word := range strings.Fields(strings.NewReplacer("(", " ", ")", " ", ",", " ").Replace(string(m[2]) + string(m[3]))) {
			if module != "" {
				word = from + "." + word
			}
			names = append(names, word)
		}
	}
	return names
}

// standsForFolder reports whether a file is imported by the name of its folder.
func standsForFolder(path string) bool {
	stem, _, _ := strings.Cut(filepath.Base(path), ".")
	switch inferenceFamily(path) {
	case "ts":
		return stem == "index"
	case "py":
		return stem == "__init__"
	}
	return false
}

// mayImport reports whether a name that a file imports can mean a file, which need not exist.
func mayImport(importer, name, target string) bool {
	dir, base := filepath.Split(target)
	stem, _, _ := strings.Cut(base, ".")
	targets := []string{filepath.Join(dir, stem)}
	if standsForFolder(target) {
		targets = append(targets, filepath.Clean(dir))
	}
	if inferenceFamily(importer) == "py" {
		return slices.ContainsFunc(targets, func(target string) bool { return mayImportModule(filepath.Dir(importer), name, target) })
	}
	at := filepath.FromSlash(name)
	if file := filepath.Base(at); file != "." && file != ".." {
		file, _, _ = strings.Cut(file, ".")
		at = at[:len(at)-len(filepath.Base(at))] + file
	}
	if strings.HasPrefix(name, ".") {
		return slices.Contains(targets, filepath.Join(filepath.Dir(importer), at))
	}
	// An alias or a base folder: what it begins with is not known.
	_, rest, aliased := strings.Cut(at, string(filepath.Separator))
	return slices.ContainsFunc(targets, func(target string) bool {
		return strings.HasSuffix(target, string(filepath.Separator)+at) || aliased && strings.HasSuffix(target, string(filepath.Separator)+rest)
	})
}

// mayImportModule is mayImport for a dotted name of Python, and a module's path without its extension. import a.b imports a as well.
func mayImportModule(dir, name, target string) bool {
	rest := strings.TrimLeft(name, ".")
	roots := []string{dir} // beside the importer
	if dots := len(name) - len(rest); dots > 0 {
		for ; dots > 1; dots-- {
			roots[0] = filepath.Dir(roots[0])
		}
	} else {
		// The outermost package's folder.
		root := filepath.Dir(target)
		for {
			if _, err := os.Lstat(filepath.Join(root, "__init__.py")); err != nil || root == filepath.Dir(root) {
				break
			}
			root = filepath.Dir(root)
		}
		roots = append(roots, root)
	}
	for _, at := range roots {
		for part := range strings.SplitSeq(rest, ".") {
			at = filepath.Join(at, part)
			if at == target {
				return true
			}
		}
	}
	return false
}

// headerLike reports whether a file may be included although no row of the table matches it: x.inc, x.def, headers without an extension.
func headerLike(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".inc", ".def", ".ipp", ".tpp", ".inl", ".tcc", ".x", "":
		return true
	}
	return false
}

// includesIt reports whether one of the names, as written in an include, can mean target.
func includesIt(names []string, target string) bool {
	// The base of ../ is not known, so only the rest of the name is compared.
	for _, n := range names {
		for strings.HasPrefix(n, "../") || strings.HasPrefix(n, "./") {
			_, n, _ = strings.Cut(n, "/")
		}
		if target == n || strings.HasSuffix(target, "/"+n) {
			return true
		}
	}
	return false
}

// of returns the names that a file includes, cached until the file changes.
func (i *includes) of(path string) []string {
	fi, err := os.Stat(path)
	if err != nil || !fi.Mode().IsRegular() {
		return nil
	}
	i.mu.Lock()
	was, known := i.files[path]
	i.mu.Unlock()
	if known && was.size == fi.Size() && was.changed.Equal(fi.ModTime()) {
		return was.names
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	head, _ := io.ReadAll(io.LimitReader(f, maxIncludeHead))
	now := included{changed: fi.ModTime(), size: fi.Size()}
	if bytes.Contains(head, []byte("#")) {
		for _, m := range includeLine().FindAllSubmatch(head, -1) {
			now.names = append(now.names, filepath.ToSlash(filepath.Clean(string(m[1]))))
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	// Entries of deleted files are not removed one by one; the whole map is dropped instead.
	if i.files == nil || len(i.files) > 2*maxIncluding {
		i.files = map[string]included{}
	}
	i.files[path] = now
	return now.names
}
