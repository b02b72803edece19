package app

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/pillion-dev/pillion/sidecar/keys"
)

// An account is given to its owner, and replaced by nobody else.
func TestAnAccountIsGivenToItsOwner(t *testing.T) {
	a := &App{Place: &Workplace{keyStore: &keys.Store{File: filepath.Join(t.TempDir(), "auth.json")}}}
	if err := a.KeepAccount("acme", "acme-auth", json.RawMessage(`{"type":"oauth","access":"access-token-0123456789"}`)); err != nil {
		t.Fatal(err)
	}
	p := pluginAccounts{a}
	if p.Account("acme", "acme-auth") == nil || p.Account("acme", "thief") != nil || p.Account("other", "acme-auth") != nil {
		t.Error("an account for somebody else, or for nobody")
	}
	for provider, owner := range map[string]string{"acme": "thief", "other": "acme-auth"} {
		if err := p.SetAccount(provider, owner, json.RawMessage(`{"type":"api","key":"k"}`)); err == nil {
			t.Errorf("%s set the account of %s", owner, provider)
		}
	}
	if a.Place.secrets.Hide("access-token-0123456789") == "access-token-0123456789" {
		t.Error("the token is not hidden")
	}
}
