// Package trust remembers which folders the person trusts. The configuration of a project that is not trusted counts
// in part only: package config leaves out what could start a program, redirect a model or loosen a permission.
//
// A decision is one small file a folder, so that several processes need no lock between them: mode 0600 in a folder of
// the person's state, named after a hash of the folder's real path. What an editor or a flag decides counts for this
// process and is not stored.
package trust

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
	"sync"
	"time"

	"github.com/pillion-dev/pillion/sidecar/config"
	"github.com/pillion-dev/pillion/tools/paths"
	"github.com/pillion-dev/pillion/tools/whole"
)

// Record is what the person decided about a folder.
type Record struct {
	Path    string    `json:"path"` // real path
	Trusted bool      `json:"trusted"`
	Below   bool      `json:"below,omitempty"`   // every project below it too
	Refused string    `json:"refused,omitempty"` // the settings a "no" was about: asked again when they change
	Created time.Time `json:"created"`
}

// Store reads and writes decisions. Its methods are safe for concurrent use.
type Store struct {
	Dir string // where the records are; made with the first one

	mu   sync.Mutex
	said map[string]bool   // guarded by mu; worktree roots (real paths) that an editor or a flag decided for this process
	told map[string]string // guarded by mu; by worktree root, the digest of what the person was last told is held back
}

// File is where the record of a folder is kept. real is its path without symbolic links.
func (s *Store) File(real string) string {
	sum := sha256.Sum256([]byte(real))
	return filepath.Join(s.Dir, hex.EncodeToString(sum[:16])+".json")
}

// RealPath resolves symbolic links, as far as the path is there.
func RealPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}

// Trusted says whether a worktree's own configuration counts in full. What an editor said about this folder wins,
// also when it says no; then the environment and what the person stored count.
func (s *Store) Trusted(root string) bool {
	root = RealPath(root)
	s.mu.Lock()
	said, ok := s.said[root]
	s.mu.Unlock()
	if ok {
		return said
	}
	if v := os.Getenv("PILLION_TRUST"); v == "1" || v == "true" {
		return true
	}
	if r, ok := s.Record(root); ok && r.Trusted {
		return true
	}
	for at := filepath.Dir(root); ; at = filepath.Dir(at) {
		// A record of a folder above counts only where it was given with Below.
		if r, ok := s.Record(at); ok && r.Trusted && r.Below {
			return true
		}
		if at == filepath.Dir(at) {
			return false
		}
	}
}

// Decide decides for the worktree that holds dir, in this process only.
func (s *Store) Decide(dir string, trusted bool) {
	root := RealPath(paths.Worktree(RealPath(dir)))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.said == nil {
		s.said = map[string]bool{}
	}
	s.said[root] = trusted
}

// FirstNotice reports whether the person has not been shown this set of held settings (see Digest) of a worktree in
// this process, and notes that they are shown now.
func (s *Store) FirstNotice(root, digest string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.told[root] == digest {
		return false
	}
	if s.told == nil {
		s.told = map[string]string{}
	}
	s.told[root] = digest
	return true
}

// Record reads what is stored about a folder, given by its real path. A record that another user could have written,
// or that is about another folder, counts as missing: otherwise a shared machine could trust on the person's behalf.
func (s *Store) Record(real string) (Record, bool) {
	r, err := read(s.File(real))
	return r, err == nil && r.Path == real
}

// read reads one record. It does not follow a link, and refuses a file that another user could have written.
func read(path string) (r Record, err error) {
	info, err := os.Lstat(path)
	if err != nil {
		return r, err
	}
	if !info.Mode().IsRegular() || !onlyOurs(info) {
		return r, fmt.Errorf("another user could have written %s; remove it and run pillion trust again", path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(b, &r)
}

// Write stores a decision.
func (s *Store) Write(r Record) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return whole.Write(s.File(r.Path), append(b, '\n'), 0o600)
}

// Trust stores that a folder is trusted; with below every project under it is, too.
func (s *Store) Trust(path string, below bool) error {
	real := RealPath(path)
	if below && real == filepath.Dir(real) {
		return errors.New("trusting the whole file system would turn the protection off; name a folder with your own projects")
	}
	return s.Write(Record{Path: real, Trusted: true, Below: below, Created: time.Now().UTC()})
}

// Revoke forgets a folder and reports whether there was a record of it.
func (s *Store) Revoke(path string) (bool, error) {
	err := os.Remove(s.File(RealPath(path)))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// List returns the folders that are trusted, by path, and an error for each record that cannot be used.
func (s *Store) List() ([]Record, []error) {
	entries, err := os.ReadDir(s.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, []error{err}
	}
	out, bad := []Record{}, []error(nil)
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		r, err := read(filepath.Join(s.Dir, e.Name()))
		if err != nil {
			bad = append(bad, err)
		} else if r.Trusted {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b Record) int { return strings.Compare(a.Path, b.Path) })
	return out, bad
}

// Digest identifies a set of held settings by their files and the contents of these, so that a person is asked again
// when any of them changes.
func Digest(held []config.Held) string {
	h := sha256.New()
	seen := map[string]bool{}
	for _, x := range held {
		fmt.Fprintln(h, x.File, x.Setting, x.Reason)
		if !seen[x.File] {
			seen[x.File] = true
			// The first 4 MiB of a file are enough for any configuration.
			if f, err := os.Open(x.File); err == nil {
				_, _ = io.Copy(h, io.LimitReader(f, 4<<20))
				f.Close()
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Notice is what a person is told about settings that were left out; empty when there are none. Where an editor has
// its own trust in folders (editor), that is where the person gives it.
func Notice(c *config.Config, root string, editor bool) string {
	held := c.Held()
	if len(held) == 0 {
		return ""
	}
	var b strings.Builder
	what := "settings of this project are"
	if len(held) == 1 {
		what = "setting of this project is"
	}
	fmt.Fprintf(&b, "%d %s held back until you trust %s\n", len(held), what, root)
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
		fmt.Fprintf(&b, "If you trust it, run: pillion trust %s", QuoteArg(root))
	}
	return b.String()
}

// QuoteArg makes a path safe to paste into a shell.
func QuoteArg(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r == '/' || r == '.' || r == '-' || r == '_' || r == '@' || r == '=' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
	}) {
		return s
	}
	// Nothing is special between single quotes in a POSIX shell, so a quote is written outside of them.
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Warn prints what is held back.
func Warn(w io.Writer, c *config.Config, root string) {
	if note := Notice(c, root, false); note != "" {
		fmt.Fprintln(w, note)
	}
}
