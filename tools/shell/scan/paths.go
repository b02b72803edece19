package scan

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// maxLookups bounds how often the file system is asked in one analysis. A command of 64 KiB with wildcards and links could
// otherwise keep the disk busy for minutes.
const maxLookups = 20_000

// MaxPath is the longest path that is looked at, in bytes: the kernel's limit.
const MaxPath = 4096

// maxEntries is the largest directory, in entries, that a wildcard is looked up in. In a larger one the command is opaque.
const maxEntries = 4_000

// paths resolves what a command names and keeps what is outside, is protected, read or written.
// It is made for one analysis. The answers of the file system are those of the moment of asking: what changes before the command
// runs is for the sandbox to hold.
type paths struct {
	req       Request
	roots     []string        // what counts as inside, for reading and writing; links resolved
	readRoots []string        // what counts as inside for reading only; links resolved
	links     map[string]link // what stat found, by absolute path
	lookups   int             // see maxLookups
	exhausted bool            // a limit was reached: the command becomes opaque, whatever was found
	magic     bool            // a path goes through a link below /proc that leads elsewhere in the process that opens it
	end       time.Time       // when to give up
	asked     int             // how often late was called
	manner    Manner          // of the program at hand

	kept    map[string]bool // files that were written only by programs that put no text of their own in (Manner.Keeps)
	folders []string        // folders that the program at hand reads; behave empties it for each program
	files   int             // how many files the program at hand reads

	// What the analysis reports. Paths are absolute with links resolved, each once, in the order they were found.
	outside   map[string]Access // paths outside the project; Write when any access writes
	order     []string          // the keys of outside as they were found: the order of Analysis.External
	protected []ProtectedPath
	reads     []string // inside the project
	writes    []string // inside the project
}

// late reports that the time is up. It reads the clock on every 16th call: reading it is slower than most steps.
func (p *paths) late() bool {
	if p.asked++; p.asked%16 == 0 && !p.exhausted && time.Now().After(p.end) {
		p.exhausted = true
	}
	return p.exhausted
}

// link is what a path is on disk.
type link struct {
	target string // of a symbolic link
	exists bool   // something is there, be it a dangling link
	dir    bool   // a folder itself, not a link to one
}

// newPaths resolves the folders of the request once. The time for the analysis starts here.
func newPaths(r Request) *paths {
	p := &paths{req: r, end: time.Now().Add(max(walkTime, r.Patience)), links: map[string]link{}, outside: map[string]Access{}}
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

// add notes one access. It reports false for the devices that hold no data.
// The first access of a path outside decides its place in the list; a later write replaces a read there.
func (p *paths) add(abs string, access Access) bool {
	if harmlessDevice(abs) {
		return false
	}
	real := p.real(abs)
	if i := strings.LastIndexByte(abs, '/'); p.manner.NoFollow && i >= 0 && abs[i+1:] != "" && abs[i+1:] != "." && abs[i+1:] != ".." {
		real = strings.TrimSuffix(p.real(abs[:i+1]), "/") + abs[i:] // rm takes the link away, not what it leads to
	}
	// A link to /dev/null is as harmless as /dev/null.
	if harmlessDevice(real) {
		return false
	}
	// A program that learns only names cannot show what is in a file of the project.
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
		// A thousand names are more than a person reads; the limit keeps Contains from making a long command quadratic.
		if list := p.list(access); len(*list) < 1000 && !slices.Contains(*list, real) {
			*list = append(*list, real)
		}
	}
	p.guard(real, access)
	return true
}

// keep notes whether something has put its own text into a file.
// A file that is later written with text of unknown origin loses its mark for good: see madeHere.
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

// untouched reports that nothing so far has put a text of its own into a file.
func (p *paths) untouched() bool {
	for _, access := range p.outside {
		if access == Write {
			return false
		}
	}
	return !slices.ContainsFunc(p.writes, func(real string) bool { return !p.kept[real] })
}

// list is where accesses of this kind inside the project are kept.
func (p *paths) list(access Access) *[]string {
	if access == Write {
		return &p.writes
	}
	return &p.reads
}

// sensitive are the protected files, by their names below a folder, that a change of the whole folder changes too:
// rm -r .git removes .git/config without naming it. Which of them are protected is up to Request.Protected.
var sensitive = [...]string{
	".git/config", ".git/hooks/pre-commit", "config", "hooks/pre-commit", ".vscode/settings.json", ".vscode/tasks.json", "settings.json", ".envrc",
	".bashrc", ".profile", ".ssh/authorized_keys", "authorized_keys", ".npmrc", "pillion.jsonc",
}

// guard notes an access to a protected path, inside or outside the project.
// Hooks count even when they do not exist yet: most repositories have none, and a change of the whole folder can add one.
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

// protect lists a protected path once. A write counts more than a read.
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

// harmlessDevice are files without contents. /dev/tcp and the disks are not among them.
// /dev/tcp/host/port is a network connection of bash's own, and a disk under /dev holds every file of the machine.
func harmlessDevice(p string) bool {
	switch p {
	case "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty":
		return true
	}
	n, ok := strings.CutPrefix(p, "/dev/fd/")
	return ok && n != "" && strings.Trim(n, "0123456789") == ""
}

// real resolves links as the kernel would, ".." after a link included; what does not exist keeps its name.
// The kernel's limit of 40 links (path_resolution(7), ELOOP) is kept. filepath.EvalSymlinks does not serve: it fails for a
// path that does not exist yet, and most files that a command writes do not.
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
		// A parent is taken of the resolved path, as the kernel does: after a link ".." leads to the parent of its target.
		case "..":
			out = out[:max(0, strings.LastIndexByte(out, '/'))]
			continue
		}
		next := out + "/" + part
		if strings.HasPrefix(next, "/proc/") || strings.HasPrefix(next, "/sys/") {
			// These are other files once the command runs: /proc/self is another process then. Links of a process
			// lead to where its root, its folder and its files are.
			switch {
			case !strings.HasPrefix(next, "/proc/"):
			case part == "root" && (out == "/proc/self" || out == "/proc/thread-self"):
				out = ""
				continue
			case part == "fd" && rest != "" && strings.Trim(rest, "0123456789") == "": // what is open already
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

// stat says what is at a path, without following a link there. Answers are kept for the whole analysis: asking again
// could give another answer to the same command. When a limit is reached it claims that nothing is there; exhausted then
// makes the command opaque, so that claim lets nothing through.
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

// addPattern notes what a wildcard finds: the folder it looks in when that is outside, else the names that match.
// pat is an absolute pattern with its literal characters escaped; holes match any name.
func (p *paths) addPattern(pat string, access Access) bool {
	parts := strings.Split(strings.ReplaceAll(pat, Hole, "*"), "/")
	return p.expand("/", parts, access)
}

// addListed notes the folders outside that a wildcard lists, though no program may open what is found: echo /root/*.
func (p *paths) addListed(pat string) {
	parts := strings.Split(strings.ReplaceAll(pat, Hole, "*"), "/")
	last := len(parts) - 1
	// What is after the last wildcard is not a folder that the shell lists.
	for last > 0 && !strings.ContainsAny(parts[last], "*?[") {
		last--
	}
	before := p.manner
	p.manner = Manner{Names: true}
	p.expand("/", append(parts[:last:last], "."), Read)
	p.manner = before
}

// expand goes down a pattern's parts from a folder. Outside the project it notes the folder and lists nothing: what a
// wildcard finds there may be different when the command runs, and asking about the folder covers it.
func (p *paths) expand(base string, parts []string, access Access) bool {
	for i, part := range parts {
		if !strings.ContainsAny(part, `*?[\`) {
			base = strings.TrimSuffix(base, "/") + "/" + part
			continue
		}
		if !strings.ContainsAny(strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(part, `\*`, ""), `\?`, ""), `\[`, ""), "*?[") {
			// All wildcards of this part are escaped: it is a name.
			base = strings.TrimSuffix(base, "/") + "/" + unescapeGlob(part)
			continue
		}
		folder := p.real(base)
		if !p.inside(folder, access) {
			return p.add(base, access)
		}
		// Reading a whole folder costs more than one Lstat; it is charged as 20.
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
			// Names that begin with a dot match only where the pattern writes the dot, as dotglob is off; turning it on is opaque.
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
		// To older shells .* and .? are .. as well; rm alone does not take it.
		if dots, _ := path.Match(part, ".."); dots && strings.HasPrefix(part, ".") && (i < len(parts)-1 || access == Write && !p.manner.NoFollow) {
			p.expand(path.Dir(folder), parts[i+1:], access)
		}
		// A pattern that finds nothing stays as it is, and the file may be made before the command gets there.
		if !found || slices.Contains(parts[i+1:], "..") {
			p.add(base, access)
		}
		// A name made up here (for i in 1 2; do touch out$i) stays in the folder; ".." after it may leave again.
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

// unescapeGlob is the text of a pattern that holds no wildcards.
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

// addLinked notes a plain word given to a program without a record, where something of that name exists. It may be no path to
// the program at all, so it counts only where it is a link that leads outside, or protected.
func (p *paths) addLinked(abs string, access Access) {
	real := p.real(abs)
	if !p.inside(real, access) {
		// The folder is inside and the entry is not, so the entry itself is a link.
		if p.inside(p.real(abs[:strings.LastIndexByte(abs, '/')]), access) {
			p.add(abs, access)
		}
		return
	}
	p.guard(real, access)
}

// pathish finds what looks like a path in an argument of a program, or of an option, that no record describes: the word
// itself, the value after "=", after "@", and the members of a list joined by ":". A bare name does not look like a
// path; it can only lead outside when it is a link, which TouchIfPath looks up.
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
		// -I/usr/include: the value is glued to an option of one letter.
		if len(s) > 3 && (s[2] == '/' || s[2] == '~' || strings.HasPrefix(s[2:], "../")) {
			return pathish(s[2:])
		}
		return nil
	case s == "..", s == "~", strings.HasPrefix(s, "/"), strings.HasPrefix(s, "~/"), strings.HasPrefix(s, "../"), strings.HasPrefix(s, "./"),
		strings.Contains(s, "/../"), strings.HasSuffix(s, "/.."):
		out = append(out, s)
	// A word with an unknown part may be any path; one with a blank is rather a sentence.
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

// localURL is the path that a file: URL names, in any spelling: a host before the path says nothing.
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
