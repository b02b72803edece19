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

// Secrets are the person's keys, as far as this process knows them: those of the environment, of configurations and
// of pillion auth. They are hidden in the log, in results of tools, in prompts and in system prompts. A key that was
// known once stays hidden.
type Secrets struct {
	mu    sync.RWMutex
	known []string                // guarded by mu; the longest first, so that a key within a key leaves no rest
	seen  map[*config.Config]bool // guarded by mu; configurations whose keys are known
	kept  map[string]keys.Key     // guarded by mu; the kept keys, as of the last look
	once  sync.Once               // the environment
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

// Learn adds the keys of a configuration and the stored ones. It returns at once when it has seen both: it is called
// for every text.
func (s *Secrets) Learn(c *config.Config, kept map[string]keys.Key) {
	s.environment()
	s.mu.RLock()
	// The kept keys are compared by value, as each look makes a map of its own.
	same := s.seen[c] && maps.Equal(s.kept, kept)
	s.mu.RUnlock()
	if same {
		return
	}
	found := configuredSecrets(c)
	for _, k := range kept {
		found = append(found, k.Value)
	}
	// Before seen is set: another goroutine that finds it set must find the keys too.
	s.Add(found...)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil || len(s.seen) > 64 { // each change of a file makes a new configuration; the keys in known stay
		s.seen = map[*config.Config]bool{}
	}
	s.seen[c], s.kept = true, kept
}

// environment adds the values of variables whose names are those of secrets, once, as the environment of this process
// does not change. Values that begin with "/" are paths to key files, and hiding a path would damage ordinary text.
func (s *Secrets) environment() {
	s.once.Do(func() {
		for _, e := range os.Environ() {
			if name, value, _ := strings.Cut(e, "="); secretName(name) && !strings.HasPrefix(value, "/") {
				s.Add(value)
			}
		}
	})
}

// Add adds values; what is too short or too plain to be a key is ignored. An authorization scheme before the key is
// removed.
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
	// Sorted at each addition, which is rare; Hide, which runs for every text, relies on the order.
	slices.SortFunc(s.known, func(a, b string) int { return len(b) - len(a) })
}

// looksLikeKey reports a value that is most likely a key: 16 bytes or more, or 8 with letters and digits. Local model
// servers are given words such as "lm-studio" as a key, and hiding those would damage ordinary text.
func looksLikeKey(v string) bool {
	return len(v) >= 16 || len(v) >= 8 && strings.ContainsAny(v, "0123456789") && strings.ContainsFunc(v, func(r rune) bool { return r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' })
}

// secretName reports a variable, header or parameter whose name says that its value is a secret. It rather names one
// too many: the cost of that is a hidden word, the cost of the other is a key in a log.
func secretName(name string) bool {
	name = strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	for _, word := range [...]string{"API_KEY", "APIKEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "AUTHORIZATION", "COOKIE", "CREDENTIAL"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return strings.HasSuffix(name, "_KEY") || name == "KEY"
}

// configuredSecrets are the keys in a configuration, those inside addresses included. A new setting that can hold a
// secret must be added here.
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
			found = append(found, p, written) // plain, and escaped as in the address
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
	p.secrets.Learn(p.recentConfig(cwd), p.Keys().All()) // a key is loaded before it can be used, so none is unknown here
	return p.secrets.Hide(text)
}

// redactingWriter is a log without keys. Each call of Write must be a whole record, as slog's handlers write them: a
// key that is split between two would not be found. It reports the length it was given, or io.Writer's users would take
// the shorter text for a failure.
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
