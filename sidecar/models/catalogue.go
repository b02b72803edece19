package models

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/tools/guard"
	"github.com/pillion-dev/pillion/tools/whole"
)

// ModelsDev is the address of the public catalogue of models.dev.
const ModelsDev = "https://models.dev/api.json"

const (
	refreshPause = 24 * time.Hour   // between two questions
	retryPause   = time.Hour        // after a question without an answer
	refreshLimit = 60 * time.Second // for one answer: a megabyte over a slow line
)

// Catalogue is the table of hosted models that was fetched last, in a file. Nothing is fetched before Refresh is called, and what is not
// usable leaves everything as it is. Several processes may share the file: it is replaced whole, and the last one wins.
type Catalogue struct {
	File string // in a private folder
	URL  string // empty: ModelsDev

	mu   sync.Mutex // guards seen; one refresh at a time
	seen string     // the file's state at the last call of changed
}

// head is the first line of the file, behind "# ".
type head struct {
	Fetched time.Time `json:"fetched"`
	ETag    string    `json:"etag,omitempty"`
	Sum     string    `json:"sha256"` // of the rest
}

// Install makes the file's table the one that package provider uses, from the next question on.
func (c *Catalogue) Install() { provider.FindHosted(c.load) }

// load is the file's table; nil where there is none, or a damaged one.
func (c *Catalogue) load() *provider.Hosted {
	h, rest, err := c.read()
	if err != nil {
		return nil
	}
	return provider.ParseHosted(rest, h.Fetched)
}

// read reads the file.
func (c *Catalogue) read() (head, string, error) {
	info, err := os.Stat(c.File)
	if err != nil {
		return head{}, "", err
	}
	if info.Size() > provider.MaxModelsDev {
		return head{}, "", errors.New("the file is too long")
	}
	text, err := os.ReadFile(c.File)
	if err != nil {
		return head{}, "", err
	}
	first, rest, _ := strings.Cut(string(text), "\n")
	var h head
	if err := json.Unmarshal([]byte(strings.TrimPrefix(first, "# ")), &h); err != nil || h.Sum != sum(rest) {
		return head{}, "", fmt.Errorf("%s is damaged", c.File)
	}
	// A date in the future would be newer than every later release.
	if time.Until(h.Fetched) > time.Hour {
		return head{}, "", fmt.Errorf("%s is from the future", c.File)
	}
	return h, rest, nil
}

// sum is the checksum of a table.
func sum(text string) string {
	s := sha256.Sum256([]byte(text))
	return hex.EncodeToString(s[:])
}

// asked is the file whose time is that of the next question, less refreshPause. It is written before the answer comes, so that several
// processes do not ask at once.
func (c *Catalogue) asked() string { return filepath.Join(filepath.Dir(c.File), "models-asked") }

// due reports whether a day has passed since the last answer, and an hour since the last question.
func (c *Catalogue) due() bool {
	info, err := os.Stat(c.asked())
	return err != nil || time.Since(info.ModTime()).Abs() >= refreshPause
}

// Keep fetches the catalogue once a day, while wanted says so, and uses what another process has fetched. It returns when ctx ends.
// Failures are reported to failed: the person has asked for none of these questions.
func (c *Catalogue) Keep(ctx context.Context, wanted func() bool, failed func(error)) {
	tick := time.NewTicker(retryPause)
	defer tick.Stop()
	for {
		if wanted() {
			if err := c.keep(ctx); err != nil && ctx.Err() == nil {
				failed(err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// keep is one round of Keep.
func (c *Catalogue) keep(ctx context.Context) error {
	if c.due() {
		_, err := c.Refresh(ctx)
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changed() {
		provider.UseHosted(c.load())
	}
	return nil
}

// changed reports whether the file is another one than at the last call. mu is held.
func (c *Catalogue) changed() bool {
	now := ""
	if info, err := os.Stat(c.File); err == nil {
		now = fmt.Sprintf("%d %d", info.Size(), info.ModTime().UnixNano())
	}
	was := c.seen
	c.seen = now
	return was != now
}

// Refreshed says what a refresh has found.
type Refreshed struct {
	Models  int // in the table that counts now
	Changed bool
}

// Refresh asks for the catalogue now and uses what comes. After an error everything is as it was.
func (c *Catalogue) Refresh(ctx context.Context) (Refreshed, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := whole.Write(c.asked(), nil, 0o600); err != nil {
		return Refreshed{}, err
	}
	r, err := c.fetch(ctx)
	if err != nil {
		// The next question may come in an hour.
		then := time.Now().Add(retryPause - refreshPause)
		_ = os.Chtimes(c.asked(), then, then)
		return r, err
	}
	return r, nil
}

// fetch does what Refresh says. mu is held.
func (c *Catalogue) fetch(ctx context.Context) (Refreshed, error) {
	ctx, cancel := context.WithTimeout(ctx, refreshLimit)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, cmp.Or(c.URL, ModelsDev), nil)
	if err != nil {
		return Refreshed{}, err
	}
	// The request says nothing about the person or their models: the whole catalogue is fetched.
	q.Header.Set("User-Agent", "pillion")
	old, table, oldErr := c.read()
	if oldErr == nil && old.ETag != "" {
		q.Header.Set("If-None-Match", old.ETag)
	}
	client := guard.Client(guard.Reason{Who: guard.Web, Setting: "refresh_models"}, guard.Network{})
	defer client.CloseIdleConnections()
	client.CheckRedirect = guard.NoRedirects
	resp, err := client.Do(q)
	if err != nil {
		return Refreshed{}, err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNotModified && oldErr == nil:
	case resp.StatusCode != http.StatusOK:
		return Refreshed{}, fmt.Errorf("%s answered %s", q.URL.Host, resp.Status)
	default:
		text, err := io.ReadAll(io.LimitReader(resp.Body, provider.MaxModelsDev+1))
		if err != nil {
			return Refreshed{}, err
		}
		if table, err = provider.ParseModelsDev(text); err != nil {
			return Refreshed{}, fmt.Errorf("the answer of %s is not used: %w", q.URL.Host, err)
		}
		old.ETag = etag(resp.Header.Get("ETag"))
	}
	next := head{Fetched: time.Now().UTC().Truncate(time.Second), ETag: old.ETag, Sum: sum(table)}
	first, err := json.Marshal(next)
	if err != nil {
		return Refreshed{}, err
	}
	if err := whole.Write(c.File, []byte("# "+string(first)+"\n"+table), 0o600); err != nil {
		return Refreshed{}, err
	}
	c.changed() // what was just written need not be read
	now := provider.ParseHosted(table, next.Fetched)
	provider.UseHosted(now)
	return Refreshed{Models: now.Len(), Changed: old.Sum != next.Sum}, nil
}

// etag is an ETag as it may be sent back; "" for one that cannot be one.
func etag(s string) string {
	if len(s) > 200 || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
		return ""
	}
	return s
}
