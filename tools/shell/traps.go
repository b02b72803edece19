package shell

// trap looks at what a trap will run.
func (w *walker) trap(c *call) {
	args := c.args[1:]
	if len(args) > 0 && args[0].text == "--" {
		args = args[1:]
	}
	if len(args) < 2 {
		return
	}
	s, ok := args[0].one()
	if !ok {
		w.opaque("a trap runs what cannot be read off the command")
		return
	}
	if s == "-" || s == "" || s == "-l" || s == "-p" {
		return
	}
	inner := *c.st
	inner.funcs = nil // what its names mean when it runs nobody knows
	w.script(s, &inner)
	if !inner.unknown && len(w.traps) < maxDirs {
		w.traps = append(w.traps, trapped{s, *c.st, w.vars, w.outer})
	}
}

// trapped is a text that runs later, from any folder the shell comes to.
type trapped struct {
	text  string
	st    state
	vars  variables
	outer variables
}

// runTraps looks at the traps once more, from the folders the shell was in after they were set.
func (w *walker) runTraps() {
	for _, t := range w.traps {
		st := t.st
		st.funcs = nil
		st.dirs, st.unknown = union(st.dirs, w.been), st.unknown || w.lost
		if len(st.dirs) > maxDirs {
			st.unknown = true
		}
		if st.same(&t.st) {
			continue
		}
		w.vars, w.outer = t.vars, t.outer
		w.script(t.text, &st)
	}
}
