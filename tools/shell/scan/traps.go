package scan

// trap looks at the text that the builtin trap will run later. It is walked twice: here, from the present directory, and at the
// end of the analysis (runTraps), from all directories that the shell was in.
func (w *walker) trap(c *Visit) {
	args := c.Args[1:]
	if len(args) > 0 && args[0].Text == "--" {
		args = args[1:]
	}
	// One argument resets a signal or lists the traps: nothing is left to run.
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
	inner.funcs = nil // functions may be declared, replaced or unset before it runs
	w.script(s, &inner)
	// When the folder is unknown already, the walk above was as general as a second one could be.
	if !inner.unknown && len(w.traps.set) < maxDirs {
		w.traps.set = append(w.traps.set, trapped{s, *c.st, w.text.vars, w.text.outer})
	}
}

// traps are the texts that run at a signal or when the shell ends, and where the shell may be by then.
type traps struct {
	set  []trapped
	been []string // folders that the shell was in
	lost bool     // it was also in a folder that cannot be known
}

// trapped is a text that runs later, from any folder the shell comes to.
type trapped struct {
	text  string
	st    state
	vars  variables
	outer variables
}

// runTraps looks at the traps once more, from the folders the shell was in after they were set.
// A trap at EXIT runs wherever the last cd led: trap 'rm -r .' EXIT; cd /.
func (w *walker) runTraps() {
	for _, t := range w.traps.set {
		st := t.st
		st.funcs = nil
		st.dirs, st.unknown = union(st.dirs, w.traps.been), st.unknown || w.traps.lost
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
