package scan

// trap walks the script that the builtin trap will run later. It is walked twice: here, from the present directory, and at the
// end of the analysis (runTraps), from all directories that the shell was in.
func (w *walker) trap(c *Visit) {
	args := c.Args[1:]
	if len(args) > 0 && args[0].Text == "--" {
		args = args[1:]
	}
	// With fewer than two arguments, trap resets a signal or lists the traps.
	if len(args) < 2 {
		return
	}
	s, ok := args[0].One()
	if !ok {
		w.opaque("a trap runs what cannot be read off the command")
		if s, ok := Spelled(args[:1]); ok {
			inner := *c.st
			inner.funcs = nil
			w.script(s, &inner)
		}
		return
	}
	if s == "-" || s == "" || s == "-l" || s == "-p" {
		return
	}
	inner := *c.st
	inner.funcs = nil // functions may be declared, replaced or unset before the trap runs
	w.script(s, &inner)
	// If the directory is unknown already, a second walk would find nothing more.
	if !inner.unknown && len(w.traps) < maxDirs {
		w.traps = append(w.traps, trapped{s, *c.st, w.text.vars, w.text.outer})
	}
}

// trapped is the script of a trap, with the state and the variables at the call of trap.
type trapped struct {
	text  string
	st    state
	vars  variables
	outer variables
}

// runTraps walks the scripts of the traps again, from every folder that the shell was in. A trap on EXIT runs wherever
// the last cd led: trap 'rm -r .' EXIT; cd /.
func (w *walker) runTraps() {
	for _, t := range w.traps {
		st := t.st
		st.funcs = nil
		st.dirs, st.unknown = union(st.dirs, w.mover.been), st.unknown || w.mover.lost
		if len(st.dirs) > maxDirs {
			st.unknown = true
		}
		if st.same(&t.st) {
			continue
		}
		w.text.vars, w.text.outer = t.vars, t.outer
		w.script(t.text, &st)
	}
}
