package keys

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// ring is a keyring in memory; broken makes every call fail.
type ring struct {
	keys   map[string]string
	broken bool
}

func (r *ring) Get(p string) (string, error) {
	if r.broken {
		return "", errors.New("locked")
	}
	return r.keys[p], nil
}

func (r *ring) Set(p, k string) error {
	if r.broken {
		return errors.New("locked")
	}
	r.keys[p] = k
	return nil
}

func (r *ring) Delete(p string) error { delete(r.keys, p); return nil }

func TestKeysInTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "deep", "auth.json")
	s := &Store{File: file}
	if where, err := s.Set("anthropic", "sk-1"); err != nil || where != File {
		t.Fatal(where, err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v", info, err)
	}
	other := &Store{File: file}
	if k := other.All()["anthropic"]; k.Value != "sk-1" || k.Source != File {
		t.Errorf("%+v", k.Value)
	}
	if _, err := s.Set("openai", "sk-2"); err != nil {
		t.Fatal(err)
	}
	if len(other.All()) != 2 {
		t.Error("another process's key is not seen")
	}
	if err := s.Remove("anthropic"); err != nil {
		t.Error(err)
	}
	if err := s.Remove("anthropic"); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
	if got := fmt.Sprint(other.All()); strings.Contains(got, "sk-") {
		t.Errorf("printing shows a key: %s", got)
	}
}

func TestKeysInTheKeyring(t *testing.T) {
	file, r := filepath.Join(t.TempDir(), "auth.json"), &ring{keys: map[string]string{}}
	s := &Store{File: file, Keyring: r}
	if where, err := s.Set("anthropic", "sk-1"); err != nil || where != Keyring {
		t.Fatal(where, err)
	}
	if raw, _ := os.ReadFile(file); strings.Contains(string(raw), "sk-1") {
		t.Errorf("the file has the key: %s", raw)
	}
	if k := s.All()["anthropic"]; k.Value != "sk-1" || k.Source != Keyring {
		t.Error(k.Source)
	}
	r.broken = true
	if where, err := s.Set("openai", "sk-2"); err != nil || where != File {
		t.Error(where, err)
	}
	if err := s.Remove("anthropic"); err != nil || len(r.keys) != 0 {
		t.Error(err, r.keys)
	}
}

func TestKeysLentByAnEditor(t *testing.T) {
	s := &Store{File: filepath.Join(t.TempDir(), "auth.json")}
	if _, err := s.Set("x", "kept"); err != nil {
		t.Fatal(err)
	}
	if err := s.Lend("x", "lent"); err != nil {
		t.Fatal(err)
	}
	if k := s.All()["x"]; k.Value != "lent" || k.Source != Editor {
		t.Error(k.Source)
	}
	if err := s.Lend("x", ""); err != nil || s.All()["x"].Value != "kept" {
		t.Error(err)
	}
	if raw, _ := os.ReadFile(s.File); strings.Contains(string(raw), "lent") {
		t.Error("an editor's key was written")
	}
}

func TestBadKeys(t *testing.T) {
	s := &Store{File: filepath.Join(t.TempDir(), "auth.json")}
	for _, c := range [][2]string{{"", "k"}, {"Open AI", "k"}, {"../x", "k"}, {"x", ""}, {"x", " k"}, {"x", "a\nb"}, {"x", "ké"}} {
		if _, err := s.Set(c[0], c[1]); err == nil {
			t.Errorf("%q", c)
		}
	}
	if err := os.WriteFile(s.File, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Set("x", "k"); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Error(err)
	}
	if len(s.All()) != 0 {
		t.Error("keys out of nothing")
	}
}

func TestKeysAtOnce(t *testing.T) {
	s := &Store{File: filepath.Join(t.TempDir(), "auth.json")}
	var wait sync.WaitGroup
	for i := range 10 {
		wait.Go(func() {
			if _, err := s.Set(fmt.Sprintf("p%d", i), "k"); err != nil {
				t.Error(err)
			}
			s.All()
		})
	}
	wait.Wait()
	if len(s.All()) != 10 {
		t.Error(s.All())
	}
}

func TestAccountsAreKeptBesideKeysAndAreNone(t *testing.T) {
	s := &Store{File: filepath.Join(t.TempDir(), "auth.json")}
	if _, err := s.Set("acme", "key-of-acme-0123456789"); err != nil {
		t.Fatal(err)
	}
	account := json.RawMessage(`{"type":"oauth","access":"access of acme, 0123456789","expires":5}`)
	if where, err := s.SetAccount("acme", "acme-auth", account); err != nil || where != File {
		t.Fatalf("%v %v", where, err)
	}
	again := &Store{File: s.File}
	if got := again.Accounts()["acme"]; got.Owner != "acme-auth" || string(got.Value) != string(account) || strings.Contains(fmt.Sprint(got), "0123") {
		t.Errorf("%v", got)
	}
	if keys := again.All(); len(keys) != 0 {
		t.Errorf("an account is used as a key: %v", keys)
	}
	if secrets := again.Secrets(); len(secrets) != 1 || secrets["acme access"].Value != "access of acme, 0123456789" {
		t.Errorf("%v", secrets)
	}
	for _, bad := range []string{"", "null", "[]", "{}", `"text"`, `{"a":"` + strings.Repeat("x", maxAccount) + `"}`} {
		if _, err := s.SetAccount("acme", "acme-auth", json.RawMessage(bad)); err == nil {
			t.Errorf("%.20s is an account", bad)
		}
	}
	if _, err := s.SetAccount("acme", "", account); err == nil {
		t.Error("an account of nobody")
	}
	if err := again.Remove("acme"); err != nil || len(s.Accounts()) != 0 {
		t.Errorf("%v %v", err, s.Accounts())
	}
}
