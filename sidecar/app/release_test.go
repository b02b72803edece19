package app

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// releases is a page of releases that redirects to a tag, and the requests that it got.
func releases(t *testing.T, location string) (page string, asked *[]string) {
	t.Helper()
	asked = &[]string{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.Method+" "+r.URL.Path+" "+r.Header.Get("Cookie")+r.Header.Get("Authorization")+r.URL.RawQuery)
		w.Header().Set("Location", location)
		w.WriteHeader(http.StatusFound)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/releases/latest", asked
}

func TestNewestReleaseReadsWhereThePageLeads(t *testing.T) {
	for location, want := range map[string]string{
		"/pillion-dev/pillion/releases/tag/v0.2.0":      "0.2.0",
		"/pillion-dev/pillion/releases/tag/v1.0.0-rc.1": "1.0.0-rc.1",
		"/pillion-dev/pillion/releases":                 "", // there is none yet
		"/login?return_to=/releases/tag/v9":             "",
		"/pillion-dev/pillion/releases/tag/nightly":     "",
	} {
		page, asked := releases(t, location)
		got, err := NewestRelease(t.Context(), page)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", location, got, err)
		}
		if strings.Join(*asked, ", ") != "HEAD /releases/latest " {
			t.Errorf("%s: it asked %q", location, *asked)
		}
	}
}

func TestNewerRelease(t *testing.T) {
	for _, c := range []struct {
		newest, version string
		newer           bool
	}{
		{"0.2.0", "0.1.0", true}, {"v0.10.0", "0.9.1", true}, {"0.2.0", "v0.2.0", false}, {"0.1.9", "0.2.0", false},
		{"1.0.0", "1.0.0-rc.1", true}, {"1.0.0-rc.1", "1.0.0", false},
		{"9.0.0", "77cc1c8a", false}, {"", "0.1.0", false}, {"evil\x1b[2J", "0.1.0", false},
		{"0.2.0", "0.1.0-3-g77cc1c8", true},
	} {
		if got := NewerRelease(c.newest, c.version); got != c.newer {
			t.Errorf("%q is newer than %q: %v", c.newest, c.version, got)
		}
	}
}

// The page is asked only where the person's own settings say so, and once a day at most.
func TestReleasesAreAskedForOnlyWhereThePersonWantsIt(t *testing.T) {
	page, asked := releases(t, "/releases/tag/v0.2.0")
	home := t.TempDir()
	place := func(version, settings string) *Workplace {
		t.Setenv("HOME", home)
		t.Setenv("XDG_STATE_HOME", filepath.Join(home, "state"))
		t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, "config"))
		dir := filepath.Join(home, "config", "pillion")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "pillion.jsonc"), []byte(settings), 0o600); err != nil {
			t.Fatal(err)
		}
		return NewWorkplace(version)
	}
	project := t.TempDir()
	if err := os.WriteFile(filepath.Join(project, "pillion.jsonc"), []byte(`{"update_check": true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(project)
	for _, c := range []struct{ version, settings string }{{"0.1.0", "{}"}, {"0.1.0", `{"update_check": false}`}, {"77cc1c8a", `{"update_check": true}`}} {
		if text := place(c.version, c.settings).ReleaseNotice(t.Context(), page); text != "" || len(*asked) != 0 {
			t.Errorf("%+v: %q after %q", c, text, *asked)
		}
	}
	p := place("0.1.0", `{"update_check": true}`)
	if text := p.ReleaseNotice(t.Context(), page); !strings.Contains(text, "0.2.0") || !strings.Contains(text, "pillion upgrade") {
		t.Errorf("said %q", text)
	}
	if text := place("0.1.0", `{"update_check": true}`).ReleaseNotice(t.Context(), page); text != "" || len(*asked) != 1 {
		t.Errorf("on the same day: %q after %q", text, *asked)
	}
	yesterday := time.Now().Add(-25 * time.Hour)
	if err := os.Chtimes(filepath.Join(p.State, "release-asked"), yesterday, yesterday); err != nil {
		t.Fatal(err)
	}
	if text := p.ReleaseNotice(t.Context(), page); text == "" || len(*asked) != 2 {
		t.Errorf("a day later: %q after %q", text, *asked)
	}
	if text := place("0.2.0", `{"update_check": true}`).ReleaseNotice(t.Context(), page); text != "" {
		t.Errorf("the newest itself: %q", text)
	}
}
