package scan

import (
	"path"
	"path/filepath"
	"strings"
)

// mover says where cd, pushd and popd lead, and keeps what that depends on beside the state: which folders may be gone. It also
// keeps where the shell has been, since a trap may run in any of these folders.
type mover struct {
	x       *expander
	removes bool     // something before may have removed a directory, so cd into one that is there now may fail
	been    []string // folders that the shell was in
	lost    bool     // it was also in a folder that cannot be known
}

// moved notes where the shell is now.
// runTraps looks at every trap from each of these folders, since a signal may come while the shell is in any of them.
func (m *mover) moved(st *state) {
	if st.unknown {
		m.lost = true
	} else {
		m.been = union(m.been, st.dirs)
	}
}

// cd moves the shell. It may fail, and leave the shell where it was, unless the folder is there now.
// The result is the state after a failure; when the folder is surely there, it is the same as after success.
func (m *mover) cd(args []Word, st *state) (fail state) {
	fail = *st
	var target *Word
	physical := false
	for i := range args {
		s, _ := args[i].One()
		if target == nil && (s == "-L" || s == "-P" || s == "-e" || s == "-@" || s == "--" || s == "-Pe" || s == "-eP") {
			physical = s != "-L" && (physical || strings.Contains(s, "P"))
			continue
		}
		if target != nil {
			return fail // too many arguments: cd does nothing
		}
		target = &args[i]
	}
	// cd alone goes to $HOME, which the command may have set.
	if target == nil {
		home := Plain(m.x.req.Home)
		home.Values = m.x.variable("HOME", st)
		target = &home
	}
	before := st.dirs
	if s, ok := target.One(); ok && s == "-" {
		// OLDPWD is whatever the environment held when the shell started.
		if len(st.prev) == 0 {
			st.unknown = true
		}
		st.dirs, st.prev = st.prev, before
		return fail
	}
	dirs, sure := m.targets(*target, st)
	if dirs == nil {
		st.unknown = true
		return fail
	}
	if physical { // ".." leaves the folder that a link leads to
		s, ok := target.One()
		if !ok {
			st.unknown = true
			return fail
		}
		dirs, sure = nil, false
		for _, d := range st.dirs {
			if strings.HasPrefix(s, "/") {
				d = ""
			}
			dirs = union(dirs, []string{m.x.paths.real(d + "/" + s)})
		}
	}
	// cd needs no more than to look at the folder, so one outside the project is reported as read, not as written.
	for _, d := range dirs {
		m.x.paths.add(d, Read)
	}
	st.dirs, st.prev, st.unknown = dirs, before, false
	if len(dirs) > maxDirs {
		st.unknown = true
	}
	if sure {
		return *st
	}
	return fail
}

// pushd moves the shell and keeps where it was, for popd. Rotating the stack (+n, -n) makes the directory unknown.
func (m *mover) pushd(args []Word, st *state) (fail state) {
	fail = *st
	if len(args) != 1 || strings.HasPrefix(args[0].Text, "+") || strings.HasPrefix(args[0].Text, "-") {
		st.unknown = true
		return fail
	}
	old := st.dirs
	fail = m.cd(args, st)
	// Both states need the same depth of stack: merge forgets stacks of different depths, and popd would then be unknown.
	sure := fail.same(st) // it cannot fail, so there is one stack
	st.stack = append(st.stack[:len(st.stack):len(st.stack)], old)
	if sure {
		fail.stack = st.stack
	}
	return fail
}

// targets are the folders cd may go to; nil when they cannot be known. sure: it cannot fail.
// CDPATH, by which a relative name could mean another folder, does not matter: package run takes it out of the environment, and
// setting it in the command makes that opaque.
func (m *mover) targets(a Word, st *state) (dirs []string, sure bool) {
	sure = !m.removes
	for _, v := range a.Values {
		switch {
		case v.Text == "":
			dirs = union(dirs, st.dirs)
			if a.many { // cd $EMPTY is cd
				dirs = union(dirs, []string{m.x.req.Home})
			}
			continue
		case v.Known() && v.Glob && !strings.Contains(v.Text, Hole) && (!st.unknown || strings.HasPrefix(v.Text, "/")):
			found, ok := m.folders(v, st)
			if !ok {
				return nil, false
			}
			dirs = union(dirs, found)
			continue
		case !v.Exact():
			return nil, false
		case strings.HasPrefix(v.Text, "/"):
			dirs = union(dirs, []string{path.Clean(v.Text)})
		case st.unknown:
			return nil, false
		default:
			for _, d := range st.dirs {
				dirs = union(dirs, []string{path.Join(d, v.Text)})
			}
		}
	}
	for _, d := range dirs {
		// A folder that is there now can still be entered then, unless a program before may remove it (removes).
		sure = sure && m.x.paths.stat(m.x.paths.real(d)).dir
	}
	if a.many {
		sure = false
	}
	return dirs, sure
}

// folders are those a wildcard finds now.
func (m *mover) folders(v Value, st *state) ([]string, bool) {
	var out []string
	bases := st.dirs
	if strings.HasPrefix(v.Text, "/") {
		bases = []string{""}
	}
	for _, d := range bases {
		// A Glob may read many folders. It is charged as 100 lookups, since what it really reads cannot be counted from here.
		if m.x.paths.lookups += 100; m.x.paths.lookups > maxLookups {
			m.x.paths.exhausted = true
			return nil, false
		}
		pattern := v.Pattern
		if d != "" {
			pattern = escapeGlob(d) + "/" + v.Pattern
		}
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) > maxDirs {
			return nil, false
		}
		for _, f := range found {
			out = append(out, path.Clean(f))
		}
	}
	if len(out) == 0 {
		out = bases // nothing to go to
	}
	return out, true
}

// popd moves the shell to where the last pushd came from. popd +n takes an entry out of the middle, and an empty stack may have been
// lost in a merge: the directory is unknown then.
func popd(args []Word, st *state) (fail state) {
	if n := len(st.stack); n > 0 && len(args) == 0 {
		st.dirs, st.stack = st.stack[n-1], st.stack[:n-1]
	} else {
		st.unknown = true
	}
	return *st
}
