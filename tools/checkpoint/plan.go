package checkpoint

import (
	"errors"
	"fmt"
	"slices"

	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// Step is an applied change set of the session. Set may be packed.
type Step struct {
	Set   *change.Set
	After bool // it came after the moment to go back to
}

// Status says what a plan does to a file.
type Status string

// What a plan does to a file.
const (
	Restored  Status = "restored"  // it gets its earlier text
	Merged    Status = "merged"    // it gets its earlier text, merged with what the person wrote since
	Conflict  Status = "conflict"  // left alone: the person changed the same lines
	Unchanged Status = "unchanged" // it is already as it was
	Failed    Status = "failed"    // left alone: an earlier content is gone or damaged
)

// Outcome is what a plan does to one file.
type Outcome struct {
	Path   string
	Status Status
	Reason string // for people, with Conflict and Failed
}

// Plan says how to restore files; it writes nothing.
type Plan struct {
	Set      *change.Set // what to write; each member names in Takes what it undoes, which a later plan reads
	Outcomes []Outcome   // one for each path, including those that are left alone
}

// Want narrows a plan down; the zero value is everything that came after the moment.
type Want struct {
	Paths []string     // only these files; empty: all
	Refs  []change.Ref // only these members or hunks, whenever they were applied; empty: what came After
}

// piece is one member of a step, and which of its hunks are undone. It is undone by itself, as if it were a set with one file.
type piece struct {
	set   string      // id
	file  int         // index in the set's Files
	path  string      // before the member
	newAt string      // after the member: NewPath of a rename, else path
	hunks []string    // ids of the hunks to undo; empty: all
	took  []int       // indices of the pieces that it undid as a whole, for a piece of an earlier restore
	after bool        // see Step
	kept  *change.Set // the set as stored, perhaps packed
}

// New works out a plan. id names the new set; steps are all applied sets of the session, oldest first; load gives a packed set its
// texts; now gives the present text of a file. It undoes change after change, newest first, each by a three-way merge. Where a merge
// would have to guess, that file is left as it is and the others are restored. The only error is that want names nothing of the
// session; every other failure is the outcome of a file.
func New(id string, steps []Step, want Want, now change.Present, load func(*change.Set) (*change.Set, error)) (*Plan, error) {
	all := pieces(steps)
	todo, err := choose(all, want)
	if err != nil {
		return nil, err
	}
	load = remembering(load)
	files := &world{now: now, over: map[string]state{}, first: map[string]state{}}
	groups := group(todo)
	plan := &Plan{}
	var members []change.File
	for _, g := range groups {
		// A chain counts when one of its paths was asked for: the others depend on it.
		if len(want.Paths) > 0 && !slices.ContainsFunc(g.paths, func(p string) bool { return slices.Contains(want.Paths, p) }) {
			continue
		}
		outcome, list := g.undo(all, files, load)
		plan.Outcomes = append(plan.Outcomes, outcome...)
		members = append(members, list...)
	}
	plan.Set = change.New(id, members)
	// The person asked for the plan, not a model.
	plan.Set.Source = change.ByPerson
	return plan, nil
}

// remembering is load with a memory: a set with several files is loaded and decompressed once for the whole plan.
func remembering(load func(*change.Set) (*change.Set, error)) func(*change.Set) (*change.Set, error) {
	have := map[string]*change.Set{}
	return func(s *change.Set) (*change.Set, error) {
		if w := have[s.ID]; w != nil {
			return w, nil
		}
		w, err := load(s)
		if err == nil {
			have[s.ID] = w
		}
		return w, err
	}
}

// pieces lists the members in order, each with the earlier ones that it undid as a whole.
func pieces(steps []Step) []*piece {
	var all []*piece
	for _, s := range steps {
		for i, f := range s.Set.Files {
			p := &piece{set: s.Set.ID, file: i, path: f.Path, newAt: f.Path, after: s.After, kept: s.Set}
			if f.Kind == change.Rename {
				p.newAt = f.NewPath
			}
			// Takes is what an earlier restore wrote into its members.
			for _, t := range f.Takes {
				// A part of a set that was taken back leaves the rest of it in force.
				if len(t.Hunks) > 0 {
					p.took = nil
					break
				}
				for k, other := range all {
					if other.set == t.Set && other.path == t.Path {
						p.took = append(p.took, k)
					}
				}
			}
			all = append(all, p)
		}
	}
	return all
}

// choose finds the pieces to undo, newest first. A piece that was undone as a whole and the piece that undid it cancel out, as long as
// both came after the moment to go back to: merging both would only risk conflicts.
func choose(all []*piece, want Want) ([]*piece, error) {
	if len(want.Refs) > 0 {
		return byName(all, want.Refs)
	}
	live := make([]bool, len(all)) // not undone by a later piece
	skip := make([]bool, len(all)) // cancels out with another
	for i := range live {
		live[i] = true
	}
	// From newest to oldest, so that a restore which was itself undone has no effect.
	for i := len(all) - 1; i >= 0; i-- {
		if !live[i] || len(all[i].took) == 0 {
			continue
		}
		// A piece from before the moment must stay: what undid it is then undone like any other.
		even := all[i].after
		for _, k := range all[i].took {
			live[k] = false
			even = even && all[k].after
		}
		if even {
			skip[i] = true
			for _, k := range all[i].took {
				skip[k] = true
			}
		}
	}
	var out []*piece
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].after && !skip[i] {
			out = append(out, all[i])
		}
	}
	return out, nil
}

// byName finds what references name, newest first.
func byName(all []*piece, refs []change.Ref) ([]*piece, error) {
	var out []*piece
	for i := len(all) - 1; i >= 0; i-- {
		// A copy, because hunks are set for this plan only.
		p := *all[i]
		found := false
		for _, r := range refs {
			if r.Set != p.set || r.Path != "" && r.Path != p.path {
				continue
			}
			mine := r.Hunks
			if r.Path == "" && len(r.Hunks) > 0 {
				// Without a path, a hunk's id says which file it is of.
				mine = nil
				for _, h := range p.kept.Files[p.file].Hunks {
					if slices.Contains(r.Hunks, h.ID) {
						mine = append(mine, h.ID)
					}
				}
				if len(mine) == 0 {
					continue
				}
			}
			found = true
			if len(r.Hunks) == 0 {
				p.hunks = nil
				break
			}
			p.hunks = append(p.hunks, mine...)
		}
		if found {
			// all hunks by name are the whole
			if len(p.hunks) == len(p.kept.Files[p.file].Hunks) {
				p.hunks = nil
			}
			out = append(out, &p)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("this session has no change with the given names")
	}
	return out, nil
}

// undo undoes the pieces of a chain, one after the other, in the model files. On the first failure all paths of the chain get that
// outcome, and nothing of the chain is in the plan.
func (g *chain) undo(all []*piece, files *world, load func(*change.Set) (*change.Set, error)) ([]Outcome, []change.File) {
	files.begin(g.paths)
	g.links(files)
	same := func(status Status, reason string) ([]Outcome, []change.File) {
		out := make([]Outcome, len(g.paths))
		for i, p := range g.paths {
			out[i] = Outcome{p, status, reason}
		}
		return out, nil
	}
	for _, p := range g.pieces {
		set, err := load(p.kept)
		if err != nil {
			return same(Failed, err.Error())
		}
		f := set.Files[p.file]
		// The change is undone on its own set of one file, against the files as the pieces before left them.
		one := &change.Set{ID: p.set, Files: []change.File{f}}
		u, err := one.Undo("", p.hunks, files.present)
		var clash *change.ConflictError
		switch {
		// The words of a conflict in lines would not fit where a folder stands in the way.
		case errors.As(err, &clash) && g.nested:
			return same(Conflict, tookPlace)
		case errors.As(err, &clash):
			return same(Conflict, clash.Error())
		case err != nil:
			return same(Failed, err.Error())
		}
		for _, back := range u.Files {
			files.apply(back)
		}
	}
	if g.nested && files.swaps(g.paths) {
		return same(Conflict, tookPlace)
	}
	return g.outcome(files, g.alone(all, files, load))
}

// alone reports whether only the session wrote these files since the oldest change that is undone. The outcome is then Restored, else
// Merged: people must know which files have a text that never existed before.
func (g *chain) alone(all []*piece, files *world, load func(*change.Set) (*change.Set, error)) bool {
	oldest := g.pieces[len(g.pieces)-1]
	want := map[string]state{}
	begun := false
	for _, p := range all {
		begun = begun || p.set == oldest.set && p.path == oldest.path
		if !begun || !slices.Contains(g.paths, p.path) {
			continue
		}
		set, err := load(p.kept)
		if err != nil {
			return false
		}
		f := set.Files[p.file]
		// A step begins with what the one before it ended with, unless somebody wrote in between.
		if was, known := want[p.path]; known && (was.exists != (f.Kind != change.Create) || was.text != f.Old) {
			return false
		}
		want[p.path] = state{}
		if f.Kind != change.Delete {
			want[p.newAt] = state{text: f.New, exists: true}
		}
	}
	// first is what the file was before the plan touched it
	for path, w := range want {
		if is, known := files.first[path]; known && (is.exists != w.exists || is.text != w.text) {
			return false
		}
	}
	return true
}

// outcome compares the files as they are with what they would become, and makes the members of the plan. plain says that nothing was
// merged, see alone.
func (g *chain) outcome(files *world, plain bool) ([]Outcome, []change.File) {
	// gone: there now and not after the plan; come: the other way round
	var gone, come, changed []string
	for _, p := range g.paths {
		was, is := files.first[p], files.over[p]
		switch {
		case was.exists && !is.exists:
			gone = append(gone, p)
		case !was.exists && is.exists:
			come = append(come, p)
		case was.text != is.text || is.mode != 0:
			changed = append(changed, p)
		}
	}
	var takes []change.Ref
	for _, p := range g.pieces {
		// The members say what they take back, so that a later plan can see it; see pieces.
		takes = append(takes, change.Ref{Set: p.set, Path: p.path, Hunks: p.hunks})
	}
	var members []change.File
	// One file gone and one come in a chain is shown as the rename it undoes. A link is never part of a rename: its text is a
	// target, which may mean something else in another folder.
	moved := len(gone) == 1 && len(come) == 1 && files.first[gone[0]].encoding != change.Link && files.over[come[0]].encoding != change.Link
	if moved {
		from, to := files.first[gone[0]], files.over[come[0]]
		members = append(members, change.File{Path: gone[0], NewPath: come[0], Kind: change.Rename, Old: from.text, New: to.text, Encoding: to.encoding})
		changed = append(changed, gone[0], come[0])
	} else {
		for _, p := range gone {
			was := files.first[p]
			members = append(members, change.File{Path: p, Kind: change.Delete, Old: was.text, Encoding: was.encoding, Binary: files.over[p].binary, OldMode: files.over[p].hadMode, Folders: files.over[p].folders})
		}
		for _, p := range come {
			is := files.over[p]
			members = append(members, change.File{Path: p, Kind: change.Create, New: is.text, Encoding: is.encoding, Mode: is.mode, Binary: is.binary, OldEncoding: is.was})
		}
	}
	for _, p := range changed {
		if moved && (p == gone[0] || p == come[0]) {
			continue
		}
		is := files.over[p]
		members = append(members, change.File{Path: p, Kind: change.Edit, Old: files.first[p].text, New: is.text, Encoding: is.encoding, Mode: is.mode, OldMode: is.hadMode, Binary: is.binary, OldEncoding: is.was})
	}
	for i := range members {
		members[i].Takes = takes
	}
	// a rename counts for both of its paths
	changed = append(changed, gone...)
	changed = append(changed, come...)
	var out []Outcome
	for _, p := range g.paths {
		o := Outcome{Path: p, Status: Unchanged}
		if slices.Contains(changed, p) {
			if o.Status = Restored; !plain {
				o.Status = Merged
			}
		}
		out = append(out, o)
	}
	return out, members
}

// world models the files as they would be after the steps worked out so far; nothing is written. Chains use it one after the other.
type world struct {
	now change.Present
	// By path: over is what the file would become, first what it was when the plan first looked at it.
	over, first map[string]state
}

// state is a file at one moment of a plan: its content, and what is needed to make the same
// file again.
type state struct {
	text     string
	exists   bool
	encoding string
	was      string   // encoding of a binary before
	mode     uint32   // permission bits to set; 0: none
	hadMode  uint32   // permission bits before; 0: not known
	folders  []string // folders that were made for it and are removed with it, see change.File
	binary   bool
}

// begin reads the present state of paths before anything is applied, so that outcome can compare.
func (w *world) begin(paths []string) {
	for _, p := range paths {
		w.present(p)
	}
}

// present is a change.Present for the files as they would be.
func (w *world) present(path string) (string, bool) {
	s, known := w.over[path]
	if !known {
		s.text, s.exists = w.now(path)
		w.over[path], w.first[path] = s, s
	}
	return s.text, s.exists
}

// apply makes one member's change. The mode and encoding from before the oldest change are kept through several steps: they
// are what the written plan must compare with.
func (w *world) apply(f change.File) {
	s := state{text: f.New, exists: true, encoding: f.Encoding, mode: f.Mode, hadMode: f.OldMode, binary: f.Binary, was: f.OldEncoding}
	had := w.over[f.Path]
	if had.was != "" {
		s.was = had.was
	}
	if had.hadMode != 0 {
		s.hadMode = had.hadMode
	}
	// A deletion keeps what a later creation needs to compare with.
	switch f.Kind {
	case change.Delete:
		s = state{encoding: f.Encoding, binary: f.Binary, was: s.was, hadMode: s.hadMode, folders: f.Folders}
	case change.Rename:
		w.over[f.Path] = state{}
		w.over[f.NewPath] = s
		return
	}
	// a member that does not change the mode leaves the one that an earlier one set
	if s.exists && s.mode == 0 {
		s.mode = w.over[f.Path].mode
	}
	w.over[f.Path] = s
}

// String is a plan in one line, for people.
func (p *Plan) String() string {
	n := map[Status]int{}
	for _, o := range p.Outcomes {
		n[o.Status]++
	}
	s := textutil.Plural(n[Restored]+n[Merged], "file") + " restored"
	if n[Merged] > 0 {
		s += fmt.Sprintf(" (%d of them merged with what you wrote since)", n[Merged])
	}
	if n[Conflict] > 0 {
		s += fmt.Sprintf(", %d not changed: you changed the same lines", n[Conflict])
	}
	if n[Failed] > 0 {
		s += fmt.Sprintf(", %d cannot be restored", n[Failed])
	}
	return s
}
