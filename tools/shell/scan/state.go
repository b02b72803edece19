package scan

import "slices"

// maxDirs is how many possible directories are followed before the directory counts as unknown. Each relative path is
// resolved from every one of them.
const maxDirs = 32

// state is the state of the shell at a point of the script. There may be several directories because any command can
// fail: after "cd a || cd b" the shell is in a or in b. Slices in it are never changed in place, so copying
// the struct copies the state; a subshell is walked with a copy, which is then dropped.
type state struct {
	dirs    []string   // absolute, as the shell's PWD shows them; links not resolved
	prev    []string   // OLDPWD, where "cd -" leads; empty before the first cd
	stack   [][]string // of pushd, the newest last; each entry lists the possible folders
	funcs   []string   // names that certainly mean functions at this point
	unknown bool       // the directory cannot be determined; dirs is then meaningless
	dead    bool       // after exit: this point is unreachable
}

// merge is the state at a point that the shell reaches from a or from b: every folder of both, and the functions that both
// have. A dead state adds nothing.
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
	// A name that is a function in one state only may be a program in the other, so it is walked as both.
	out.funcs = both(a.funcs, b.funcs)
	if len(out.dirs) > maxDirs {
		out.unknown = true
	}
	out.stack = nil // stacks of different depths are dropped; popd with an empty stack makes the directory unknown
	if len(a.stack) == len(b.stack) {
		for i := range a.stack {
			out.stack = append(out.stack, union(a.stack[i], b.stack[i]))
		}
	}
	return out
}

// union is a and what b adds. a is not changed, not even beyond its length.
func union(a, b []string) []string {
	out := a
	for _, s := range b {
		if !slices.Contains(out, s) {
			out = append(slices.Clip(out), s)
		}
	}
	return out
}

// both are the names that are in a and in b.
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

// same reports whether two states are equal. OLDPWD and the stack of pushd count: a loop that changes only those is in another
// directory when its next round runs "cd -" or popd.
func (s *state) same(o *state) bool {
	return s.unknown == o.unknown && s.dead == o.dead && slices.Equal(s.dirs, o.dirs) && slices.Equal(s.funcs, o.funcs) &&
		slices.Equal(s.prev, o.prev) && slices.EqualFunc(s.stack, o.stack, slices.Equal[[]string])
}
