package scan

import (
	"path"
	"slices"
	"strings"
)

// accesses keeps what the command touches, and from which folders. Each access of the analysis passes record or runsIn, so what
// cannot be told about one is among the reasons of the report, and what is written is known to what runs later (madeHere).
type accesses struct {
	*report
	paths  *paths
	writes bool // a redirection or a program writes a named file
}

// record notes an access to what a value names, from every directory the shell may be in.
// Of an unknown path the known folder in front is noted too: cat /etc/$x is opaque, and names /etc for the person.
func (x *accesses) record(v Value, access Access, st *state) bool {
	if v.Text == "" {
		return false
	}
	if !v.Known() {
		x.opaque("it cannot be said which path it touches")
		if i := strings.Index(v.Text, Wild); i > 0 && strings.Contains(v.Text[:i], "/") {
			x.record(Literal(v.Text[:strings.LastIndexByte(v.Text[:i], '/')+1]), access, st)
		}
		return true
	}
	// Bash opens a socket for these names in redirections (bash(1), REDIRECTION); there is no such file.
	if strings.HasPrefix(v.Text, "/dev/tcp/") || strings.HasPrefix(v.Text, "/dev/udp/") {
		x.opaque("it opens a network connection")
	}
	if strings.HasPrefix(v.Text, "/") {
		return x.recordAbs(v, "", access)
	}
	if st.unknown {
		x.opaque("it cannot be said in which directory it runs")
		return true
	}
	real := false
	for _, dir := range st.dirs {
		real = x.recordAbs(v, strings.TrimSuffix(dir, "/")+"/", access) || real
	}
	return real
}

// recordAbs notes an access to what a value names in one directory. dir ends in a slash, or is empty for an absolute path.
func (x *accesses) recordAbs(v Value, dir string, access Access) bool {
	if v.Exact() {
		return x.paths.add(dir+v.Text, access)
	}
	// A pattern that finds nothing is taken literally, so its own text counts as well.
	return x.paths.addPattern(escapeGlob(dir)+v.Pattern, access)
}

// runsIn notes the directory itself when it is outside the project: what the program does there is not known.
// A program may read or write its directory without naming it, as make, npm and git do.
func (x *accesses) runsIn(st *state, readOnly bool) {
	if st.unknown {
		x.opaque("it cannot be said in which directory it runs")
		return
	}
	for _, dir := range st.dirs {
		if !x.paths.inside(x.paths.real(dir), Write) {
			access := Write
			if readOnly {
				access = Read
			}
			x.paths.add(dir, access)
		}
	}
}

// systemDirs hold the programs that a bare name finds; a path to one of them is the same as the name.
var systemDirs = map[string]bool{"/bin": true, "/usr/bin": true, "/usr/local/bin": true, "/sbin": true, "/usr/sbin": true,
	"/usr/local/sbin": true, "/opt/homebrew/bin": true}

// locate returns a program's name without its folder. foreign: it is started by a path of its own, so it may be
// anything, whatever its name.
// The file itself is noted as read, which asks about programs outside the project.
func (x *accesses) locate(name string, st *state) (base string, foreign bool) {
	if !strings.Contains(name, "/") {
		return name, false
	}
	base = path.Base(name)
	if systemDirs[path.Dir(name)] {
		return base, false
	}
	x.record(Literal(name), Read, st)
	x.madeHere(name, st)
	return base, true
}

// madeHere makes the command opaque when it runs a file that it has written itself: no rule and no person has seen its text.
// "curl -o x.sh …; sh x.sh" is the case: each half may be allowed by its own pattern. Files that only had their mode or
// time changed (Manner.Keeps) are left out, so chmod +x build.sh && ./build.sh stays an ordinary command.
func (x *accesses) madeHere(name string, st *state) {
	for _, d := range st.dirs {
		if !strings.HasPrefix(name, "/") {
			d += "/" + name
		} else {
			d = name
		}
		real := x.paths.real(d)
		if !x.paths.kept[real] && (slices.Contains(x.paths.writes, real) || x.paths.outside[real] == Write) {
			x.opaque("it runs " + name + ", which it has written itself")
		}
	}
}

// listed notes the folders outside the project that the wildcards of one value list. echo /root/* opens no file and prints
// names all the same, so the folder counts as read for any program.
func (x *accesses) listed(v Value, st *state) {
	switch {
	case !v.Glob || !v.Known():
	case strings.HasPrefix(v.Text, "/"):
		x.paths.addListed(v.Pattern)
	case !st.unknown:
		for _, dir := range st.dirs {
			x.paths.addListed(escapeGlob(strings.TrimSuffix(dir, "/")+"/") + v.Pattern)
		}
	}
}

// finish fills in the analysis. It comes last because limits that were reached anywhere make the whole command opaque.
func (x *accesses) finish() {
	a := x.a
	if x.paths.exhausted {
		x.opaque("it names too many paths to look at them all")
	}
	if x.paths.magic {
		x.opaque("it goes through /proc, where a path leads elsewhere when the command runs")
	}
	if a.Why == "" {
		a.Why = strings.Join(x.why, "; ")
	}
	a.External = x.paths.external()
	a.Protected = x.paths.protected
	a.Reads, a.Writes, a.Redirects = x.paths.reads, x.paths.writes, x.writes
	// One call that may change something is enough: ReadOnly is what lets the command run without a question.
	a.ReadOnly = !a.Opaque && !x.writes && len(a.External) == 0 && len(a.Protected) == 0
	for _, c := range a.Calls {
		a.ReadOnly = a.ReadOnly && c.ReadOnly
	}
}
