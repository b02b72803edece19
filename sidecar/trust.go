package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/sidecar/config"
	"github.com/pillion-dev/pillion/tools/whole"
)

// Trust is stored as one small file a folder, so that several processes need no lock between them: 0600 in a folder
// of the person's state, named after a hash of the folder's real path.

// trustRecord is what the person decided about a folder.
type trustRecord struct {
	Path    string    `json:"path"` // real path
	Trusted bool      `json:"trusted"`
	Below   bool      `json:"below,omitempty"`   // every project below it too
	Refused string    `json:"refused,omitempty"` // the settings a "no" was about: asked again when they change
	Created time.Time `json:"created"`
}

func (p *workplace) trustDir() string { return filepath.Join(p.state, "trust") }

func (p *workplace) trustFile(real string) string {
	sum := sha256.Sum256([]byte(real))
	return filepath.Join(p.trustDir(), hex.EncodeToString(sum[:16])+".json")
}

// realPath resolves symbolic links, as far as the path is there.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}

// trusted says whether a worktree's own configuration counts in full. What an editor said about this folder wins,
// also when it says no; then the environment and what the person stored count.
func (p *workplace) trusted(root string) bool {
	root = realPath(root)
	p.mu.Lock()
	said, ok := p.said[root]
	p.mu.Unlock()
	if ok {
		return said
	}
	if v := os.Getenv("PILLION_TRUST"); v == "1" || v == "true" {
		return true
	}
	if r, ok := p.trustOf(root); ok && r.Trusted {
		return true
	}
	for at := filepath.Dir(root); ; at = filepath.Dir(at) {
		if r, ok := p.trustOf(at); ok && r.Trusted && r.Below {
			return true
		}
		if at == filepath.Dir(at) {
			return false
		}
	}
}

// trustFor decides for this process only.
func (p *workplace) trustFor(dir string, trusted bool) {
	root := realPath(worktree(realPath(dir)))
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.said == nil {
		p.said = map[string]bool{}
	}
	p.said[root] = trusted
	clear(p.configs) // what was read under another trust
}

// trustOf reads a record. One that somebody else could have written counts for nothing.
func (p *workplace) trustOf(real string) (trustRecord, bool) {
	r, err := readTrust(p.trustFile(real))
	return r, err == nil && r.Path == real
}

func readTrust(path string) (r trustRecord, err error) {
	info, err := os.Lstat(path)
	if err != nil {
		return r, err
	}
	if !info.Mode().IsRegular() || !onlyOurs(info) {
		return r, fmt.Errorf("%s could have been written by somebody else; remove it and run pillion trust again", path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(b, &r)
}

func (p *workplace) writeTrust(r trustRecord) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return whole.Write(p.trustFile(r.Path), append(b, '\n'), 0o600)
}

// trust stores that a folder is trusted.
func (p *workplace) trust(path string, below bool) error {
	real := realPath(path)
	if below && real == filepath.Dir(real) {
		return errors.New("trusting the whole file system would switch the protection off; name a folder with your own projects")
	}
	return p.writeTrust(trustRecord{Path: real, Trusted: true, Below: below, Created: time.Now().UTC()})
}

// revoke forgets a folder; false when it was not known.
func (p *workplace) revoke(path string) (bool, error) {
	err := os.Remove(p.trustFile(realPath(path)))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// trustList lists the stored decisions by path.
func (p *workplace) trustList() ([]trustRecord, []error) {
	entries, err := os.ReadDir(p.trustDir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, []error{err}
	}
	out, bad := []trustRecord{}, []error(nil)
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		r, err := readTrust(filepath.Join(p.trustDir(), e.Name()))
		if err != nil {
			bad = append(bad, err)
		} else if r.Trusted {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b trustRecord) int { return strings.Compare(a.Path, b.Path) })
	return out, bad
}

// heldDigest stands for a set of held settings: their files and what they say.
func heldDigest(held []config.Held) string {
	h := sha256.New()
	seen := map[string]bool{}
	for _, x := range held {
		fmt.Fprintln(h, x.File, x.Setting, x.Reason)
		if !seen[x.File] {
			seen[x.File] = true
			if f, err := os.Open(x.File); err == nil {
				_, _ = io.Copy(h, io.LimitReader(f, 4<<20))
				f.Close()
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// heldNotice is what a person is told about settings that were left out; empty when there are none. Where an editor has
// its own trust in folders (editor), that is where the person gives it.
func heldNotice(c *config.Config, root string, editor bool) string {
	held := c.Held()
	if len(held) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d setting(s) of this project are held back until you trust %s\n", len(held), root)
	for i, h := range held {
		if i == 20 {
			fmt.Fprintf(&b, "… and %d more; pillion config check lists them\n", len(held)-i)
			break
		}
		fmt.Fprintln(&b, h)
	}
	if editor {
		b.WriteString("If you trust it, say so in your editor (workspace trust): then they count")
	} else {
		fmt.Fprintf(&b, "If you trust it, run: pillion trust %s", quoteArg(root))
	}
	return b.String()
}

// quoteArg makes a path safe to paste into a shell.
func quoteArg(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r == '/' || r == '.' || r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// warnHeld prints what is held back.
func warnHeld(w io.Writer, c *config.Config, root string) {
	if note := heldNotice(c, root, false); note != "" {
		fmt.Fprintln(w, note)
	}
}

// trustFinding is the doctor's line.
func (p *workplace) trustFinding(root string, c *config.Config) finding {
	f := finding{Name: "trust", OK: true, Detail: root + " is trusted: its own configuration counts in full"}
	switch held := c.Held(); {
	case len(held) > 0:
		f.OK = false
		f.Detail = fmt.Sprintf("%d setting(s) of %s are held back, the first is %s", len(held), root, held[0])
		f.Fix = "pillion trust " + quoteArg(root)
	case !c.Trusted():
		f.Detail = root + " is not trusted; nothing in its configuration needs it"
	}
	return f
}
