package app

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/sidecar/config"
)

func TestInstructionsFromPages(t *testing.T) {
	fetched, broken := 0, false
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fetched++
		switch {
		case broken:
			w.WriteHeader(500)
		case r.URL.Path == "/long.txt":
			fmt.Fprint(w, strings.Repeat("a line of many\n", 10_000))
		default:
			fmt.Fprint(w, "Use tabs.")
		}
	}))
	defer srv.Close()
	at := time.Now()
	p := instructionPages{now: func() time.Time { return at }}
	host := strings.TrimPrefix(srv.URL, "http://")
	allowed := &config.Config{Web: config.Web{Allow: []string{host}}}
	var failures []string
	get := func(c *config.Config, addresses ...string) string {
		return strings.Join(p.texts(c, addresses, func(address string, err error) { failures = append(failures, address+" "+err.Error()) }), "\n---\n")
	}

	if got, want := get(allowed, srv.URL+"/a.md"), "Instructions from: "+srv.URL+"/a.md\nUse tabs."; got != want {
		t.Errorf("%q", got)
	}
	if get(allowed, srv.URL+"/a.md"); fetched != 1 {
		t.Errorf("fetched %d times in an hour", fetched)
	}
	if got := get(allowed, srv.URL+"/long.txt"); len(got) > 70<<10 || !strings.HasSuffix(got, "for the rest.)") {
		t.Errorf("%d bytes", len(got))
	}
	at, broken = at.Add(2*pageMaxAge), true
	for range 3 {
		if got := get(allowed, srv.URL+"/a.md"); !strings.Contains(got, "Use tabs.") {
			t.Errorf("what was read is lost: %q", got)
		}
	}
	if len(failures) != 1 {
		t.Errorf("told %q", failures)
	}
	failures = nil
	// A page of this machine that nobody has allowed: a project's settings shall not make requests inside the network.
	if got := get(&config.Config{}, srv.URL+"/private"); got != "" || len(failures) != 1 || !strings.Contains(failures[0], "127.0.0.1") {
		t.Errorf("%q %q", got, failures)
	}
}
