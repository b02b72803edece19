package scan

import "slices"

// maxDirs is how many directories a command may be in, depending on what fails, before they count as unknown. Each
// relative path is looked up from every one of them.
const maxDirs = 32

// state is what the commands before this one leave behind: where the shell may be. There may be several directories
// because any command can fail: after "cd a || cd b" it is either. Slices in it are never changed in place, so copying
// the struct copies the state; a subshell walks a copy and drops it.
type state struct {
	dirs    []string   // absolute, as the shell's PWD shows them; links not resolved
	prev    []string   // OLDPWD, where "cd -" leads
	stack   [][]string // of pushd, the newest last; each entry is a list because it may be any of several folders
	funcs   []string   // names that surely mean functions now
	unknown bool       // the folder cannot be known; dirs means nothing then
	dead    bool       // after exit: nothing runs here
}

// merge is the state when the shell has come either from a or from b: every folder of both, and the functions that both
// have. A state after exit adds nothing, since no command runs from it.
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
	// Folders are joined and functions intersected for the same reason: both leave the larger set of things to look at.
	out.funcs = both(a.funcs, b.funcs)
	if len(out.dirs) > maxDirs {
		out.unknown = true
	}
	out.stack = nil // of different depths it is unknown, and popd makes the directory unknown
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

// same reports that walking on from s or from o gives the same result. OLDPWD and the stack of pushd count: a loop that
// changes only those is in another directory after cd - or popd in its next round.
func (s *state) same(o *state) bool {
	return s.unknown == o.unknown && s.dead == o.dead && slices.Equal(s.dirs, o.dirs) && slices.Equal(s.funcs, o.funcs) &&
		slices.Equal(s.prev, o.prev) && slices.EqualFunc(s.stack, o.stack, slices.Equal[[]string])
}
