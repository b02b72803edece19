package acp

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/sidecar/editors"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/permission"
)

// An edit of three files stands whole in what a client renders: in the title, or in the first diff alone.
func TestAnEditOfThreeFilesIsShownWhole(t *testing.T) {
	cwd := t.TempDir()
	set := change.New("chg_1", []change.File{
		{Path: filepath.Join(cwd, "a.go"), Kind: change.Edit, Old: "one\n", New: "ONE\n"},
		{Path: filepath.Join(cwd, "b.go"), Kind: change.Create, New: "two\n"},
		{Path: filepath.Join(cwd, "c.go"), Kind: change.Delete, Old: "three\n"},
	}).WithVerdict(&change.Verdict{Certainty: change.Fresh, Introduced: []change.Problem{{Path: filepath.Join(cwd, "a.go"), Line: 1, Column: 1, Severity: "error", Message: "undefined: ONE"}}})
	r := permission.Request{Permission: "edit", Always: []string{"*"}, Change: set, Title: "Edit"}
	first := func(u protocol.ToolCallUpdate) string {
		d, ok := u.Content[0].Value.(*protocol.Diff)
		if !ok {
			return ""
		}
		return *d.OldText + d.NewText
	}
	for _, c := range []struct {
		client string
		show   func(protocol.ToolCallUpdate) string
		want   []string
	}{
		{"", func(u protocol.ToolCallUpdate) string { return u.Title }, []string{"a.go", "b.go", "c.go", "introduces 1"}},
		{"", first, []string{"a.go", "b.go", "c.go", "introduces 1", "ONE", "two", "three", "any edit in this session"}},
		{"CodeCompanion.nvim", first, []string{"a.go", "b.go", "c.go", "introduces 1", "ONE", "two", "three", "any edit in this session"}},
		{"acpx", func(u protocol.ToolCallUpdate) string { return u.Title }, []string{"a.go", "b.go", "c.go", "introduces 1"}},
	} {
		p := protocol.InitializeRequest{ClientInfo: &protocol.Implementation{Name: c.client}}
		u := protocol.ToolCallUpdate{}
		genericCall(&u, r, set, cwd, editors.NewClient(p).Profile)
		screen := c.show(u)
		for _, want := range c.want {
			if !strings.Contains(screen, want) {
				t.Errorf("%q: the screen does not show %q: %s", c.client, want, screen)
			}
		}
	}
	// The verdict stands above the diffs where all of them are shown.
	u := protocol.ToolCallUpdate{}
	genericCall(&u, r, set, cwd, editors.Profile{AllDiffs: true, OptionNames: true})
	if len(u.Content) != 4 || u.Content[0].Type != "content" || u.Content[1].Type != "diff" {
		t.Errorf("content %+v", u.Content)
	}
}
