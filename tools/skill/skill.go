// Package skill finds skills: folders with a SKILL.md whose front matter says when the skill helps and whose text says how the
// work is done. It searches the folders of Pillion, of the .agents convention and of other agents. Callers decide who may
// load a skill, and which skills the model is told about.
//
//	f := skill.New(skill.Places{Cwd: dir, Root: root, Home: home, Config: []string{userDir}})
//	for _, s := range f.Skills() { … }
package skill

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/tools/frontmatter"
	"github.com/pillion-dev/pillion/tools/paths"
)

// Places are the folders that are searched: .pillion, .opencode, .claude, .agents and those of other agents from Cwd up to Root, then the
// person's own folders. If two skills have the same name, the nearest is used.
type Places struct {
	Cwd, Root string   // absolute; Root is the project, which contains Cwd
	Home      string   // ~/.claude/skills and similar folders; "": they are not searched
	Config    []string // folders that contain skill or skills directly, such as ~/.config/pillion
	More      []string // further folders of skills
}

// Skill is a skill that can be used: its name and description are valid.
type Skill struct {
	Name        string // as SKILL.md has it, else the name of its folder; unique in a Finder
	Description string // 1 to 1,024 characters, as the person or a stranger wrote it
	Dir         string // absolute, links not resolved
	Path        string // of its SKILL.md, absolute
	Project     bool   // it is in the project, so the person may not have written it
	Hint        string // what may follow its slash command (argument-hint)
	// PersonOnly: the model is not told of it and does not load it (disable-model-invocation: true). ModelOnly: it is no slash command
	// (user-invocable: false). Both are settings of Claude Code's skills.
	PersonOnly, ModelOnly bool
}

// Problem is a SKILL.md that cannot be used, shown to the person.
type Problem struct {
	Path    string `json:"path"`    // of the SKILL.md, absolute
	Line    int    `json:"line"`    // from 1
	Message string `json:"message"` // what is wrong and what to do; without path and line
}

func (p Problem) String() string { return fmt.Sprintf("%s:%d: %s", p.Path, p.Line, p.Message) }

// These limits bound the cost of a search, because a project may contain or link to anything. maxDescription and the 64 characters
// of a name are limits of the Agent Skills format.
const (
	fileName       = "SKILL.md"
	maxFile        = 512 << 10 // bytes
	maxDescription = 1024      // characters; the limit of the Agent Skills format, as 64 is for names
	maxDepth       = 6         // folders below skills/
	maxFolders     = 2000      // folders read in one place, so that a link to / costs little
)

var (
	dotFolders = []string{".pillion", ".opencode", ".claude", ".agents"}
	subFolders = []string{"skill", "skills"}
	// otherFolders are where further agents keep skills of the same format: Cursor, Codex, Gemini CLI, Copilot, Antigravity, Windsurf, Roo, Kiro,
	// Factory, Goose.
	otherFolders = []string{".cursor/skills", ".codex/skills", ".gemini/skills", ".github/skills", ".agent/skills", ".windsurf/skills", ".roo/skills", ".kiro/skills", ".factory/skills", ".goose/skills"}
	validName    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9 ._:-]*$`) })
)

// Finder finds skills and caches the result until a folder or a SKILL.md changes. It is safe for concurrent use. It is called
// often, so it compares times and sizes before it reads anything again.
type Finder struct {
	places Places

	mu       sync.Mutex
	stamp    string    // guarded by mu: sizes and times of the paths in seen at the last search; "" before the first one
	skills   []Skill   // guarded by mu
	problems []Problem // guarded by mu
	seen     []string  // guarded by mu: files and folders that are checked for changes
	missing  missing   // guarded by mu
}

// New returns a Finder. It reads nothing before the first call of a method.
func New(p Places) *Finder { return &Finder{places: p} }

// Skills returns the skills that can be used, sorted by name. The slice is shared: do not change it.
func (f *Finder) Skills() []Skill {
	s, _ := f.find()
	return s
}

// Problems returns why other SKILL.md files cannot be used, one problem for each file. The slice is shared: do not change it.
func (f *Finder) Problems() []Problem {
	_, p := f.find()
	return p
}

// Get returns the skill with a name, which is compared exactly.
func (f *Finder) Get(name string) (Skill, bool) {
	all := f.Skills()
	i := slices.IndexFunc(all, func(s Skill) bool { return s.Name == name })
	if i < 0 {
		return Skill{}, false
	}
	return all[i], true
}

// Holds reports whether a path is in the folder of a skill; such files may be read without approval even outside the project. path
// must be absolute with its links resolved; otherwise a link inside a skill would make any file readable.
func (f *Finder) Holds(path string) bool {
	for _, s := range f.Skills() {
		dir, err := filepath.EvalSymlinks(s.Dir)
		if rel, err2 := filepath.Rel(dir, path); err == nil && err2 == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			return true
		}
	}
	return false
}

// find searches all places again if the time or size of a folder or a SKILL.md of the last search has changed. Other files in a
// skill's folder are not compared: only SKILL.md is read.
func (f *Finder) find() ([]Skill, []Problem) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stamp != "" && f.stamp == f.missing.stampOf(f.seen) {
		return f.skills, f.problems
	}
	w := walk{real: map[string]bool{}, names: map[string]bool{}}
	for _, r := range f.places.roots() {
		w.root(r)
	}
	slices.SortFunc(w.skills, func(a, b Skill) int { return strings.Compare(a.Name, b.Name) })
	f.skills, f.problems, f.seen = w.skills, w.problems, w.seen
	f.stamp = f.missing.stampOf(f.seen)
	return f.skills, f.problems
}

// root is a folder of skills. Its files must not lead outside within, with symbolic links resolved: a repository could otherwise
// make the model read files of the person as a skill. within is "" for the person's own folders, where they chose the links
// themselves.
type root struct{ dir, within string }

// roots lists the folders to search, the nearest first: if names are equal, the first one found is used.
func (p Places) roots() (out []root) {
	for d := p.Cwd; p.Cwd != ""; d = filepath.Dir(d) {
		for _, dot := range dotFolders {
			for _, sub := range subFolders {
				out = append(out, root{filepath.Join(d, dot, sub), p.Root})
			}
		}
		for _, other := range otherFolders {
			out = append(out, root{filepath.Join(d, filepath.FromSlash(other)), p.Root})
		}
		if d == p.Root || d == filepath.Dir(d) {
			break
		}
	}
	for _, c := range p.Config {
		for _, sub := range subFolders {
			out = append(out, root{filepath.Join(c, sub), ""})
		}
	}
	if p.Home != "" {
		for _, dot := range dotFolders {
			for _, sub := range subFolders {
				out = append(out, root{filepath.Join(p.Home, dot, sub), ""})
			}
		}
		for _, other := range otherFolders {
			out = append(out, root{filepath.Join(p.Home, filepath.FromSlash(other)), ""})
		}
	}
	for _, dir := range p.More {
		out = append(out, root{dir, ""})
	}
	return out
}

// walk is one search of all places.
type walk struct {
	skills   []Skill
	problems []Problem
	seen     []string        // see Finder.seen
	names    map[string]bool // of skills found so far
	real     map[string]bool // folders already read, so that links cannot form a cycle
	left     int             // how many more folders may be read in this root
}

// root searches one place. The limit of folders is for each place: a huge one must not hide the skills of the next.
func (w *walk) root(r root) {
	w.seen = append(w.seen, r.dir)
	w.left = maxFolders
	w.folder(r.dir, r.within, 0)
}

// folder searches a folder to maxDepth. A link is followed once, and only inside the place: a link of a project must not lead to
// other skills. Errors are ignored: a folder that cannot be read has no skills to offer.
func (w *walk) folder(dir, within string, depth int) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil || w.real[real] || depth > maxDepth || w.left <= 0 || !inside(real, within) {
		return
	}
	w.real[real] = true
	w.left--
	entries, err := os.ReadDir(real)
	if err != nil {
		return
	}
	w.seen = append(w.seen, dir)
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if e.Name() == fileName {
			w.file(path, within)
			return // folders below a SKILL.md belong to that skill
		}
	}
	for _, e := range entries {
		if e.Name() == ".git" || e.Name() == "node_modules" {
			continue
		}
		if e.IsDir() || e.Type()&fs.ModeSymlink != 0 {
			w.folder(filepath.Join(dir, e.Name()), within, depth+1)
		}
	}
}

// inside reports whether a path without links is in within, whose links are resolved here. If that fails, it returns false.
func inside(real, within string) bool {
	if within == "" {
		return true
	}
	top, err := filepath.EvalSymlinks(within)
	if err != nil {
		return false
	}
	return paths.Within(top, real)
}

// file reads a SKILL.md and adds a skill or a problem. If a nearer root has a skill of that name, it adds nothing: the person
// overrides a skill by putting another one nearer.
func (w *walk) file(path, within string) {
	w.seen = append(w.seen, path)
	bad := func(line int, format string, a ...any) {
		w.problems = append(w.problems, Problem{Path: path, Line: max(line, 1), Message: fmt.Sprintf(format, a...)})
	}
	src, err := read(path, within)
	if err != nil {
		bad(1, "%v", err)
		return
	}
	doc, err := frontmatter.Parse(src)
	if err != nil {
		line, msg := frontmatter.Place(err)
		bad(line, "%s", msg)
		return
	}
	at := func(key string) int {
		if n := doc.Get(key); n != nil {
			return n.Line + doc.Line
		}
		return 1
	}
	folder := filepath.Base(filepath.Dir(path))
	name, desc := doc.Text("name"), strings.TrimSpace(doc.Text("description"))
	if name == "" {
		name = folder
	}
	switch {
	case len(name) > 64 || !validName().MatchString(name):
		bad(at("name"), "the name %q is not made of letters, digits, blanks and . _ : - (64 at most)", name)
	case desc == "":
		bad(at("description"), "the skill has no description; say in a sentence when it helps")
	case len([]rune(desc)) > maxDescription:
		bad(at("description"), "the description has %d characters; %d at most", len([]rune(desc)), maxDescription)
	case w.names[name]: // a nearer one is used
	default:
		w.names[name] = true
		w.skills = append(w.skills, Skill{Name: name, Description: desc, Dir: filepath.Dir(path), Path: path, Project: within != "", Hint: doc.Text("argument-hint"),
			PersonOnly: doc.Text("disable-model-invocation") == "true", ModelOnly: doc.Text("user-invocable") == "false"})
	}
}

// read reads a regular file of at most 512 KiB that does not lead outside within. The error does not contain the path, because the
// caller's Problem has it. Size and kind are those of the file that a link leads to.
func read(path, within string) ([]byte, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	info, err := os.Stat(real)
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot be read: %w", err)
	case !inside(real, within):
		return nil, fmt.Errorf("leads out of the project, to %s", real)
	case !info.Mode().IsRegular() || info.Size() > maxFile:
		return nil, fmt.Errorf("is not a regular file of at most %d bytes", maxFile)
	}
	return os.ReadFile(real)
}

// Body reads the text after the front matter again, so that the model gets the present instructions and not those of the last
// search.
func (s Skill) Body() (string, error) {
	src, err := read(s.Path, "")
	if err != nil {
		return "", err
	}
	doc, err := frontmatter.Parse(src)
	if err != nil {
		return "", err
	}
	return doc.Body, nil
}

// maxFiles is how many of a skill's files are listed with its text, so that the model knows of its scripts; the tool list shows the others.
const maxFiles = 10

// Text is what the model gets of a skill: its body, its folder and its files.
func (s Skill) Text() (string, error) {
	body, err := s.Body()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "<skill_content name=%q>\n# Skill: %s\n\n%s\n\nBase directory for this skill: %s\nRelative paths in this skill (e.g., scripts/, reference/) are relative to this base directory.", s.Name, s.Name, body, s.Dir)
	files, more := s.Files(maxFiles)
	if len(files) > 0 {
		if more {
			b.WriteString("\nNote: file list is sampled.")
		}
		b.WriteString("\n\n<skill_files>")
		for _, f := range files {
			fmt.Fprintf(&b, "\n<file>%s</file>", filepath.Join(s.Dir, filepath.FromSlash(f)))
		}
		b.WriteString("\n</skill_files>")
	}
	b.WriteString("\n</skill_content>")
	return b.String(), nil
}

// Files lists at most limit files in the skill's folder besides SKILL.md, relative to Dir with slashes; more says whether there are
// others. It reads at most maxFolders entries, so that a skill with a large tree costs little.
func (s Skill) Files(limit int) (files []string, more bool) {
	seen := 0
	_ = filepath.WalkDir(s.Dir, func(path string, d fs.DirEntry, err error) error {
		if seen++; seen > maxFolders {
			return filepath.SkipAll
		}
		switch {
		case err != nil:
			return nil
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules"):
			return filepath.SkipDir
		case d.IsDir() || path == s.Path:
			return nil
		case len(files) == limit:
			more = true
			return filepath.SkipAll
		}
		rel, err := filepath.Rel(s.Dir, path)
		if err == nil {
			files = append(files, filepath.ToSlash(rel))
		}
		return nil
	})
	return files, more
}
