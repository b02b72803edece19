package models

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/agent/provider"
)

// modelsDevServer serves a catalogue that has one model more than the program's own table.
type modelsDevServer struct {
	*httptest.Server
	mu       sync.Mutex
	requests []http.Header
	answer   http.HandlerFunc // nil: the catalogue, with the ETag "v1"
}

func newModelsDevServer(t *testing.T) *modelsDevServer {
	t.Helper()
	all := map[string]map[string]map[string]any{}
	for service, list := range provider.ShippedHosted().Services() {
		models := map[string]any{}
		for _, m := range list {
			models[m.ID] = map[string]any{"name": m.Name, "tool_call": true, "limit": map[string]any{"context": m.Context, "output": m.Output}}
		}
		all[service] = map[string]map[string]any{"models": models}
	}
	all["groq"]["models"]["brand-new"] = map[string]any{"name": "Brand new", "tool_call": true, "limit": map[string]any{"context": 4242}}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	s := &modelsDevServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, r.Header.Clone())
		answer := s.answer
		s.mu.Unlock()
		switch {
		case answer != nil:
			answer(w, r)
		case r.Header.Get("If-None-Match") == `"v1"`:
			w.WriteHeader(http.StatusNotModified)
		default:
			w.Header().Set("ETag", `"v1"`)
			_, _ = w.Write(text)
		}
	}))
	t.Cleanup(s.Close)
	t.Cleanup(func() { provider.FindHosted(func() *provider.Hosted { return nil }) })
	return s
}

func (s *modelsDevServer) set(answer http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

func (s *modelsDevServer) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)
}

// known is the window of the model that only the server has.
func known() int { return provider.Lookup("groq", "brand-new").Context }

func TestACatalogueIsFetchedKeptAndAskedForAgainWithItsETag(t *testing.T) {
	s := newModelsDevServer(t)
	t.Setenv("GROQ_API_KEY", "gsk-secret-0123456789")
	c := &Catalogue{File: filepath.Join(t.TempDir(), "cache", "models.tsv"), URL: s.URL}
	c.Install()
	if known() == 4242 {
		t.Fatal("the model is known before")
	}
	r, err := c.Refresh(t.Context())
	if err != nil || !r.Changed || r.Models != provider.ShippedHosted().Len()+1 || known() != 4242 {
		t.Fatalf("%+v %v %d", r, err, known())
	}
	for name, values := range s.requests[0] {
		if name != "User-Agent" && name != "Accept-Encoding" {
			t.Errorf("it sent %s: %v", name, values)
		}
	}
	// Another process finds it, and asks with its ETag.
	again := &Catalogue{File: c.File, URL: s.URL}
	again.Install()
	if known() != 4242 {
		t.Error("what was fetched does not count after a start")
	}
	if r, err := again.Refresh(t.Context()); err != nil || r.Changed || known() != 4242 {
		t.Errorf("%+v %v", r, err)
	}
	if got := s.requests[1].Get("If-None-Match"); got != `"v1"` {
		t.Errorf("it asked with %q", got)
	}
	if info, err := os.Stat(c.File); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
}

func TestAnAnswerThatIsNoCatalogueChangesNothing(t *testing.T) {
	s := newModelsDevServer(t)
	c := &Catalogue{File: filepath.Join(t.TempDir(), "models.tsv"), URL: s.URL}
	if _, err := c.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(c.File)
	if err != nil {
		t.Fatal(err)
	}
	away := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	defer away.Close()
	for name, answer := range map[string]http.HandlerFunc{
		"an error": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"a page":   func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>sign in</html>")) },
		"cut off": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "900")
			_, _ = w.Write([]byte("{"))
		},
		"a redirect": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, away.URL, http.StatusFound) },
		"a bomb":     func(w http.ResponseWriter, _ *http.Request) { endless(w) },
		"a bad price": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"xai":{"models":{"m":{"name":"M","tool_call":true,"limit":{"context":1},"cost":{"input":-1}}}}}`))
		},
		"not modified?": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
	} {
		s.set(answer)
		if _, err := c.Refresh(t.Context()); err == nil {
			t.Errorf("%s: no error", name)
		}
		if now, err := os.ReadFile(c.File); err != nil || string(now) != string(before) || known() != 4242 {
			t.Errorf("%s changed something: %v", name, err)
		}
	}
}

// endless writes more than is read.
func endless(w http.ResponseWriter) {
	block := []byte(strings.Repeat(" ", 1<<20))
	for range provider.MaxModelsDev>>20 + 2 {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}

func TestADamagedFileDoesNotCount(t *testing.T) {
	s := newModelsDevServer(t)
	c := &Catalogue{File: filepath.Join(t.TempDir(), "models.tsv"), URL: s.URL}
	if _, err := c.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(c.File)
	if err != nil {
		t.Fatal(err)
	}
	for name, damaged := range map[string]string{
		"cut": string(text[:len(text)/2]), "empty": "", "another price": strings.Replace(string(text), "Brand new\t4242", "Brand new\t9999", 1),
		"from the future": strings.Replace(string(text), `"fetched":"2`, `"fetched":"9`, 1),
	} {
		if err := os.WriteFile(c.File, []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		c.Install()
		if n := known(); n == 4242 || n == 9999 {
			t.Errorf("%s: %d", name, n)
		}
		// It is fetched anew, whatever its ETag was.
		if r, err := c.Refresh(t.Context()); err != nil || known() != 4242 {
			t.Errorf("%s: %+v %v", name, r, err)
		}
	}
}

func TestACatalogueIsAskedForOnceADayAndOnlyWhereItIsWanted(t *testing.T) {
	s := newModelsDevServer(t)
	c := &Catalogue{File: filepath.Join(t.TempDir(), "models.tsv"), URL: s.URL}
	ctx, cancel := context.WithCancel(t.Context())
	c.Keep(ctx, func() bool { cancel(); return false }, func(err error) { t.Error(err) })
	if s.asked() != 0 {
		t.Fatal("it asked without being told to")
	}
	if err := c.keep(t.Context()); err != nil || s.asked() != 1 || known() != 4242 {
		t.Fatalf("%v, asked %d times", err, s.asked())
	}
	for range 3 {
		if err := c.keep(t.Context()); err != nil || s.asked() != 1 {
			t.Fatalf("%v, asked %d times", err, s.asked())
		}
	}
	yesterday := time.Now().Add(-25 * time.Hour)
	if err := os.Chtimes(c.asked(), yesterday, yesterday); err != nil {
		t.Fatal(err)
	}
	s.set(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) })
	if err := c.keep(t.Context()); err == nil || s.asked() != 2 {
		t.Fatalf("%v, asked %d times", err, s.asked())
	}
	// An hour later, and not before.
	if info, err := os.Stat(c.asked()); err != nil || c.due() || time.Since(info.ModTime()) < refreshPause-retryPause-time.Minute {
		t.Errorf("%v %v", info.ModTime(), err)
	}
}

// Several processes refresh at once: each reads a whole table.
func TestSeveralRefreshesAtOnce(t *testing.T) {
	s := newModelsDevServer(t)
	file := filepath.Join(t.TempDir(), "models.tsv")
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			c := &Catalogue{File: file, URL: s.URL}
			for range 3 {
				if _, err := c.Refresh(t.Context()); err != nil {
					t.Error(err)
				}
				if h := c.load(); h == nil || h.Len() != provider.ShippedHosted().Len()+1 {
					t.Error("a table that is not whole")
				}
			}
		})
	}
	wait.Wait()
}
