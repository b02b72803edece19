package scan

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// maxLookups bounds the file system calls of one analysis. A command of 64 KiB with wildcards and links could otherwise keep
// the disk busy for minutes.
const maxLookups = 20_000

// MaxPath is the longest path that is resolved, in bytes: PATH_MAX of Linux (limits.h). A longer one makes the command opaque.
const MaxPath = 4096

// maxEntries is the largest directory, in entries, in which a wildcard is expanded. A larger one makes the command opaque.
const maxEntries = 4_000

// paths resolves the paths that a command names and sorts them into outside, protected, read and written. It serves one
// analysis. The file system may change between the analysis and the run of the command; only the sandbox protects against that.
type paths struct {
	req       Request
	roots     []string        // what counts as inside, for reading and writing; links resolved
	readRoots []string        // what counts as inside for reading only; links resolved
	links     map[string]link // results of stat, by absolute path
	lookups   int             // file system calls so far; see maxLookups
	exhausted bool            // a limit was reached: finish makes the command opaque
	magic     bool            // a path goes through a link below /proc, which leads elsewhere in the process that opens it
	end       time.Time       // the limit of time for the analysis
	asked     int             // how often late was called
	manner    Manner          // of the program that is being walked

	kept    map[string]bool // files that were only written by programs that add no content of their own (Manner.Keeps)
	folders []string        // folders that the present program reads; behave resets it for each program
	files   int             // how many files the present program reads; reset with folders

	// What the analysis reports. Paths are absolute with links resolved, each once, in the order they were found.
	outside   map[string]Access // paths outside the project; Write when any access writes
	order     []string          // the keys of outside as they were found: the order of Analysis.External
	protected []ProtectedPath
	reads     []string // inside the project
	writes    []string // inside the project
}

// late reports whether a limit is reached, time included. It reads the clock on every 16th call only, because that is slower
// than most steps.
func (p *paths) late() bool {
	if p.asked++; p.asked%16 == 0 && !p.exhausted && time.Now().After(p.end) {
		p.exhausted = true
	}
	return p.exhausted
}

// link is what a path is on disk.
type link struct {
	target string // of a symbolic link; empty for anything else
	exists bool   // true for a dangling link too
	dir    bool   // it is a folder; false for a link to one
}

// newPaths resolves the folders of the request once. The time for the analysis starts here.
func newPaths(r Request) *paths {
	p := &paths{req: r, end: time.Now().Add(max(walkTime, r.limit)), links: map[string]link{}, outside: map[string]Access{}}
	if r.Root == "" || filepath.Clean(r.Root) == "/" { // "/" means that there is no project around the directory
		r.Root = r.Dir
	}
	for _, root := range append([]string{r.Root}, r.Extra...) {
		if root != "" {
			p.roots = append(p.roots, p.real(root))
		}
	}
	for _, dir := range r.ReadDirs {
		if dir != "" {
			p.readRoots = append(p.readRoots, p.real(dir))
		}
	}
	return p
}

// external lists the paths outside the project, in the order they were found.
func (p *paths) external() []PathAccess {
	var out []PathAccess
	for _, path := range p.order {
		out = append(out, PathAccess{path, p.outside[path]})
	}
	return out
}

// within reports whether a path is one of the roots or below one. /srv/project-2 is not below /srv/project.
// Both sides must be resolved and clean.
func within(path string, roots []string) bool {
	for _, root := range roots {
		if path == root || strings.HasPrefix(path, root) && (root == "/" || path[len(root)] == '/') {
			return true
		}
	}
	return false
}

// inside reports whether a resolved path is where this access needs no question: in the project, or for reading in ReadDirs.
func (p *paths) inside(real string, access Access) bool {
	return within(real, p.roots) || access == Read && within(real, p.readRoots)
}

// add notes an access to an absolute path. It reports false for devices without data, see harmlessDevice.
// A path outside the project keeps its place in the list when a later write replaces a read.
func (p *paths) add(abs string, access Access) bool {
	if harmlessDevice(abs) {
		return false
	}
	real := p.real(abs)
	if i := strings.LastIndexByte(abs, '/'); p.manner.NoFollow && i >= 0 && abs[i+1:] != "" && abs[i+1:] != "." && abs[i+1:] != ".." {
		real = strings.TrimSuffix(p.real(abs[:i+1]), "/") + abs[i:] // rm removes the link, not its target
	}
	// A link to /dev/null is as harmless as /dev/null.
	if harmlessDevice(real) {
		return false
	}
	// A program that only learns names cannot show the contents of a file, so inside the project nothing is noted.
	if p.manner.Names && p.inside(real, access) {
		return true
	}
	if access == Read {
		if p.stat(real).dir {
			p.folders = append(p.folders, real)
		} else {
			p.files++
		}
	}
	if access == Write {
		p.keep(real)
	}
	if !p.inside(real, access) {
		if have, ok := p.outside[real]; !ok {
			p.order = append(p.order, real)
			p.outside[real] = access
		} else if have == Read {
			p.outside[real] = access
		}
	} else if access == Write || !p.stat(real).dir {
		// Contains makes this quadratic, so the list ends at 1,000 paths, more than a person reads.
		if list := p.list(access); len(*list) < 1000 && !slices.Contains(*list, real) {
			*list = append(*list, real)
		}
	}
	p.guard(real, access)
	return true
}

// keep updates kept for a file that is written. A file stays in kept as long as every write to it was by a program that adds
// no content of its own (Manner.Keeps); any other write removes it for good. madeHere relies on this.
func (p *paths) keep(real string) {
	if !p.manner.Keeps {
		delete(p.kept, real)
		return
	}
	if p.outside[real] != Write && !slices.Contains(p.writes, real) {
		if p.kept == nil {
			p.kept = map[string]bool{}
		}
		p.kept[real] = true
	}
}

// untouched reports whether the command has so far written no file, except those in kept.
func (p *paths) untouched() bool {
	for _, access := range p.outside {
		if access == Write {
			return false
		}
	}
	return !slices.ContainsFunc(p.writes, func(real string) bool { return !p.kept[real] })
}

// list is the list of paths inside the project for this kind of access.
func (p *paths) list(access Access) *[]string {
	if access == Write {
		return &p.writes
	}
	return &p.reads
}

// sensitive are names of files that guard looks for below a folder when a program changes the whole folder: rm -r .git
// removes .git/config without naming it. Request.Protected decides which of them are protected.
var sensitive = [...]string{
	".git/config", ".git/hooks/pre-commit", "config", "hooks/pre-commit", ".vscode/settings.json", ".vscode/tasks.json", "settings.json", ".envrc",
	".bashrc", ".profile", ".ssh/authorized_keys", "authorized_keys", ".npmrc", "pillion.jsonc",
}

// guard notes an access to a protected path, inside or outside the project, and a change of a folder that holds one.
// Git hooks count even when they do not exist yet: most repositories have none, and a change of the whole folder can add one.
func (p *paths) guard(real string, access Access) {
	if p.req.Protected == nil {
		return
	}
	if reason, ok := p.req.Protected(real, access); ok {
		p.protect(real, access, reason)
		return
	}
	if access != Write || !p.manner.Deep || !p.stat(real).dir {
		return
	}
	for _, name := range sensitive {
		below := path.Join(real, name)
		if reason, ok := p.req.Protected(below, Write); ok && p.stat(path.Dir(below)).dir && (p.stat(below).exists || strings.Contains(name, "hooks/")) {
			p.protect(below, access, reason)
			return
		}
	}
}

// protect adds a protected path to the list once. A write replaces a read.
func (p *paths) protect(real string, access Access, reason string) {
	for i, have := range p.protected {
		if have.Path == real {
			if access == Write {
				p.protected[i].Access = Write
			}
			return
		}
	}
	p.protected = append(p.protected, ProtectedPath{real, access, reason})
}

// harmlessDevice reports whether a path is a device that stores no data, or an open descriptor. Other names below /dev are
// dangerous: /dev/tcp/host/port is a network connection in bash, and a disk holds every file of the machine.
func harmlessDevice(p string) bool {
	switch p {
	case "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty":
		return true
	}
	n, ok := strings.CutPrefix(p, "/dev/fd/")
	return ok && n != "" && strings.Trim(n, "0123456789") == ""
}

// real resolves the links in an absolute path as the kernel would, with the kernel's limit of 40 links (path_resolution(7),
// ELOOP). Components that do not exist stay as they are. filepath.EvalSymlinks cannot be used: it fails for a path that does
// not exist, and many files that a command writes do not exist yet.
func (p *paths) real(abs string) string {
	if len(abs) > MaxPath {
		p.exhausted = true
		return path.Clean(abs)
	}
	rest := abs
	out := ""
	hops := 0
	for rest != "" {
		var part string
		part, rest, _ = strings.Cut(rest, "/")
		switch part {
		case "", ".":
			continue
		// As in the kernel, ".." after a link leads to the parent of the link's target.
		case "..":
			out = out[:max(0, strings.LastIndexByte(out, '/'))]
			continue
		}
		next := out + "/" + part
		if strings.HasPrefix(next, "/proc/") || strings.HasPrefix(next, "/sys/") {
			// Links below /proc cannot be resolved in advance: /proc/self is another process when the command runs, and the links of
			// a process lead to its root, its directory and its open files.
			switch {
			case !strings.HasPrefix(next, "/proc/"):
			case part == "root" && (out == "/proc/self" || out == "/proc/thread-self"):
				out = ""
				continue
			case part == "fd" && rest != "" && strings.Trim(rest, "0123456789") == "": // a file that is open already
			case part == "root", part == "cwd", part == "exe", part == "fd", part == "map_files", part == "task":
				p.magic = p.magic || rest != "" || part == "exe"
			}
			out = next
			continue
		}
		l := p.stat(next)
		if l.target == "" {
			out = next
			continue
		}
		if hops++; hops > 40 {
			p.exhausted = true
			return path.Clean(abs)
		}
		// An absolute target starts over at the root; a relative one continues in the folder of the link.
		if strings.HasPrefix(l.target, "/") {
			out = ""
		}
		rest = l.target + "/" + rest
	}
	if out == "" {
		return "/"
	}
	return out
}

// stat is lstat with a cache for the whole analysis, so that one command never gets two different results for a path. Past a
// limit it answers that nothing exists; that cannot let a command through, because exhausted makes the command opaque.
func (p *paths) stat(abs string) link {
	if l, ok := p.links[abs]; ok {
		return l
	}
	if p.lookups++; p.lookups > maxLookups || len(abs) > MaxPath || p.late() {
		p.exhausted = true
		return link{}
	}
	var l link
	if info, err := os.Lstat(abs); err == nil {
		l.exists, l.dir = true, info.IsDir()
		if info.Mode()&os.ModeSymlink != 0 {
			l.target, _ = os.Readlink(abs)
		}
	}
	p.links[abs] = l
	return l
}

// addPattern notes an access to the paths that match a pattern: see expand. pat is absolute, with its literal characters
// escaped; a Hole matches any name. Like add it reports false for devices without data.
func (p *paths) addPattern(pat string, access Access) bool {
	parts := strings.Split(strings.ReplaceAll(pat, Hole, "*"), "/")
	return p.expand("/", parts, access)
}

// addListed notes the folders outside the project that the shell reads to expand a pattern, even if no program opens the
// matches: echo /root/*.
func (p *paths) addListed(pat string) {
	parts := strings.Split(strings.ReplaceAll(pat, Hole, "*"), "/")
	last := len(parts) - 1
	// Components after the last wildcard are not folders that the shell lists.
	for last > 0 && !strings.ContainsAny(parts[last], "*?[") {
		last--
	}
	before := p.manner
	p.manner = Manner{Names: true}
	p.expand("/", append(parts[:last:last], "."), Read)
	p.manner = before
}

// expand notes an access to what matches the components of a pattern below base. Inside the project it reads the folders.
// Outside it notes the folder in front of the first wildcard and lists nothing: the matches may be different when the command
// runs, and the approval of the folder covers them all.
func (p *paths) expand(base string, parts []string, access Access) bool {
	for i, part := range parts {
		if !strings.ContainsAny(part, `*?[\`) {
			base = strings.TrimSuffix(base, "/") + "/" + part
			continue
		}
		if !strings.ContainsAny(strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(part, `\*`, ""), `\?`, ""), `\[`, ""), "*?[") {
			// All wildcards of this component are escaped, so it is a plain name.
			base = strings.TrimSuffix(base, "/") + "/" + unescapeGlob(part)
			continue
		}
		folder := p.real(base)
		if !p.inside(folder, access) {
			return p.add(base, access)
		}
		// Reading a folder counts as 20 lookups, since it costs more than one Lstat.
		if p.lookups += 20; p.lookups > maxLookups {
			p.exhausted = true
			return true
		}
		entries, err := os.ReadDir(folder)
		if err != nil || len(entries) > maxEntries {
			if len(entries) > maxEntries {
				p.exhausted = true
			}
			return p.add(base, access)
		}
		found := false
		for _, e := range entries {
			// A leading dot must be in the pattern, because dotglob is off; a command that turns it on is opaque.
			if strings.HasPrefix(e.Name(), ".") && !strings.HasPrefix(part, ".") && !strings.HasPrefix(part, `\.`) {
				continue
			}
			if ok, _ := path.Match(part, e.Name()); !ok {
				continue
			}
			if p.lookups++; p.lookups > maxLookups {
				p.exhausted = true
				return true
			}
			found = true
			child := folder + "/" + e.Name()
			if i == len(parts)-1 {
				p.add(child, access)
			} else if e.IsDir() || e.Type()&os.ModeSymlink != 0 {
				p.expand(child, parts[i+1:], access)
			}
		}
		// In older shells .* and .? match ".." too. rm refuses to remove "..", so a write by a program with NoFollow is left out.
		if dots, _ := path.Match(part, ".."); dots && strings.HasPrefix(part, ".") && (i < len(parts)-1 || access == Write && !p.manner.NoFollow) {
			p.expand(path.Dir(folder), parts[i+1:], access)
		}
		// A pattern without a match stays as it is, and an earlier command may create a match.
		if !found || slices.Contains(parts[i+1:], "..") {
			p.add(base, access)
		}
		// A component with a Hole (touch out$i) stays in its folder, but several ".." after it may leave that folder.
		up := 0
		for _, later := range parts[i+1:] {
			if strings.HasSuffix(later, "..") {
				up++
			}
		}
		if up > 1 {
			p.add(path.Join(folder, strings.Repeat("../", up-1)), access)
		}
		return true
	}
	return p.add(base, access)
}

// unescapeGlob turns a pattern whose wildcards are all escaped into the name it matches.
func unescapeGlob(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// addLinked notes an argument that has the name of an existing file, for a program without a record. The program may not use
// the argument as a path at all, so it counts only when it is a link to the outside, or protected.
func (p *paths) addLinked(abs string, access Access) {
	real := p.real(abs)
	if !p.inside(real, access) {
		// If the folder is inside the project and the resolved entry is not, the entry is a link.
		if p.inside(p.real(abs[:strings.LastIndexByte(abs, '/')]), access) {
			p.add(abs, access)
		}
		return
	}
	p.guard(real, access)
}

// pathish finds what looks like a path in an argument that no record describes: the argument itself, the value after "=" or
// "@", and the members of a list joined by ":". A bare name does not count; it can lead outside only as a link, which
// TouchIfPath checks.
func pathish(s string) []string {
	if local, ok := localURL(s); ok {
		return []string{local}
	}
	if s == "" || strings.Contains(s, "://") || strings.ContainsRune(s, '\n') {
		return nil
	}
	var out []string
	switch {
	case strings.HasPrefix(s, "--"):
		if _, val, ok := strings.Cut(s, "="); ok {
			return pathish(val)
		}
		return nil
	case strings.HasPrefix(s, "-"):
		if _, val, ok := strings.Cut(s, "="); ok {
			return pathish(val)
		}
		// The value may follow an option of one letter directly: -I/usr/include.
		if len(s) > 3 && (s[2] == '/' || s[2] == '~' || strings.HasPrefix(s[2:], "../")) {
			return pathish(s[2:])
		}
		return nil
	case s == "..", s == "~", strings.HasPrefix(s, "/"), strings.HasPrefix(s, "~/"), strings.HasPrefix(s, "../"), strings.HasPrefix(s, "./"),
		strings.Contains(s, "/../"), strings.HasSuffix(s, "/.."):
		out = append(out, s)
	// An argument with an unknown part may be any path; one that also has a blank is more likely text.
	case strings.Contains(s, Wild) && !strings.Contains(s, " "):
		out = append(out, s)
	}
	if name, val, ok := strings.Cut(s, "="); ok && !strings.ContainsAny(name, "/ ") {
		out = append(out, pathish(val)...)
	}
	if strings.HasPrefix(s, "@") {
		out = append(out, pathish(s[1:])...)
	}
	if strings.Contains(s, ":") && !strings.Contains(s, " ") {
		for part := range strings.SplitSeq(s, ":") {
			if part != s && (strings.HasPrefix(part, "/") || strings.HasPrefix(part, "~/") || strings.HasPrefix(part, "../")) && !slices.Contains(out, part) {
				out = append(out, part)
			}
		}
	}
	return out
}

// localURL is the path in a file: URL: file:/p, file:///p or file://host/p. The host is ignored.
func localURL(s string) (string, bool) {
	if len(s) < 5 || !strings.EqualFold(s[:5], "file:") {
		return "", false
	}
	rest := s[5:]
	if after, ok := strings.CutPrefix(rest, "//"); ok {
		if i := strings.IndexByte(after, '/'); i >= 0 {
			rest = after[i:]
		}
	}
	return rest, strings.HasPrefix(rest, "/")
}
