package editors

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools/builtin"
	"github.com/pillion-dev/pillion/tools/change"
)

var _ builtin.Bridge = Bridge{}

// theirWord is a didChange of the editor's problems.
func theirWord(path string, version *int32, messages ...string) protocol.EditorDiagnostics {
	p := protocol.EditorDiagnostics{URI: PathURI(path), Version: version}
	for i, m := range messages {
		at := protocol.Position{Line: int64(i)}
		p.Diagnostics = append(p.Diagnostics, protocol.FileDiagnostic{Range: protocol.Range{Start: at, End: at}, Severity: 1, Source: "lint", Message: m})
	}
	return p
}

func TestR17TheEditorsProblemsCountWhereNoServerLooks(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.zzz")
	synctest.Test(t, func(t *testing.T) {
		buffers, theirs := NewBuffers(nil), NewProblems()
		m := lspbridge.New(lspbridge.Options{Root: dir})
		defer m.Close(context.Background())
		b := NewBridge(m, dir, buffers, theirs, nil)
		one, two := int32(1), int32(2)
		open := func(text string, v int32) {
			buffers.DidOpen(protocol.DidOpenParams{TextDocument: protocol.TextDocumentItem{URI: PathURI(path), Version: v, Text: text}})
		}
		open("x", 1)
		edit := []lspbridge.Proposal{{Path: path, Text: "y"}}
		if d := b.Changed(t.Context(), edit); d.Certainty != change.Unavailable {
			t.Errorf("nobody has said anything: %+v", d)
		}
		theirs.DidChange(theirWord(path, &one, "bad", "worse"))
		if r := b.Diagnostics(t.Context(), path); r.Certainty != change.Fresh || len(r.Items) != 2 || r.Items[0].Source != "lint (editor)" {
			t.Errorf("%+v", r)
		}
		open("y", 2) // as after an edit of Pillion
		if r := b.Diagnostics(t.Context(), path); r.Certainty != change.Pending {
			t.Errorf("problems of an older text are called %s", r.Certainty)
		}
		// An editor that says nothing of the new text: not yet, never "no problems".
		if d := b.Changed(t.Context(), edit); d.Certainty != change.Pending || d.Reason == "" {
			t.Errorf("%+v", d)
		}
		go func() {
			time.Sleep(time.Second)
			theirs.DidChange(theirWord(path, &two, "worse", "new"))
		}()
		d := b.Changed(t.Context(), edit)
		if d.Certainty != change.Fresh || len(d.Introduced) != 1 || d.Introduced[0].Message != "new" || len(d.Fixed) != 1 || d.Fixed[0].Message != "bad" || d.Unchanged != 1 {
			t.Errorf("%+v", d)
		}
		if all := b.ProjectDiagnostics(t.Context()); len(all) != 1 || all[0].Path != path {
			t.Errorf("%+v", all)
		}
		// Without a version only what was said after the edit counts.
		theirs.DidChange(theirWord(path, nil, "old"))
		if d := b.Changed(t.Context(), edit); d.Certainty != change.Pending {
			t.Errorf("%+v", d)
		}
	})
}

// checkedTexts is a TextChecker that finds a problem on each line with a word in it.
type checkedTexts struct {
	word  string
	asked []string
}

func (c *checkedTexts) CheckText(_ context.Context, path, before, after string) (old, new []change.Problem, ok bool) {
	c.asked = append(c.asked, path)
	find := func(text string) (out []change.Problem) {
		for n, line := range strings.Split(text, "\n") {
			if strings.Contains(line, c.word) {
				out = append(out, change.Problem{Path: path, Line: n + 1, Column: 1, Severity: change.SeverityError, Server: editorName, Message: line})
			}
		}
		return out
	}
	return find(before), find(after), c.word != ""
}

// A problem that only the editor knows is in the verdict of a proposal, so a person reads of it before they approve it.
func TestTheEditorChecksProposalsThatNoServerCovers(t *testing.T) {
	dir := t.TempDir()
	path, hidden := filepath.Join(dir, "a.zzz"), filepath.Join(dir, "b.zzz")
	buffers := NewBuffers(nil)
	buffers.DidOpen(protocol.DidOpenParams{TextDocument: protocol.TextDocumentItem{URI: PathURI(path), Version: 1, Text: "bad one\nbad two\n"}})
	m := lspbridge.New(lspbridge.Options{Root: dir})
	defer m.Close(context.Background())
	check := func(c *checkedTexts, files ...lspbridge.Proposal) lspbridge.Delta {
		return NewBridge(m, dir, buffers, NewProblems(), c).Check(t.Context(), files)
	}
	c := &checkedTexts{word: "bad"}
	d := check(c, lspbridge.Proposal{Path: path, Text: "bad two\nbad three\n"}, lspbridge.Proposal{Path: hidden, Text: "bad"}, lspbridge.Proposal{Path: path, Delete: true})
	if d.Certainty != change.Partial || d.Reason == "" || len(d.Introduced) != 1 || d.Introduced[0].Message != "bad three" || len(d.Fixed) != 1 || d.Fixed[0].Message != "bad one" || d.Unchanged != 1 {
		t.Errorf("%+v", d)
	}
	if !slices.Equal(c.asked, []string{path}) {
		t.Errorf("asked about %v: only what an editor shows can be checked by it, and a file that is deleted has no text", c.asked)
	}
	// An editor without checks for the file leaves the verdict as it is: unavailable, never "no problems".
	if d := check(&checkedTexts{}, lspbridge.Proposal{Path: path, Text: "bad"}); d.Certainty != change.Unavailable || len(d.Introduced) != 0 {
		t.Errorf("%+v", d)
	}
}
