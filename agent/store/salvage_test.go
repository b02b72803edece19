package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fill makes a file with sessions of some hundred events each; a few have long data, on overflow pages.
func fill(t *testing.T, path string, sessions, events int) map[string]string {
	t.Helper()
	want := map[string]string{}
	s := New(path)
	for n := range sessions {
		id := fmt.Sprintf("s%d", n)
		s.PutSession(Session{ID: id, Cwd: "/p", Title: "Title " + id})
		for i := 1; i <= events; i++ {
			text := fmt.Sprintf("%s %d %s", id, i, strings.Repeat("x", 50+i%7*40))
			if i%50 == 0 {
				text += strings.Repeat("long", 5000)
			}
			e := event(int64(i), text)
			want[fmt.Sprint(id, " ", i)] = string(e.Data)
			s.Append(id, e)
		}
	}
	if _, err := s.AddGrant(t.Context(), Grant{Project: "/p", Permission: "edit", Pattern: "*"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return want
}

// damage overwrites n pages with random bytes, or zeros.
func damage(t *testing.T, r *rand.Rand, path string, n int, first bool) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, _ := f.Stat()
	for range n {
		at := r.Int64N(info.Size() / pageSize4k)
		if at == 0 && !first {
			at = 1
		}
		page := make([]byte, pageSize4k)
		if r.IntN(4) > 0 {
			for i := range page {
				page[i] = byte(r.Uint32())
			}
		}
		if _, err := f.WriteAt(page, at*pageSize4k); err != nil {
			t.Fatal(err)
		}
	}
}

// Whatever pages are damaged, the next start works, has every event of every page that is whole, invents none, keeps the damaged file
// and says so.
func TestDamagedPages(t *testing.T) {
	rounds := 12
	if testing.Short() {
		rounds = 3
	}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(uint64(seed), 26))
		path := filepath.Join(t.TempDir(), "p.db")
		want := fill(t, path, 6, 300)
		pages := 1 + r.IntN(4)
		damage(t, r, path, pages, seed%3 == 0)
		s := New(path)
		said := watch(s)
		got := func() (n, titles int) {
			list, err := s.Sessions(t.Context(), "")
			if err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
			for _, h := range list {
				if strings.HasPrefix(h.Title, "Title ") {
					titles++
				}
				_ = s.Events(t.Context(), h.ID, 0, func(e Event) error {
					if h.ID == "new" || !json.Valid(e.Data) { // SQLite has no checksums: damage inside a long text is seen by its reader
						return nil
					}
					if w := want[fmt.Sprint(h.ID, " ", e.Seq)]; w != string(e.Data) && !strings.HasPrefix(h.ID, "recovered_") {
						t.Errorf("seed %d: %s %d is %.60q", seed, h.ID, e.Seq, e.Data)
					}
					n++
					return nil
				})
			}
			return n, titles
		}
		got()
		s.Append("new", event(1, "x")) // the file can be written
		if err := s.Sync(t.Context()); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		n, _ := got()
		// A page holds at most 40 of these events; a lost overflow page costs one.
		if n < len(want)-40*pages {
			t.Errorf("seed %d: %d of %d events after %d pages", seed, n, len(want), pages)
		}
		aside, _ := filepath.Glob(path + ".damaged-*")
		select {
		case err := <-said:
			var p *Problem
			if !errors.As(err, &p) || p.Kind != ProblemSalvaged || len(aside) == 0 || !strings.Contains(p.Message, aside[0]) {
				t.Errorf("seed %d said %v, kept %v", seed, err, aside)
			}
		default:
			if n < len(want)-4*pages {
				t.Errorf("seed %d: %d of %d events, and nothing was said", seed, n, len(want))
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".salvage*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
}

// Of a file that is whole everything is carried over.
func TestSalvageOfAWholeFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.db")
	fill(t, path, 1, 50)
	if p, err := salvage(path, 0); err != nil || !strings.Contains(p.Message, "1 sessions with 50 events") || !strings.Contains(p.Message, "nothing is known to be missing") {
		t.Errorf("%v %v", p, err)
	}
}
