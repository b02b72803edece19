// Package keys keeps the keys of model providers, and the accounts that were signed in to: in the operating system's keyring where there is one, else in a file
// that only its owner can read, and in memory those that an editor's secret store hands over. A key is never shown.
//
//	s := &keys.Store{File: filepath.Join(state, "auth.json"), Keyring: keys.System{}}
//	where, err := s.Set("anthropic", key)
package keys

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/tools/whole"
)

// Source says where a key is kept.
type Source string

// The places, the nearest first.
const (
	Editor  Source = "editor"
	Keyring Source = "keyring"
	File    Source = "file"
)

// Key is a provider's key.
type Key struct {
	Value  string
	Source Source
}

// Account is what a sign-in left for a provider: a JSON object with its tokens. Owner says who may have them: the name of a plugin, or
// what signed in of Pillion itself.
type Account struct {
	Owner  string
	Value  json.RawMessage
	Source Source
}

// String hides the tokens.
func (a Account) String() string { return "account of " + a.Owner }

// String hides the key.
func (k Key) String() string { return "key of the " + string(k.Source) }

// Ring is a keyring; System is the one there is. Its errors mean that it cannot be used.
type Ring interface {
	Get(provider string) (string, error)
	Set(provider, key string) error
	Delete(provider string) error
}

// Store keeps the keys of one person. It is safe for concurrent use, and by several processes: its file is replaced whole.
type Store struct {
	File    string
	Keyring Ring // nil: the file only

	mu     sync.Mutex
	editor map[string]string // guarded by mu
	read   map[string]Key    // guarded by mu; as of stamp; accounts too, as they are kept
	owners map[string]string // guarded by mu; as of stamp: whose accounts those of read are
	stamp  string            // guarded by mu
}

// entry is a provider in the file. A key in the keyring leaves only its place here.
type entry struct {
	Key  string    `json:"key,omitempty"`
	In   Source    `json:"in,omitempty"`
	Time time.Time `json:"time"`
	// Owner is set for an account; Key, or what is in the keyring, is then its JSON in base64, which has only characters of keys.
	Owner string `json:"owner,omitempty"`
}

var (
	providerID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`) })
	// ErrNone: there is no such key.
	ErrNone = errors.New("no key is kept for it")
)

// Check says what is wrong with a provider's name or a key.
func Check(provider, key string) error {
	switch {
	case !providerID().MatchString(provider):
		return fmt.Errorf("%q is not a provider id: use lower-case letters, digits, . _ and -", provider)
	case key != strings.TrimSpace(key) || key == "":
		return errors.New("the key is empty or has blanks around it; paste it again")
	// Printable ASCII only, since a key is sent in an HTTP header. 8 KiB leaves room for long tokens.
	case len(key) > 8<<10 || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("the key contains characters that keys do not have; paste it again")
	}
	return nil
}

// All returns the keys by provider. A key from an editor wins over a stored key of the same provider.
func (s *Store) All() map[string]Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all(s.kept())
}

// all is All of what is kept. mu is held.
func (s *Store) all(kept map[string]Key) map[string]Key {
	out := maps.Clone(kept)
	maps.DeleteFunc(out, func(id string, _ Key) bool { return s.owners[id] != "" })
	for id, key := range s.editor {
		out[id] = Key{key, Editor}
	}
	return out
}

// kept are the keys of file and keyring, read again when the file has changed. mu is held.
func (s *Store) kept() map[string]Key {
	// Size and time tell that another process has replaced the file; the keyring is not asked again until then.
	stamp := ""
	if info, err := os.Stat(s.File); err == nil {
		stamp = fmt.Sprintf("%d %d", info.Size(), info.ModTime().UnixNano())
	}
	if s.read != nil && stamp == s.stamp {
		return s.read
	}
	s.read, s.owners, s.stamp = map[string]Key{}, map[string]string{}, stamp
	entries, _ := s.load() // a file that cannot be read holds no keys; login says so
	for id, e := range entries {
		if e.Owner != "" {
			s.owners[id] = e.Owner
		}
		if e.In != Keyring {
			s.read[id] = Key{e.Key, File}
		} else if s.Keyring != nil {
			if key, err := s.Keyring.Get(id); err == nil && key != "" {
				s.read[id] = Key{key, Keyring}
			}
		}
	}
	return s.read
}

// load reads the file; a missing file holds no keys. Set and Remove fail on a damaged file instead of replacing it, which would lose the
// keys that are still in it.
func (s *Store) load() (map[string]entry, error) {
	raw, err := os.ReadFile(s.File)
	if errors.Is(err, os.ErrNotExist) {
		return map[string]entry{}, nil
	}
	if err != nil {
		return nil, err
	}
	out := map[string]entry{}
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, fmt.Errorf("%s is damaged (%w); move it away and log in again", s.File, err)
	}
	return out, nil
}

// Set keeps a key: in the keyring where that works, else in the file.
func (s *Store) Set(provider, key string) (Source, error) {
	if err := Check(provider, key); err != nil {
		return "", err
	}
	return s.set(provider, key, "")
}

// maxAccount is how long the JSON of an account may be, in bytes. Tokens of OpenAI have two thousand each.
const maxAccount = 64 << 10

// SetAccount keeps an account in place of the provider's key or account.
func (s *Store) SetAccount(provider, owner string, account json.RawMessage) (Source, error) {
	var object map[string]json.RawMessage
	switch {
	case !providerID().MatchString(provider):
		return "", Check(provider, "x")
	case owner == "":
		return "", errors.New("an account belongs to somebody")
	case len(account) > maxAccount || json.Unmarshal(account, &object) != nil || len(object) == 0:
		return "", errors.New("what came of the sign-in is no account")
	}
	return s.set(provider, base64.RawURLEncoding.EncodeToString(account), owner)
}

// Accounts returns the accounts by provider.
func (s *Store) Accounts() map[string]Account {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accounts(s.kept())
}

// accounts is Accounts of what is kept. mu is held.
func (s *Store) accounts(kept map[string]Key) map[string]Account {
	out := map[string]Account{}
	for id, owner := range s.owners {
		if text, err := base64.RawURLEncoding.DecodeString(kept[id].Value); err == nil && len(text) > 0 {
			out[id] = Account{owner, text, kept[id].Source}
		}
	}
	return out
}

// Secrets are all that must not be shown: the keys, and every text in an account that is long enough for a token. The names are only to
// tell them apart.
func (s *Store) Secrets() map[string]Key {
	s.mu.Lock()
	kept := s.kept() // once: every text that is shown is searched for secrets
	out, accounts := s.all(kept), s.accounts(kept)
	s.mu.Unlock()
	for id, a := range accounts {
		var object map[string]any
		_ = json.Unmarshal(a.Value, &object)
		for name, v := range object {
			if text, ok := v.(string); ok && len(text) >= 16 && name != "enterpriseUrl" && name != "projectId" {
				out[id+" "+name] = Key{text, a.Source}
			}
		}
	}
	return out
}

// set keeps a key, or the text of an owner's account.
func (s *Store) set(provider, key, owner string) (Source, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries, err := s.load()
	if err != nil {
		return "", err
	}
	e := entry{Key: key, In: File, Time: time.Now().UTC().Truncate(time.Second), Owner: owner}
	// A keyring that is missing or locked is not an error: the key goes into the file.
	if s.Keyring != nil && s.Keyring.Set(provider, key) == nil {
		e.Key, e.In = "", Keyring
	}
	entries[provider] = e
	return e.In, s.save(entries)
}

// Remove forgets a key, wherever it is kept. It fails with ErrNone where no key is kept.
func (s *Store) Remove(provider string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, inEditor := s.editor[provider]
	delete(s.editor, provider)
	entries, err := s.load()
	if err != nil {
		return err
	}
	e, ok := entries[provider]
	if !ok {
		// A key from an editor has no entry in the file.
		if inEditor {
			return nil
		}
		return ErrNone
	}
	if e.In == Keyring && s.Keyring != nil {
		if err := s.Keyring.Delete(provider); err != nil {
			return fmt.Errorf("the keyring did not delete it: %w", err)
		}
	}
	delete(entries, provider)
	return s.save(entries)
}

// Lend takes a key from an editor, until this process ends; an empty one removes it.
func (s *Store) Lend(provider, key string) error {
	if key != "" {
		if err := Check(provider, key); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.editor == nil {
		s.editor = map[string]string{}
	}
	if s.editor[provider] = key; key == "" {
		delete(s.editor, provider)
	}
	return nil
}

// save replaces the file, which only its owner can read. mu is held; without read = nil the next All might miss the change.
func (s *Store) save(entries map[string]entry) error {
	s.read = nil
	raw, err := json.MarshalIndent(entries, "", "  ")
	if err != nil {
		return err
	}
	return whole.Write(s.File, append(raw, '\n'), 0o600)
}
