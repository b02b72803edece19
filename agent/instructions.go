package agent

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/paths"
)

// instructionFiles are the names of a project's instruction files, by preference. Only the first name that exists is used, because projects
// keep copies of one text for several agents; a CLAUDE.md that imports AGENTS.md takes its place.
var instructionFiles = append(slices.Clone(tools.InstructionFiles), ".cursorrules", filepath.Join(".github", "copilot-instructions.md"))

// variants are other names of an instruction file in the same folder. What overrides takes its place, Codex's rule; the others are read
// if it is not there.
var variants = map[string]struct{ overrides, otherwise string }{
	"AGENTS.md": {overrides: "AGENTS.override.md"},
	"CLAUDE.md": {otherwise: filepath.Join(".claude", "CLAUDE.md")},
}

// localFile is one person's addition to the project's CLAUDE.md, kept out of the repository. It is read in addition to the first name that
// exists.
const localFile = "CLAUDE.local.md"

// maxInstructions is how many bytes of one file go into the system prompt.
const maxInstructions = 64 << 10

// continues ends the text of a file that is longer.
const continues = "\n(The file continues; read it for the rest.)"

// importedFrom begins the text of an imported file.
const importedFrom = "\n\nImported from: "

// Instructions returns the instruction files for agents: the person's own file first, then those of the project from its root down to dir,
// so that the nearest comes last. Each block names its file. o decides what the project's may import.
func Instructions(dir string, o Imports) []string {
	var blocks []string
	for _, path := range globalInstructions() {
		if text, ok := readInstructions(path); ok {
			if home, err := os.UserHomeDir(); err == nil && filepath.Base(path) == "CLAUDE.md" {
				more, _ := Imports{}.imported(text, path, home) // the person's own file may import from the whole home folder
				text += more
			}
			blocks = append(blocks, text)
			break
		}
	}
	project, _ := projectInstructions(dir, o)
	return append(blocks, project...)
}

// globalInstructions are the paths of the person's own instructions; only the first that exists is used.
func globalInstructions() []string {
	var paths []string
	if config, err := os.UserConfigDir(); err == nil {
		paths = append(paths, filepath.Join(config, "pillion", "AGENTS.md"), filepath.Join(config, "opencode", "AGENTS.md"))
	}
	if home, err := os.UserHomeDir(); err == nil {
		paths = append(paths, filepath.Join(home, ".claude", "CLAUDE.md"), filepath.Join(home, ".codex", "AGENTS.md"), filepath.Join(home, ".gemini", "GEMINI.md"))
	}
	return paths
}

// projectInstructions returns the files of the first name that exists between the worktree's root and dir; the root's file comes first.
// left are the imports that are left out.
func projectInstructions(dir string, o Imports) (blocks []string, left []LeftImport) {
	r := projectReader{Imports: o, root: paths.Worktree(dir)}
	root := r.root
	for _, name := range instructionFiles {
		var found []string
		for _, d := range downTo(dir, root) {
			if text, ok := r.variant(d, name); ok {
				found = append(found, text)
			}
		}
		if len(found) > 0 {
			blocks = found
			break
		}
	}
	for _, d := range downTo(dir, root) {
		if text, ok := r.read(filepath.Join(d, localFile)); ok {
			blocks = append(blocks, text)
		}
	}
	return blocks, r.left
}

// projectReader reads the instruction files of one project.
type projectReader struct {
	Imports
	root string
	left []LeftImport
}

// variant reads a folder's instruction file of a name, or the file that stands for it.
func (r *projectReader) variant(dir, name string) (string, bool) {
	path := filepath.Join(dir, name)
	if name == "AGENTS.md" { // a CLAUDE.md that imports it says more, and has its text too
		for _, claude := range []string{"CLAUDE.md", variants["CLAUDE.md"].otherwise} {
			before := len(r.left)
			text, ok := r.read(filepath.Join(dir, claude))
			if real, err := filepath.EvalSymlinks(path); ok && err == nil && strings.Contains(text, importedFrom+real+"\n") {
				return text, true
			}
			r.left = r.left[:before] // the file is not used
		}
	}
	for _, at := range []string{variants[name].overrides, name, variants[name].otherwise} {
		if at == "" {
			continue
		}
		if text, ok := r.read(filepath.Join(dir, at)); ok {
			return text, true
		}
	}
	return "", false
}

// read reads an instruction file of the project. CLAUDE.md files have their imports appended, because that is Claude Code's
// format; others have none.
func (r *projectReader) read(path string) (string, bool) {
	text, ok := readInstructions(path)
	if !ok || !strings.HasPrefix(filepath.Base(path), "CLAUDE.") {
		return text, ok
	}
	more, left := r.imported(text, path, r.root)
	r.left = append(r.left, left...)
	return text + more, true
}

// LeftImports are the imports of the project's instruction files that Instructions leaves out.
func LeftImports(dir string, o Imports) []LeftImport {
	_, left := projectInstructions(dir, o)
	return left
}

// UnusedInstructions are the project's instruction files that Instructions leaves out for another one, each with that file.
func UnusedInstructions(dir string, o Imports) (out [][2]string) {
	root := paths.Worktree(dir)
	blocks, _ := projectInstructions(dir, o)
	if len(blocks) == 0 {
		return nil
	}
	all := strings.Join(blocks, "\n\n")
	used, _, _ := strings.Cut(strings.TrimPrefix(blocks[0], "Instructions from: "), "\n")
	for _, d := range downTo(dir, root) {
		for _, name := range append(slices.Clone(instructionFiles), variants["CLAUDE.md"].otherwise) {
			path := filepath.Join(d, name)
			text, ok := readInstructions(path)
			_, body, _ := strings.Cut(text, "\n")
			// A copy, or a link to the file that is used, loses nothing.
			if ok && !strings.Contains(all, body) {
				out = append(out, [2]string{path, used})
			}
		}
	}
	return out
}

// CutInstructions are the paths of the files of which Instructions gives the model only a beginning of 64 KiB.
func CutInstructions(dir string, o Imports) (out []string) {
	for _, block := range Instructions(dir, o) {
		for part := range strings.SplitSeq(strings.TrimPrefix(block, "Instructions from: "), importedFrom) {
			if path, _, _ := strings.Cut(part, "\n"); strings.HasSuffix(part, continues) {
				out = append(out, path)
			}
		}
	}
	return out
}

// downTo lists the folders from root down to dir.
func downTo(dir, root string) (out []string) {
	for d := dir; ; d = filepath.Dir(d) {
		out = append([]string{d}, out...)
		if d == root || d == filepath.Dir(d) {
			return out
		}
	}
}

// Limits of imports: a file could otherwise import a whole tree of documents into the system prompt.
const (
	maxImports     = 20 // files that one instruction file can import
	maxImportDepth = 5  // levels of imports; Claude Code's figure
)

// importWords finds mentions such as @docs/style.md at the start of a word.
var importWords = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)(?:^|\s)@([^\s` + "`" + `]+)`) })

// Imports decides about the files that instruction files import with @. A project's file may come from a stranger, and what it imports is
// sent to a model without asking.
type Imports struct {
	// Inside reports whether a file of the project may be imported; nil: Markdown and plain text only.
	Inside func(path string) bool
	// Outside reports whether a project's file may import Markdown or plain text at this path outside of the project; nil: it may not.
	Outside func(path string) bool
}

// LeftImport is a file that exists and is not imported.
type LeftImport struct{ From, Path, Why string }

// importer reads the imports of one instruction file.
type importer struct {
	Imports
	within string // the project's root, or for the person's own file the home folder
	seen   map[string]bool
	text   strings.Builder
	left   []LeftImport
}

// imported returns the files that an instruction file imports, each behind importedFrom, and those that it may not import.
func (o Imports) imported(text, from, within string) (string, []LeftImport) {
	if real, err := filepath.EvalSymlinks(within); err == nil {
		within = real
	}
	i := importer{Imports: o, within: within, seen: map[string]bool{from: true}}
	i.add(text, from, 0)
	return i.text.String(), i.left
}

func (i *importer) add(text, from string, depth int) {
	for _, m := range importWords().FindAllStringSubmatch(withoutCode(text), -1) {
		path := m[1]
		if rest, ok := strings.CutPrefix(path, "~/"); ok {
			home, _ := os.UserHomeDir()
			path = filepath.Join(home, rest)
		} else if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(from), path)
		}
		// Resolve links before the check: else a link in the project could name any file.
		real, err := filepath.EvalSymlinks(path)
		if errors.Is(err, fs.ErrNotExist) { // at the end of a sentence
			path = strings.TrimRight(path, ".,;:!?)]")
			real, err = filepath.EvalSymlinks(path)
		}
		if err != nil || i.seen[real] || len(i.seen) > maxImports || depth == maxImportDepth {
			continue
		}
		if info, err := os.Stat(real); err != nil || !info.Mode().IsRegular() {
			continue
		}
		i.seen[real] = true
		if why := i.refuses(real); why != "" {
			i.left = append(i.left, LeftImport{from, path, why})
			continue
		}
		more, ok := readInstructions(real)
		if !ok || strings.ContainsRune(more, 0) { // not text
			continue
		}
		i.text.WriteString(importedFrom + strings.TrimPrefix(more, "Instructions from: "))
		i.add(more, real, depth+1)
	}
}

// refuses says why a file may not be imported; "" if it may. real must have no symbolic links.
func (i *importer) refuses(real string) string {
	plain := slices.Contains([]string{".md", ".mdc", ".txt"}, strings.ToLower(filepath.Ext(real)))
	switch {
	case paths.Within(i.within, real):
		if i.Inside == nil && !plain || i.Inside != nil && !i.Inside(real) {
			return "a rule about reading does not let it go to the model without a question"
		}
	case !plain:
		return "outside of the project only Markdown and plain text (.md, .mdc, .txt) is imported"
	case i.Outside == nil || !i.Outside(real):
		return "it is outside of the project: that needs a trusted folder, and no rule that denies reading it"
	}
	return ""
}

// withoutCode removes fenced blocks and code spans: a decorator or an e-mail address in an example is not an import.
func withoutCode(text string) string {
	return codeParts().ReplaceAllString(text, " ")
}

// codeParts matches fenced blocks, also without an end, and code spans.
var codeParts = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("(?s)```.*?(?:```|$)|`[^`\n]*`") })

// comments matches HTML comments that begin a line, which Claude Code keeps from its model: they are notes to people. Fenced blocks, the group,
// keep theirs.
var comments = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("(?s)(```.*?(?:```|$))|(?m:^)[ \t]*<!--.*?-->[ \t]*(?:\n|$)")
})

// readInstructions reads at most maxInstructions bytes of a file. Only regular files are opened: a pipe or a device in a project would
// block the turn.
func readInstructions(path string) (string, bool) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return "", false
	}
	f, err := os.Open(path)
	if err != nil {
		return "", false
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxInstructions+1))
	if err != nil {
		return "", false
	}
	cut := ""
	if len(raw) > maxInstructions {
		raw = raw[:maxInstructions]
		for len(raw) > 0 && !utf8.RuneStart(raw[len(raw)-1]) {
			raw = raw[:len(raw)-1]
		}
		cut = continues
	}
	text := strings.ToValidUTF8(string(raw), "\uFFFD")
	if strings.HasPrefix(filepath.Base(path), "CLAUDE.") {
		text = comments().ReplaceAllString(text, "$1")
	}
	if text = strings.TrimSpace(text); text == "" {
		return "", false
	}
	return "Instructions from: " + path + "\n" + text + cut, true
}

// Limits of what the configuration's patterns add: files, and bytes in all. Without them a pattern such as **/*.md in a large project would
// fill the context before the first prompt.
const (
	maxMoreFiles = 30
	maxMoreBytes = 192 << 10
)

// MoreInstructions returns the files that a configuration names by paths and globs: relative to the project's root, below the home folder
// (~), or absolute. Texts that are already in have are left out.
func MoreInstructions(dir, home string, patterns []string, have []string) (blocks []string) {
	root := paths.Worktree(dir)
	seen := map[string]bool{}
	size := 0
	for _, p := range patterns {
		if rest, ok := strings.CutPrefix(p, "~/"); ok {
			p = filepath.Join(home, rest)
		} else if !filepath.IsAbs(p) {
			p = filepath.Join(root, p)
		}
		found, err := doublestar.FilepathGlob(p, doublestar.WithFilesOnly(), doublestar.WithNoFollow())
		if err != nil {
			continue // a malformed pattern matches nothing
		}
		for _, path := range found {
			if seen[path] || len(seen) == maxMoreFiles {
				continue
			}
			seen[path] = true
			if text, ok := readInstructions(path); ok && size+len(text) <= maxMoreBytes && !slices.Contains(have, text) {
				size += len(text)
				blocks = append(blocks, text)
			}
		}
	}
	return blocks
}
