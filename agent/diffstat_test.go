package agent

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
)

// linesSet is a change set that adds and removes so many lines of each file.
func linesSet(id string, files map[string][2]int) *change.Set {
	s := &change.Set{ID: id}
	for path, n := range files {
		s.Files = append(s.Files, change.File{Path: path, Kind: change.Edit, Hunks: []change.Hunk{{NewLines: n[0], OldLines: n[1]}}})
	}
	return s
}

func TestATurnCountsWhatItChanged(t *testing.T) {
	h := newHarness(t, calls(`read {"text":"one"}`), calls(`read {"text":"two"}`), says("ok"), says("nothing"), calls(`read {"text":"three"}`), says("ok"), says("It was changed."))
	show := func(id string, state change.State, files map[string][2]int) func(context.Context, *tools.Call, string) error {
		return func(_ context.Context, c *tools.Call, _ string) error {
			c.Report(tools.Update{Change: linesSet(id, files), ChangeState: change.Proposed})
			c.Report(tools.Update{Change: linesSet(id, files), ChangeState: state})
			c.Report(tools.Update{Change: linesSet(id, files), ChangeState: state}) // its problems are known now
			return nil
		}
	}
	h.special["one"] = show("s1", "applied", map[string][2]int{"a": {3, 1}, "b": {2, 0}})
	h.special["two"] = func(ctx context.Context, c *tools.Call, _ string) error {
		_ = show("s2", "applied", map[string][2]int{"a": {1, 1}})(ctx, c, "")
		return show("s3", "rejected", map[string][2]int{"c": {100, 0}})(ctx, c, "")
	}
	s := h.session()
	if end := h.prompt(s, "go"); !reflect.DeepEqual(end.Diff, &DiffStat{Files: 2, Additions: 6, Deletions: 2, Paths: []string{"a", "b"}}) {
		t.Errorf("%+v", end.Diff)
	}
	undo := linesSet("undo", map[string][2]int{"a": {1, 3}})
	undo.Source = change.ByPerson
	s.RecordChange("", change.Applied, undo) // of the person: not the next turn's work
	if end := h.prompt(s, "again"); end.Diff != nil {
		t.Errorf("%+v", end.Diff)
	}
	h.special["three"] = show("s4", "applied", map[string][2]int{"b": {0, 1}, "d": {1, 0}})
	h.prompt(s, "and more")
	total := &DiffStat{Files: 3, Additions: 7, Deletions: 3}
	listed := func() *DiffStat {
		all, err := h.rt.List(t.Context(), "")
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		return all[0].Diff
	}
	if !reflect.DeepEqual(s.Info().Diff, total) || !reflect.DeepEqual(listed(), total) {
		t.Errorf("%+v, listed %+v", s.Info().Diff, listed())
	}
	text, err := s.Summary(t.Context())
	if err != nil || text != "It was changed.\n\n3 files changed, +7 −3 lines in this session." {
		t.Errorf("%q %v", text, err)
	}
	last := h.model.seen()
	if !strings.HasPrefix(last[len(last)-1].System[0], "You describe finished work") {
		t.Error(last[len(last)-1].System)
	}
	h.consistent(s)
}
