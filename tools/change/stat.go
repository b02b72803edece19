package change

// Back reports whether the set is the person's own, an undo or a restore. Counts of what the agent changed leave such a set out.
func (s *Set) Back() bool { return s.Source == ByPerson }

// Lines counts by path what the set adds and removes, the way a person reads a diff. A rename counts under its new
// name.
func (s *Set) Lines() (id string, files map[string][2]int) {
	files = map[string][2]int{}
	for _, f := range s.Files {
		path := f.Path
		if f.NewPath != "" {
			path = f.NewPath
		}
		n := files[path]
		for _, h := range f.Hunks {
			n[0] += h.NewLines
			n[1] += h.OldLines
		}
		files[path] = n
	}
	return s.ID, files
}
