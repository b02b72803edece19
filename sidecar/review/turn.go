package review

import (
	"slices"

	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/editors"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools/change"
)

// info is a change set for the wire, as it is now; empty for an unknown id.
func (r *Reviewer) info(id string) (info protocol.ChangeInfo) {
	r.ledger.read(func(l *ledger) {
		if c := l.changes[id]; c != nil {
			info = Info(c)
		}
	})
	return info
}

// maxTurnText is how much of a file's text is sent with a turn, in bytes. The limit holds for each text and for all
// texts of the answer together: one message must stay below what editors read. A file beyond it is listed with its
// hunks and without texts.
const maxTurnText = 10 << 20

// Turn is what a turn changed, all its changes together; "" is the last turn that changed something. It fails with
// NotFound for an id that is not a prompt's.
func (r *Reviewer) Turn(id string) (*protocol.ChangeTurnResponse, error) {
	turn, files, err := r.turn(id)
	if err != nil {
		return nil, err
	}
	out := &protocol.ChangeTurnResponse{Turn: turn, Files: []protocol.TurnFile{}}
	total := 0
	for _, f := range files {
		x := protocol.TurnFile{URI: editors.PathURI(f.Path), Kind: string(f.Kind), Binary: f.Binary, Source: f.source, Hunks: []protocol.TurnHunk{}}
		if f.NewPath != "" {
			x.NewURI = editors.PathURI(f.NewPath)
		}
		if small := len(f.Base) <= maxTurnText && len(f.now) <= maxTurnText && total+len(f.Base)+len(f.now) <= maxTurnText; small && !f.Binary && !f.lost {
			total += len(f.Base) + len(f.now)
			// A missing text means that there is no file on that side, which "" does not say.
			if f.Kind != change.Create {
				x.BaseText = &f.Base
			}
			if f.there {
				x.Text = &f.now
			}
		}
		for _, h := range f.Hunks {
			t := protocol.TurnHunk{ID: h.ID, OldStart: int64(h.OldStart), OldLines: int64(h.OldLines), NewStart: int64(h.NewStart), NewLines: int64(h.NewLines), State: f.states[h.ID], Members: []protocol.HunkRef{}}
			for _, m := range h.Members {
				t.Members = append(t.Members, protocol.HunkRef{ChangeSet: m.Set, Hunk: m.Hunks[0]})
			}
			x.Hunks = append(x.Hunks, t)
		}
		out.Files = append(out.Files, x)
	}
	return out, nil
}

// turnFile is a file with all that a turn changed in it. The texts are the file before the turn (Base) and as it is
// at present; other turns and the person may have changed it since.
type turnFile struct {
	change.Together
	source string
	now    string
	// there is false for a file that does not exist at present; now is "" then.
	there  bool
	lost   bool              // its content is no longer kept
	states map[string]string // of its hunks: open, kept, undone
}

// turn collects a turn's changes by file; "" is the last turn that changed something. Changes of the person are left
// out.
func (r *Reviewer) turn(id string) (string, []turnFile, error) {
	// The sets are copied under the lock and put together without it: that reads texts from the store.
	var sets []*Change
	var err error
	r.ledger.read(func(l *ledger) {
		var mine []*Change
		last := ""
		for _, c := range l.applied() {
			if c.Set.Source == change.ByPerson {
				continue
			}
			// applied is in the order of writing, so the last one wins.
			last = c.turn
			if c.turn == id {
				mine = append(mine, c)
			}
		}
		if id == "" {
			if id = last; id == "" {
				return
			}
			for _, c := range l.applied() {
				if c.turn == id && c.Set.Source != change.ByPerson {
					mine = append(mine, c)
				}
			}
		} else if p := l.point(id); p == nil || p.prompt == nil {
			err = protocol.NotFound("no turn %s in this session; _pillion/checkpoint/list shows the prompts", id)
		}
		for _, c := range mine {
			// The lists are cloned too, since a review event changes them in place.
			cp := *c
			cp.kept, cp.undone = slices.Clone(c.kept), slices.Clone(c.undone)
			sets = append(sets, &cp)
		}
	})
	if err != nil {
		return "", nil, err
	}
	return id, r.together(sets), nil
}

// together groups the members of sets by file, across renames, and sums up each file. A hunk is kept or undone when
// all the hunks that it is made of are.
func (r *Reviewer) together(sets []*Change) []turnFile {
	// A group is one file. Its name changes with each rename, so groups are found by the name that the file has at
	// that point.
	type group struct {
		parts  []change.Part
		at     string
		source string
		lost   bool
	}
	var order []*group
	at := map[string]*group{}
	by := map[string]*Change{}
	for _, c := range sets {
		by[c.Set.ID] = c
		// A set whose texts are gone is still listed, marked as lost.
		set, err := r.whole(c.Set)
		if err != nil {
			set = c.Set
		}
		for _, f := range set.Files {
			g := at[f.Path]
			if g == nil {
				g = &group{at: f.Path, source: "agent"}
				order = append(order, g)
			}
			// A path that a rename has left may be taken by another file, which is a group of its own.
			delete(at, g.at)
			if g.at = f.Path; f.Kind == change.Rename {
				g.at = f.NewPath
			}
			at[g.at] = g
			g.parts = append(g.parts, change.Part{Set: c.Set.ID, File: f})
			g.lost = g.lost || err != nil
			if c.Set.Source == change.ByCommand {
				g.source = "command"
			}
		}
	}
	var out []turnFile
	for _, g := range order {
		f := turnFile{source: g.source, lost: g.lost, states: map[string]string{}}
		if r.files != nil {
			f.now, f.there = r.files.Present(g.at)
		}
		f.Together = change.Sum(g.parts, f.now)
		// The changes of the turn have cancelled each other out, as when a file was created and deleted again.
		if f.Kind == "" {
			continue
		}
		for _, h := range f.Hunks {
			// Undone needs every member. Kept needs at least one kept member and no open one: what is left of a hunk
			// after a part was undone can still be kept.
			undone, kept := len(h.Members) > 0, false
			for _, m := range h.Members {
				c := by[m.Set]
				undone = undone && slices.Contains(c.undone, m.Hunks[0])
				kept = kept || slices.Contains(c.kept, m.Hunks[0])
			}
			for _, m := range h.Members {
				c := by[m.Set]
				kept = kept && (slices.Contains(c.kept, m.Hunks[0]) || slices.Contains(c.undone, m.Hunks[0]))
			}
			switch {
			case undone:
				f.states[h.ID] = "undone"
			case kept:
				f.states[h.ID] = "kept"
			default:
				f.states[h.ID] = "open"
			}
		}
		out = append(out, f)
	}
	return out
}

// refs are the hunks of change sets that hunks of turns are made of.
func (r *Reviewer) refs(ids []string) ([]change.Ref, error) {
	var turns []string
	r.ledger.read(func(l *ledger) {
		for _, c := range l.applied() {
			if c.Set.Source != change.ByPerson && !slices.Contains(turns, c.turn) {
				turns = append(turns, c.turn)
			}
		}
	})
	// A hunk's id does not say which turn it belongs to, so every turn is put together until all ids are found.
	missing := toSet(ids)
	var out []change.Ref
	for _, t := range turns {
		_, files, err := r.turn(t)
		if err != nil {
			continue
		}
		for _, f := range files {
			for _, h := range f.Hunks {
				if missing[h.ID] {
					delete(missing, h.ID)
					out = append(out, h.Members...)
				}
			}
		}
	}
	for id := range missing {
		return nil, rpc.InvalidParams("hunks: no hunk %q in any turn; _pillion/change/turn shows them", id)
	}
	return out, nil
}
