package app

import (
	"io"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/sidecar/config"
	"github.com/pillion-dev/pillion/sidecar/keys"
)

// Secrets are the person's keys as far as this process came to know them: those of the environment, the configuration
// and pillion auth. They are hidden in the log, in what tools and prompts bring into a session, and in system prompts.
type Secrets struct {
	mu    sync.RWMutex
	known []string                // guarded by mu; the longest first, so that a key within a key leaves no rest
	seen  map[*config.Config]bool // guarded by mu; configurations whose keys are known
	kept  map[string]keys.Key     // guarded by mu; the kept keys, as of the last look
	once  sync.Once               // the environment
}

// Hide masks every known key.
func (s *Secrets) Hide(text string) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, k := range s.known {
		if strings.Contains(text, k) {
			text = strings.ReplaceAll(text, k, agent.HiddenKey)
		}
	}
	return text
}

// Known reports whether a text is one of the keys, whole.
func (s *Secrets) Known(text string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Contains(s.known, text)
}

// Learn takes in the keys of a directory's configuration and the kept ones. It is quick when nothing is new.
func (s *Secrets) Learn(c *config.Config, kept map[string]keys.Key) {
	s.environment()
	s.mu.RLock()
	same := s.seen[c] && maps.Equal(s.kept, kept)
	s.mu.RUnlock()
	if same {
		return
	}
	found := configuredSecrets(c)
	for _, k := range kept {
		found = append(found, k.Value)
	}
	s.Add(found...)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil || len(s.seen) > 64 { // changed files make new ones; the keys themselves stay known
		s.seen = map[*config.Config]bool{}
	}
	s.seen[c], s.kept = true, kept
}

// environment takes in the variables that are named like keys.
func (s *Secrets) environment() {
	s.once.Do(func() {
		for _, e := range os.Environ() {
			if name, value, _ := strings.Cut(e, "="); secretName(name) && !strings.HasPrefix(value, "/") {
				s.Add(value)
			}
		}
	})
}

func (s *Secrets) Add(values ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range values {
		for _, scheme := range [...]string{"Bearer ", "Basic ", "Token "} {
			v = strings.TrimPrefix(v, scheme)
		}
		if v = strings.TrimSpace(v); telling(v) && !slices.Contains(s.known, v) {
			s.known = append(s.known, v)
		}
	}
	slices.SortFunc(s.known, func(a, b string) int { return len(b) - len(a) })
}

// telling reports a value that can only be a key. "lm-studio" and "none" are what local servers are given for one, and
// hiding such words everywhere would hide texts.
func telling(v string) bool {
	return len(v) >= 16 || len(v) >= 8 && strings.ContainsAny(v, "0123456789") && strings.ContainsFunc(v, func(r rune) bool { return r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' })
}

// secretName reports a variable or header that holds a secret by its name.
func secretName(name string) bool {
	name = strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	for _, word := range [...]string{"API_KEY", "APIKEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "AUTHORIZATION", "COOKIE", "CREDENTIAL"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return strings.HasSuffix(name, "_KEY") || name == "KEY"
}

// configuredSecrets are the keys in a configuration.
func configuredSecrets(c *config.Config) (found []string) {
	named := func(m map[string]string) {
		for name, v := range m {
			if secretName(name) {
				found = append(found, v)
			}
		}
	}
	address := func(raw string) {
		u, err := url.Parse(raw)
		if err != nil {
			return
		}
		if p, ok := u.User.Password(); ok {
			_, written, _ := strings.Cut(u.User.String(), ":")
			found = append(found, p, written) // as it is, and as the address spells it
		}
		for name, values := range u.Query() {
			if secretName(name) {
				found = append(found, values...)
			}
		}
	}
	for _, p := range c.Provider {
		found = append(found, p.Key, p.APIKey)
		named(p.Headers)
		address(p.BaseURL)
		if o := p.Options; o != nil {
			found = append(found, o.APIKey)
			named(o.Headers)
			address(o.BaseURL)
		}
	}
	for _, m := range c.MCP {
		named(m.Headers)
		named(m.Environment)
		address(m.URL)
		found = append(found, m.OAuth.Value.ClientSecret)
	}
	for _, l := range c.LSP.By {
		named(l.Env)
	}
	found = append(found, c.WebSearch.Key)
	named(c.Tracing.Headers)
	address(c.Tracing.Endpoint)
	address(c.Store)
	for _, field := range strings.Fields(c.Store) { // PostgreSQL's other way to write an address
		if p, ok := strings.CutPrefix(field, "password="); ok {
			found = append(found, strings.Trim(p, "'"))
		}
	}
	address(c.WebSearch.URL)
	return found
}

// hide masks the keys in a text of a directory's session.
func (p *Workplace) hide(cwd, text string) string {
	p.secrets.Learn(p.lately(cwd), p.Keys().All()) // a key was loaded before it could be used
	return p.secrets.Hide(text)
}

// hiding is a log without keys. Every call of Write is a whole record.
type hiding struct {
	w io.Writer
	s *Secrets
}

func (h hiding) Write(b []byte) (int, error) {
	h.s.environment()
	_, err := io.WriteString(h.w, h.s.Hide(string(b)))
	return len(b), err
}

// hider is agent.Secrets.
type hider struct{ place *Workplace }

func (h hider) Hide(cwd, text string) string { return h.place.hide(cwd, text) }
