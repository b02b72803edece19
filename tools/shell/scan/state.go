package scan

import "slices"

// maxDirs is how many directories a command may be in, depending on what fails, before they count as unknown.
const maxDirs = 32

// state is what the commands before this one leave behind: where the shell may be. Slices in it are never changed in
// place, so copying the struct copies the state.
type state struct {
	dirs    []string // absolute, as the shell's PWD shows them; links not resolved
	prev    []string // OLDPWD
	stack   [][]string
	funcs   []string // names that surely mean functions now
	unknown bool     // nobody can tell; dirs is void
	dead    bool     // after exit: nothing runs here
}

// merge is the state when either a or b was left.
func merge(a, b state) state {
	switch {
	case a.dead:
		return b
	case b.dead:
		return a
	}
	out := a
	out.unknown = a.unknown || b.unknown
	out.dirs = union(a.dirs, b.dirs)
	out.prev = union(a.prev, b.prev)
	out.funcs = both(a.funcs, b.funcs)
	if len(out.dirs) > maxDirs {
		out.unknown = true
	}
	if len(a.stack) != len(b.stack) {
		out.stack = nil
	}
	return out
}

func union(a, b []string) []string {
	out := a
	for _, s := range b {
		if !slices.Contains(out, s) {
			out = append(slices.Clip(out), s)
		}
	}
	return out
}

// both are the names in a that are in b as well.
func both(a, b []string) []string {
	if slices.Equal(a, b) {
		return a
	}
	var out []string
	for _, s := range a {
		if slices.Contains(b, s) {
			out = append(out, s)
		}
	}
	return out
}

func (s *state) same(o *state) bool {
	return s.unknown == o.unknown && s.dead == o.dead && slices.Equal(s.dirs, o.dirs) && slices.Equal(s.funcs, o.funcs)
}
