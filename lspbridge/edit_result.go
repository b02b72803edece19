package lspbridge

import "slices"

// result is the plan as a list in which every path occurs once, so that the edits can be applied in any
// order. Edits that change nothing are left out.
func (p *plan) result() []FileEdit {
	named := map[string]int{}
	for _, f := range p.order {
		named[f.Path]++
		if f.NewPath != "" {
			named[f.NewPath]++
		}
	}
	out, tangled := make([]FileEdit, 0, len(p.order)), []*FileEdit(nil)
	for _, f := range p.order {
		switch {
		case named[f.Path] > 1 || f.NewPath != "" && named[f.NewPath] > 1:
			tangled = append(tangled, f)
		case f.Kind != "edit" || f.Old != f.New:
			out = append(out, *f)
		}
	}
	return append(out, untangled(tangled)...)
}

// untangled describes files that exchange names (a swap, or a new file in the place of one that was moved)
// by what happens to each path. No order of renames gives that result, because each one would overwrite
// another file.
func untangled(list []*FileEdit) []FileEdit {
	type place struct{ was, is *FileEdit }
	places := map[string]*place{}
	var order []string
	at := func(path string) *place {
		if places[path] == nil {
			places[path] = &place{}
			order = append(order, path)
		}
		return places[path]
	}
	for _, f := range list {
		if f.Kind != "create" {
			at(f.Path).was = f
		}
		switch {
		case f.NewPath != "":
			at(f.NewPath).is = f
		case f.Kind != "delete":
			at(f.Path).is = f
		}
	}
	slices.Sort(order)
	out := make([]FileEdit, 0, len(order))
	for _, path := range order {
		switch p := places[path]; {
		case p.is == nil:
			out = append(out, FileEdit{Path: path, Kind: "delete", Old: p.was.Old, Confirm: p.was.Confirm})
		case p.was == nil:
			out = append(out, FileEdit{Path: path, Kind: "create", New: p.is.New, Confirm: p.is.Confirm})
		case p.was.Old != p.is.New:
			out = append(out, FileEdit{Path: path, Kind: "edit", Old: p.was.Old, New: p.is.New, Confirm: p.is.Confirm})
		}
	}
	return out
}
