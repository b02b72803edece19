package lspbridge

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pillion-dev/pillion/lspbridge/fakelsp"
)

// A server hears of a written file that it does not serve, since that may configure it, and before it is asked about another file of the same change.
func TestOtherServersHearOfAWrite(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var mu sync.Mutex
		heard := map[*fakelsp.Server][]string{}
		f := newFaked(t, Quirks{}, fakelsp.Options{Pull: true, On: func(ctx context.Context, s *fakelsp.Server, m string, p json.RawMessage) (any, bool, error) {
			if m == "initialized" {
				return nil, true, s.Peer().Call(ctx, "client/registerCapability", json.RawMessage(`{"registrations":[{"id":"1","method":"workspace/didChangeWatchedFiles","registerOptions":{"watchers":[{"globPattern":"**/*"}]}}]}`), nil)
			}
			mu.Lock()
			defer mu.Unlock()
			switch m {
			case "workspace/didChangeWatchedFiles":
				var events struct {
					Changes []struct {
						URI  string
						Type int
					}
				}
				_ = json.Unmarshal(p, &events)
				for _, e := range events.Changes {
					heard[s] = append(heard[s], []string{"", "created ", "changed ", "deleted "}[e.Type]+e.URI[strings.LastIndex(e.URI, "/")+1:])
				}
			case "textDocument/didChange":
				heard[s] = append(heard[s], "asked")
			}
			return nil, false, nil
		}}, map[string]string{"a.fake": "fine\n", "b.other": "fine\n"})
		defer f.Close(context.Background())
		rows := []Server{{ID: "fake", Extensions: []string{".fake"}}, {ID: "other", Extensions: []string{".other"}, Quirks: Quirks{ReadOnce: []string{"once.conf"}}}}
		f.rows = func() []Server { return rows }
		f.Diagnostics(f.ctx(20*time.Second), f.path)
		f.Diagnostics(f.ctx(20*time.Second), filepath.FromSlash("/p/b.other"))
		synctest.Wait()
		at := func(name, text string) Proposal { return Proposal{Path: filepath.FromSlash("/p/" + name), Text: text} }
		gone := at("x.conf", "")
		gone.Delete = true
		f.Check(f.ctx(20*time.Second), []Proposal{at("new.conf", "1")}) // a file that is not there yet
		for _, c := range []struct {
			name        string
			files       []Proposal
			fake, other []string
		}{
			{"created", []Proposal{at("new.conf", "1")}, []string{"created new.conf"}, []string{"created new.conf"}},
			{"changed, another is gone", []Proposal{at("new.conf", "2"), gone}, []string{"changed new.conf", "deleted x.conf"}, []string{"changed new.conf", "deleted x.conf"}},
			{"beside a source", []Proposal{at("a.fake", "good\n"), at("new.conf", "3")}, []string{"changed new.conf", "changed a.fake", "asked"}, []string{"changed a.fake", "changed new.conf"}},
			{"read once, when it starts", []Proposal{at("once.conf", "1")}, []string{"changed once.conf"}, nil},
		} {
			mu.Lock()
			clear(heard)
			mu.Unlock()
			f.Changed(f.ctx(20*time.Second), c.files)
			synctest.Wait()
			mu.Lock()
			for i, want := range [][]string{c.fake, c.other} {
				if got := heard[f.servers[i]]; !slices.Equal(got, want) {
					t.Errorf("%s: %s heard %q, want %q", c.name, rows[i].ID, got, want)
				}
			}
			mu.Unlock()
		}
		// The server that reads it once starts again, at the next question.
		f.Diagnostics(f.ctx(20*time.Second), filepath.FromSlash("/p/b.other"))
		if len(f.servers) != 3 {
			t.Errorf("%d starts, want 3", len(f.servers))
		}
	})
}
