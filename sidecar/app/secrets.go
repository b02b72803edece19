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

// Secrets holds the person's keys that this process knows: those of the environment, of configurations and of pillion auth. They are hidden
// in the log, in results of tools, in prompts and in system prompts. A key that was known once stays hidden.
type Secrets struct {
	mu    sync.RWMutex
	known []string                // guarded by mu; the longest first, so that replacing a key inside a longer one leaves no rest
	seen  map[*config.Config]bool // guarded by mu; configurations whose keys are known
	kept  map[string]keys.Key     // guarded by mu; the keys of pillion auth when Learn last saw them
	once  sync.Once               // for environment
}

// Hide replaces every known key by agent.HiddenKey.
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

// Known reports whether the whole text is one of the keys. guard uses it for values in the environment of commands.
func (s *Secrets) Known(text string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Contains(s.known, text)
}

// Learn adds the keys of a configuration and the stored ones. It returns at once when it has seen both, because it is called for every
// text.
func (s *Secrets) Learn(c *config.Config, kept map[string]keys.Key) {
	s.environment()
	s.mu.RLock()
	// The stored keys are compared by value, because each load makes another map.
	same := s.seen[c] && maps.Equal(s.kept, kept)
	s.mu.RUnlock()
	if same {
		return
	}
	found := configuredSecrets(c)
	for _, k := range kept {
		found = append(found, k.Value)
	}
	// Before seen is set: another goroutine that finds it set relies on the keys being there.
	s.Add(found...)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil || len(s.seen) > 64 { // each change of a file makes a new configuration; the keys in known stay
		s.seen = map[*config.Config]bool{}
	}
	s.seen[c], s.kept = true, kept
}

// environment adds the values of variables with names of secrets, once, because the environment of this process does not change. Values
// that begin with "/" are paths of key files, and hiding a path would damage ordinary text.
func (s *Secrets) environment() {
	s.once.Do(func() {
		for _, e := range os.Environ() {
			if name, value, _ := strings.Cut(e, "="); secretName(name) && !strings.HasPrefix(value, "/") {
				s.Add(value)
			}
		}
	})
}

// Add adds values, without an authorization scheme before the key. It ignores values that are too short or too plain to be a key.
func (s *Secrets) Add(values ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range values {
		for _, scheme := range [...]string{"Bearer ", "Basic ", "Token "} {
			v = strings.TrimPrefix(v, scheme)
		}
		if v = strings.TrimSpace(v); looksLikeKey(v) && !slices.Contains(s.known, v) {
			s.known = append(s.known, v)
		}
	}
	// Sort at each addition, which is rare; Hide, which runs for every text, relies on the order.
	slices.SortFunc(s.known, func(a, b string) int { return len(b) - len(a) })
}

// looksLikeKey reports whether a value is most likely a key: 16 bytes or more, or 8 with letters and digits. Local model servers are given
// words such as "lm-studio" as a key, and hiding those would damage ordinary text.
func looksLikeKey(v string) bool {
	return len(v) >= 16 || len(v) >= 8 && strings.ContainsAny(v, "0123456789") && strings.ContainsFunc(v, func(r rune) bool { return r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' })
}

// secretName reports whether the name of a variable, header or parameter says that its value is a secret. In doubt it says yes: the cost of
// a mistake is a hidden word, while a missed secret is a key in a log.
func secretName(name string) bool {
	name = strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	for _, word := range [...]string{"API_KEY", "APIKEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "AUTHORIZATION", "COOKIE", "CREDENTIAL"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return strings.HasSuffix(name, "_KEY") || name == "KEY"
}

// configuredSecrets returns the keys in a configuration, including those inside addresses. A further setting that can hold a secret must be
// added here.
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
			found = append(found, p, written) // decoded, and as written in the address
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
	// The environment of a server may hold a token.
	for _, l := range c.LSP.By {
		named(l.Env)
	}
	found = append(found, c.WebSearch.Key)
	named(c.Tracing.Headers)
	address(c.Tracing.Endpoint)
	address(c.Store)
	for _, field := range strings.Fields(c.Store) { // a PostgreSQL connection string with keyword=value pairs
		if p, ok := strings.CutPrefix(field, "password="); ok {
			found = append(found, strings.Trim(p, "'"))
		}
	}
	address(c.WebSearch.URL)
	return found
}

// hide replaces the keys in a text of a directory's session.
func (p *Workplace) hide(cwd, text string) string {
	p.secrets.Learn(p.recentConfig(cwd), p.Keys().Secrets()) // a key must be loaded before it can be used, so all used keys are known here
	return p.secrets.Hide(text)
}

// redactingWriter writes a log without keys. Each call of Write must be a whole record, as slog's handlers write them: a key that is split
// between two calls would not be found. It reports the length that it was given, because io.Writer's users take a shorter one for a
// failure.
type redactingWriter struct {
	w io.Writer
	s *Secrets
}

// Write implements io.Writer.
func (h redactingWriter) Write(b []byte) (int, error) {
	h.s.environment()
	_, err := io.WriteString(h.w, h.s.Hide(string(b)))
	return len(b), err
}

// keyHider implements agent.Secrets.
type keyHider struct{ place *Workplace }

// Hide implements agent.Secrets.
func (h keyHider) Hide(cwd, text string) string { return h.place.hide(cwd, text) }
