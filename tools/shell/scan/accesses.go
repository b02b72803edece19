package scan

import (
	"path"
	"slices"
	"strings"
)

// accesses collects the paths that the command touches. Its methods turn a word and the shell's directory into absolute paths;
// where one of the two is unknown, they add a reason to the report. It also knows which files the command has written so far,
// for madeHere.
type accesses struct {
	*report
	paths  *paths
	writes bool // a redirection or a program writes a named file
}

// record notes an access to the path in a value, relative to every directory that the shell may be in. It reports false when the
// value is empty or names devices without data. When only the beginning of the path is known, that folder is noted:
// cat /etc/$x is opaque, and the person is shown /etc.
func (x *accesses) record(v Value, access Access, st *state) bool {
	if v.Text == "" {
		return false
	}
	if !v.Known() {
		x.opaqueBounded("it cannot be said which path it touches")
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
		x.opaqueBounded("it cannot be said in which directory it runs")
		return true
	}
	real := false
	for _, dir := range st.dirs {
		real = x.recordAbs(v, strings.TrimSuffix(dir, "/")+"/", access) || real
	}
	return real
}

// recordAbs is record for one directory. dir ends in a slash, or is empty when v is an absolute path.
func (x *accesses) recordAbs(v Value, dir string, access Access) bool {
	if v.Exact() {
		return x.paths.add(dir+v.Text, access)
	}
	// A pattern that finds nothing is taken literally, so its own text counts as well.
	return x.paths.addPattern(escapeGlob(dir)+v.Pattern, access)
}

// runsIn notes the shell's directory when it is outside the project, as written unless the program is read-only.
// A program may read or write its directory without naming it, as make, npm and git do.
func (x *accesses) runsIn(st *state, readOnly bool) {
	if st.unknown {
		x.opaqueBounded("it cannot be said in which directory it runs")
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

// systemDirs are the usual folders of PATH. A program typed with one of these folders (/usr/bin/git) is treated like its bare name.
var systemDirs = map[string]bool{"/bin": true, "/usr/bin": true, "/usr/local/bin": true, "/sbin": true, "/usr/sbin": true,
	"/usr/local/sbin": true, "/opt/homebrew/bin": true}

// locate returns a program's name without its folder. foreign is true for a path outside systemDirs: ./git may be any program,
// whatever its name says. A foreign file is noted as read, so that a program outside the project needs approval.
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

// madeHere makes the command opaque when name is a file that the same command has written: neither a rule nor a person has
// seen what would run. In "curl -o x.sh …; sh x.sh" a separate pattern may allow each half. Files whose mode or
// time alone has changed (Manner.Keeps) do not count, so chmod +x build.sh && ./build.sh stays an ordinary command.
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

// listed notes the folders outside the project in which the shell looks for the wildcards of one value. The folder counts as
// read whatever the program is: echo /root/* opens no file, but prints the names in /root.
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

// finish fills in the Analysis after the walk. It must run last: a limit that was reached at any point makes the whole command opaque.
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
	// ReadOnly lets the command run without approval, so a single call that may change something makes it false.
	a.ReadOnly = !a.Opaque && !x.writes && len(a.External) == 0 && len(a.Protected) == 0
	for _, c := range a.Calls {
		a.ReadOnly = a.ReadOnly && c.ReadOnly
	}
}
