package scan

import (
	"path"
	"path/filepath"
	"strings"
)

// mover works out where cd, pushd and popd lead. It also keeps every folder that the shell has been in, because a trap may
// run in any of them.
type mover struct {
	x       *expander
	removes bool     // an earlier command may have removed a directory, so cd may fail even into one that exists now
	been    []string // folders that the shell was in
	lost    bool     // the shell was also in a folder that cannot be determined
}

// moved adds the shell's folder to been, for runTraps: a signal may arrive, and its trap run, while the shell is in that folder.
func (m *mover) moved(st *state) {
	if st.unknown {
		m.lost = true
	} else {
		m.been = union(m.been, st.dirs)
	}
}

// cd moves the shell: st becomes the state after success, the result is the state after failure, in which the shell is where
// it was. When cd cannot fail, because the folder exists, both are the same.
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
		// Before the first cd, OLDPWD comes from the environment and is not known.
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
	if physical { // cd -P resolves links first, so ".." leads to the parent of a link's target
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
	// cd only looks at the folder, so one outside the project is reported as read, not as written.
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

// pushd moves the shell like cd and keeps the folder before for popd. Rotating the stack (+n, -n) makes the directory unknown.
func (m *mover) pushd(args []Word, st *state) (fail state) {
	fail = *st
	if len(args) != 1 || strings.HasPrefix(args[0].Text, "+") || strings.HasPrefix(args[0].Text, "-") {
		st.unknown = true
		return fail
	}
	old := st.dirs
	fail = m.cd(args, st)
	// merge drops stacks of different depths, and the next popd would make the folder unknown. So where pushd cannot fail, the
	// state after failure gets the new stack too.
	sure := fail.same(st)
	st.stack = append(st.stack[:len(st.stack):len(st.stack)], old)
	if sure {
		fail.stack = st.stack
	}
	return fail
}

// targets are the folders to which cd may go, nil when they cannot be determined. sure is true when cd cannot fail.
// CDPATH could give a relative name another meaning, but it is never set: package run removes it from the environment, and
// a command that sets it is opaque.
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
		// A folder that exists during the analysis still exists when the command runs, unless the command removes it first (removes).
		sure = sure && m.x.paths.stat(m.x.paths.real(d)).dir
	}
	if a.many {
		sure = false
	}
	return dirs, sure
}

// folders are the folders that match a pattern now, at most maxDirs for each folder of st. ok is false beyond a limit. Without
// a match the result is the folders of st: cd fails, and the shell stays.
func (m *mover) folders(v Value, st *state) ([]string, bool) {
	var out []string
	bases := st.dirs
	if strings.HasPrefix(v.Text, "/") {
		bases = []string{""}
	}
	for _, d := range bases {
		// One Glob counts as 100 lookups: it may read many folders, and how many cannot be seen from here.
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
		out = bases
	}
	return out, true
}

// popd moves the shell to the folder in which the last pushd ran. The folder becomes unknown after popd with arguments (+n takes an
// entry from the middle of the stack) and when the stack is empty, since merge may have dropped it.
func popd(args []Word, st *state) (fail state) {
	if n := len(st.stack); n > 0 && len(args) == 0 {
		st.dirs, st.stack = st.stack[n-1], st.stack[:n-1]
	} else {
		st.unknown = true
	}
	return *st
}
