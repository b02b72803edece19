package lspbridge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pillion-dev/pillion/lspbridge/fakelsp"
	"github.com/pillion-dev/pillion/tools/change"
	"go.lsp.dev/jsonrpc2"
)

// What was asked before the server said that things look different now is asked again before it is called fresh.
func TestARefreshDuringAQuestionAsksAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var asked atomic.Int32
		f := newFaked(t, Quirks{}, fakelsp.Options{Pull: true, On: func(_ context.Context, s *fakelsp.Server, m string, _ json.RawMessage) (any, bool, error) {
			if m != "textDocument/diagnostic" || asked.Add(1) > 1 {
				return nil, false, nil
			}
			_ = s.Peer().Call(context.Background(), "workspace/diagnostic/refresh", nil, nil)
			return map[string]any{"kind": "full", "items": []any{}}, true, nil
		}}, map[string]string{"a.fake": "BAD one\n"})
		defer f.Close(context.Background())
		if r := f.Diagnostics(f.ctx(time.Minute), f.path); r.Certainty != change.Fresh || messages(r.Items) != "a.fake: one" {
			t.Errorf("%s %q: %q", r.Certainty, r.Reason, messages(r.Items))
		}
	})
}

// A server may have several sources of diagnostics, registered late; each is asked under its name.
func TestEverySourceOfDiagnosticsIsAsked(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFaked(t, Quirks{}, fakelsp.Options{On: func(_ context.Context, s *fakelsp.Server, m string, params json.RawMessage) (any, bool, error) {
			switch m {
			case "initialized":
				_ = s.Peer().Call(context.Background(), "client/registerCapability", json.RawMessage(`{"registrations":[
					{"id":"1","method":"textDocument/diagnostic","registerOptions":{"identifier":"syntax"}},
					{"id":"2","method":"textDocument/diagnostic","registerOptions":{"identifier":"types","interFileDependencies":true}}]}`), nil)
			case "textDocument/diagnostic":
				var p struct{ Identifier string }
				_ = json.Unmarshal(params, &p)
				return map[string]any{"kind": "full", "items": fakelsp.Problems("BAD by " + p.Identifier)}, true, nil
			}
			return nil, false, nil
		}}, map[string]string{"a.fake": "fine\n"})
		defer f.Close(context.Background())
		if r := f.Diagnostics(f.ctx(time.Minute), f.path); r.Certainty != change.Fresh || messages(r.Items) != "a.fake: by syntax\na.fake: by types" {
			t.Errorf("%s %q: %q", r.Certainty, r.Reason, messages(r.Items))
		}
	})
}

// A server that cancels a question is asked again, unless it says that it does not want to be.
func TestACancelledQuestionIsAskedAgain(t *testing.T) {
	for _, c := range []struct {
		data  string
		asked int32
		state change.Certainty
	}{{`{"retriggerRequest":true}`, 2, change.Fresh}, {"null", 2, change.Fresh}, {`{"retriggerRequest":false}`, 1, change.Pending}} {
		bubble(t, func(t *testing.T) {
			var asked atomic.Int32
			f := newFaked(t, Quirks{}, fakelsp.Options{Pull: true, On: func(_ context.Context, _ *fakelsp.Server, m string, _ json.RawMessage) (any, bool, error) {
				if m != "textDocument/diagnostic" || asked.Add(1) > 1 {
					return nil, false, nil
				}
				return nil, true, &jsonrpc2.Error{Code: codeServerCancelled, Message: "busy", Data: jsonrpc2.RawMessage(c.data)}
			}}, map[string]string{"a.fake": "BAD one\n"})
			defer f.Close(context.Background())
			if r := f.Diagnostics(f.ctx(time.Minute), f.path); r.Certainty != c.state || asked.Load() != c.asked {
				t.Errorf("%s: %s %q after %d questions", c.data, r.Certainty, r.Reason, asked.Load())
			}
		})
	}
}

// A server that asks for saves only once it runs hears of them, with the text when it wants that.
func TestSavesAreAskedForLate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		saved := make(chan string, 1)
		f := newFaked(t, Quirks{}, fakelsp.Options{Pull: true, Capabilities: map[string]any{"textDocumentSync": map[string]any{"openClose": true, "change": 2}},
			On: func(_ context.Context, s *fakelsp.Server, m string, params json.RawMessage) (any, bool, error) {
				switch m {
				case "initialized":
					_ = s.Peer().Call(context.Background(), "client/registerCapability", json.RawMessage(`{"registrations":[
						{"id":"1","method":"textDocument/didSave","registerOptions":{"includeText":true,"documentSelector":null}}]}`), nil)
				case "textDocument/didSave":
					var p struct{ Text string }
					_ = json.Unmarshal(params, &p)
					saved <- p.Text
				}
				return nil, false, nil
			}}, map[string]string{"a.fake": "fine\n"})
		defer f.Close(context.Background())
		ctx := f.ctx(time.Minute)
		f.Diagnostics(ctx, f.path)
		f.edit("finer\n")
		f.Changed(ctx, []Proposal{{Path: f.path, Old: "fine\n", Text: "finer\n"}})
		synctest.Wait()
		if !slices.Contains(f.server().Seen(), "textDocument/didSave") {
			t.Fatal("nobody told it of the save")
		}
		if text := <-saved; text != "finer\n" {
			t.Errorf("it was told %q", text)
		}
	})
}

// What a server computed while the person typed on is not laid over what was typed.
func TestAnEditOfAnOlderTextIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var f *faked
		f = newFaked(t, Quirks{}, fakelsp.Options{Pull: true, Capabilities: map[string]any{"renameProvider": true},
			On: func(_ context.Context, _ *fakelsp.Server, m string, _ json.RawMessage) (any, bool, error) {
				if m != "textDocument/rename" {
					return nil, false, nil
				}
				f.edit("typed meanwhile\nold\n")
				return json.RawMessage(`{"changes":{"file:///p/a.fake":[` + lspEdit(0, 0, 3, "new") + `]}}`), true, nil
			}}, map[string]string{"a.fake": "old\n"})
		defer f.Close(context.Background())
		if edits, err := f.Rename(f.ctx(time.Minute), f.path, Position{}, "new"); err == nil {
			t.Errorf("%+v", edits)
		}
	})
}

// What a server says of a file may depend on what it has checked before. An error in another file is introduced only if it is absent when the
// proposal is taken back; where that is not known, the verdict is not fresh.
func TestErrorsElsewhereAreAskedAboutAgain(t *testing.T) {
	for _, c := range []struct {
		name       string
		elsewhere  func(asked int, a string) string // of the other file, at each question
		introduced string
		fixed      int
		state      change.Certainty
	}{
		{"the server has found it meanwhile", func(asked int, _ string) string { return when(asked > 1, "BAD cycle") }, "", 0, change.Fresh},
		{"it moves to and fro", func(asked int, _ string) string { return when(asked%2 == 0, "BAD cycle") }, "b.fake: cycle", 0, change.Fresh},
		{"another one takes its place", func(asked int, _ string) string { return cmp.Or(when(asked > 1, "BAD second"), "BAD first") }, "", 0, change.Fresh},
		{"the proposal breaks it", func(_ int, a string) string { return when(strings.Contains(a, "now"), "BAD broken") }, "b.fake: broken", 0, change.Fresh},
		{"both", func(asked int, a string) string {
			return when(strings.Contains(a, "now"), "BAD broken\n") + when(asked > 1, "BAD cycle")
		}, "b.fake: broken", 0, change.Fresh},
		{"the proposal exchanges it", func(_ int, a string) string { return cmp.Or(when(strings.Contains(a, "now"), "BAD new"), "BAD old") }, "b.fake: new", 1, change.Fresh},
		{"no answer", func(asked int, _ string) string { return cmp.Or(when(asked == 3, "-"), when(asked > 1, "BAD cycle")) }, "b.fake: cycle", 0, change.Partial},
	} {
		bubble(t, func(t *testing.T) {
			asked := 0 // about b.fake; those questions come one at a time
			f := newFaked(t, Quirks{}, fakelsp.Options{Pull: true, On: func(_ context.Context, s *fakelsp.Server, m string, params json.RawMessage) (any, bool, error) {
				if m != "textDocument/diagnostic" || !strings.Contains(string(params), "b.fake") {
					return nil, false, nil
				}
				asked++
				a, _, _ := s.Text(string(pathURI(filepath.FromSlash("/p/a.fake"))))
				said := c.elsewhere(asked, a)
				if said == "-" {
					return nil, true, errors.New("not now")
				}
				return map[string]any{"kind": "full", "items": fakelsp.Problems(said)}, true, nil
			}}, map[string]string{"a.fake": "before\n", "b.fake": "fine\n"})
			defer f.Close(context.Background())
			f.Diagnostics(f.ctx(time.Minute), f.path)
			f.Diagnostics(f.ctx(time.Minute), filepath.FromSlash("/p/b.fake"))
			d := f.Check(f.ctx(time.Minute), []Proposal{{Path: f.path, Text: "now\n"}})
			if got := messages(d.Introduced); d.Certainty != c.state || got != c.introduced || len(d.Fixed) != c.fixed {
				t.Errorf("%s: %s %q after %d questions: introduced %q, fixed %q", c.name, d.Certainty, d.Reason, asked, got, messages(d.Fixed))
			}
		})
	}
}

// when is a text on a condition, else "".
func when(is bool, text string) string {
	if is {
		return text
	}
	return ""
}
