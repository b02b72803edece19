package lspbridge

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/tools/paths"
)

// programs finds the programs of servers: which of a row's commands is installed, with which options it starts, and what it may do while
// the project is not trusted.
type programs struct {
	root    string   // of the project
	bin     []string // searched before PATH
	trusted bool
	dialled bool // Options.Dial is set: no program is needed
	rows    func() []Server

	// mu is not held during a search, which reads many folders; two concurrent searches have the same result.
	mu    sync.Mutex
	known map[slotKey]program // guarded by mu
}

// newPrograms searches nothing; rows is called when the first row is needed.
func newPrograms(o Options, rows func() []Server) *programs {
	return &programs{root: o.Root, bin: o.Bin, trusted: o.Trusted, dialled: o.Dial != nil, rows: rows, known: map[slotKey]program{}}
}

// row returns the row of a server in the table.
func (p *programs) row(id string) (Server, bool) {
	rows := p.rows()
	i := slices.IndexFunc(rows, func(s Server) bool { return s.ID == id })
	if i < 0 {
		return Server{}, false
	}
	return rows[i], true
}

// find returns the command line of the first command of a row that is installed, and the row adapted to that program. The error says how to
// install the server.
func (p *programs) find(row Server, root string) (Server, []string, error) {
	if row.hooks.program != nil {
		if other, argv := row.hooks.program(p, row, root); argv != nil {
			return other, argv, nil
		}
	}
	for _, cmd := range row.Commands {
		if at := p.search(cmd[0], root); at != "" && !emptyProxy(at) {
			return row, append([]string{at}, cmd[1:]...), nil
		}
	}
	// For the error: the program that a person would install.
	name := row.ID
	if len(row.Commands) > 0 {
		name = row.Commands[0][0]
	}
	hint := row.Install
	switch {
	case strings.HasPrefix(hint, "http"):
		hint = "see " + hint
	case !strings.HasPrefix(hint, "see "):
		hint = "install it with " + hint
	}
	if _, err := PlanInstall(row.ID, ""); err == nil { // offered first, because it needs no change of PATH
		hint = "run pillion doctor --install " + row.ID + ", or " + hint
	}
	return row, nil, fmt.Errorf("%s not found; %s, or set lsp.%s.command", name, hint, row.ID)
}

// launch returns the row with all its options, and the command line. An error says why the server cannot start: it is not installed, or not
// allowed in an untrusted project.
func (p *programs) launch(row Server, root string) (Server, []string, error) {
	row, argv, err := p.find(row, root)
	if err != nil {
		return row, nil, err
	}
	row = p.withOptions(row, argv, root)
	if p.trusted {
		return row, argv, nil
	}
	row, err = p.restrain(row, argv, root)
	return row, argv, err
}

// withOptions adds the options that depend on what is installed. The row's own options win, because they include the person's settings.
func (p *programs) withOptions(row Server, argv []string, root string) Server {
	if row.hooks.options == nil {
		return row
	}
	options := row.hooks.options(p, argv, root)
	if options == nil {
		return row
	}
	base, _ := json.Marshal(options)
	if row.Init == "" {
		row.Init = "{}"
	}
	row.Init = mergeJSON(string(base), json.RawMessage(row.Init))
	return row
}

// search searches a program in Pillion's own folders, in the node_modules of a trusted project, in PATH, then in the usual folders. In an
// untrusted project it skips PATH entries inside the project: a checkout could bring its own "gopls". A name with a separator is a path
// that the person configured, and only that path is tried. It returns "" when nothing is found.
func (p *programs) search(name, root string) string {
	dirs := p.bin
	if p.trusted {
		for dir := root; ; dir = filepath.Dir(dir) {
			// Clone, because append could write into p.bin, which other searches read.
			dirs = append(slices.Clone(dirs), filepath.Join(dir, "node_modules", ".bin"))
			if dir == p.root || dir == filepath.Dir(dir) || !paths.Within(p.root, dir) {
				break
			}
		}
	}
	if strings.ContainsRune(name, filepath.Separator) {
		dirs = nil
	}
	for _, d := range dirs {
		if at, err := exec.LookPath(filepath.Join(d, name)); err == nil {
			return at
		}
	}
	if at, err := exec.LookPath(name); err == nil && !p.fromProject(at) {
		return at
	}
	for _, d := range wellKnownBins() { // editors started from a desktop often lack these in PATH
		if at, err := exec.LookPath(filepath.Join(d, name)); err == nil && !strings.ContainsRune(name, filepath.Separator) {
			return at
		}
	}
	return ""
}

// fromProject reports whether a program is inside an untrusted project, also through a link. A project that contains the home folder is not
// a checkout: the person's own tools are in it.
func (p *programs) fromProject(at string) bool {
	if p.trusted {
		return false
	}
	if home, err := os.UserHomeDir(); err == nil && paths.Within(p.root, home) {
		return false
	}
	real, err := filepath.EvalSymlinks(at)
	return paths.Within(p.root, at) || err == nil && paths.Within(p.root, real)
}

// wellKnownBins returns the folders into which package managers install programs. An editor started from a desktop often lacks them in
// PATH.
func wellKnownBins() []string {
	var out []string
	if d := os.Getenv("GOBIN"); d != "" {
		out = append(out, d)
	}
	if home, err := os.UserHomeDir(); err == nil {
		out = append(out, filepath.Join(home, "go", "bin"), filepath.Join(home, ".cargo", "bin"), filepath.Join(home, ".local", "bin"))
	}
	if runtime.GOOS != "windows" {
		out = append(out, "/usr/local/bin", "/opt/homebrew/bin", "/usr/local/go/bin")
	}
	return out
}

// installed reports whether a server's program is found. Results are cached for one second (lookAgain), because every edit asks.
func (p *programs) installed(row Server, root string) bool {
	if p.dialled {
		return true
	}
	key := slotKey{row.ID, root}
	p.mu.Lock()
	was, known := p.known[key]
	p.mu.Unlock()
	if known && time.Since(was.at) < lookAgain {
		return was.there
	}
	_, _, err := p.find(row, root)
	p.mu.Lock()
	p.known[key] = program{there: err == nil, at: time.Now()}
	p.mu.Unlock()
	return err == nil
}

// program is the cached result of a search; at is when it was made.
type program struct {
	there bool
	at    time.Time
	place string // of a package
}

// npmPackage returns the folder and the major version of the npm package to which a program in node_modules/.bin or in a global bin folder
// belongs; "" and 0 when there is none. The name in package.json must match, because a folder above may be of another package.
func npmPackage(program, name string) (dir string, major int) {
	tries := []string{filepath.Join(filepath.Dir(filepath.Dir(program)), filepath.FromSlash(name)), // beside .bin
		filepath.Join(filepath.Dir(filepath.Dir(program)), "lib", "node_modules", filepath.FromSlash(name))} // npm i -g
	if real, err := filepath.EvalSymlinks(program); err == nil {
		tries = append([]string{filepath.Dir(filepath.Dir(real))}, tries...)
	}
	for _, dir := range tries {
		var pkg struct{ Name, Version string }
		if b, err := os.ReadFile(filepath.Join(dir, "package.json")); err != nil || json.Unmarshal(b, &pkg) != nil || pkg.Name != name {
			continue
		}
		// Digits up to the first dot; min keeps a nonsense version from overflowing.
		for _, r := range pkg.Version {
			if r < '0' || r > '9' {
				break
			}
			major = min(10*major+int(r-'0'), 1000)
		}
		return dir, major
	}
	return "", 0
}

// tsdk returns the lib folder of a TypeScript for servers that load it as a library: the trusted project's, the one installed beside the
// server, or Pillion's own. "" when there is none.
func (p *programs) tsdk(program, root string) string {
	var tops []string
	if p.trusted {
		tops = append(tops, root, p.root)
	}
	if real, err := filepath.EvalSymlinks(program); err == nil {
		for dir := filepath.Dir(real); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			tops = append(tops, dir)
		}
	}
	for _, bin := range p.bin {
		tops = append(tops, filepath.Dir(filepath.Dir(bin)))
	}
	for _, top := range tops {
		if dir := filepath.Join(top, "node_modules", "typescript", "lib"); exists(filepath.Join(dir, "typescript.js")) {
			return dir
		}
	}
	return ""
}
