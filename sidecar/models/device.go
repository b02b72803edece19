package models

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"golang.org/x/oauth2"

	"github.com/pillion-dev/pillion/sidecar/config"
	"github.com/pillion-dev/pillion/sidecar/keys"
	"github.com/pillion-dev/pillion/tools/guard"
)

// DeviceOwner owns the accounts that DeviceSignIn makes.
const DeviceOwner = "pillion auth login"

const (
	deviceExpiry = 15 * time.Minute // of a code whose service names no time; RFC 8628 demands one
	longestPoll  = 60               // seconds between two questions, whatever the service says
	renewBefore  = time.Minute      // how long before its end a token is renewed
)

// deviceSettings are services whose published terms let any program sign people in by a code, with an application that whoever uses it
// registers (https://huggingface.co/docs/hub/oauth: "Device code OAuth", "Public OAuth apps"). Pillion has registered none.
var deviceSettings = map[string]config.DeviceSignIn{
	"huggingface": {DeviceURL: "https://huggingface.co/oauth/device", TokenURL: "https://huggingface.co/oauth/token", Scope: "openid inference-api",
		Terms: "https://huggingface.co/docs/hub/oauth", Register: "https://huggingface.co/settings/applications/new"},
}

// DeviceSignIn is a sign-in by a code that the person types into a browser on any device (RFC 8628).
type DeviceSignIn struct {
	Provider string
	Settings config.DeviceSignIn
	client   *http.Client
}

// DeviceCode is what the person types, and where.
type DeviceCode struct {
	Code, URL string
	Complete  string // an address that has the code already; may be empty
	response  *oauth2.DeviceAuthResponse
}

// Device is the sign-in by code of a provider; ok is false where it has none.
func (m *Models) Device(cwd, provider string) (d DeviceSignIn, ok bool) {
	c := m.config(cwd)
	s := deviceSettings[provider]
	if p, configured := c.Provider[provider]; configured && p.Device != nil {
		s = config.DeviceSignIn{ClientID: p.Device.ClientID, DeviceURL: cmp.Or(p.Device.DeviceURL, s.DeviceURL), TokenURL: cmp.Or(p.Device.TokenURL, s.TokenURL), Scope: cmp.Or(p.Device.Scope, s.Scope),
			Terms: s.Terms, Register: s.Register}
	}
	if s.DeviceURL == "" || s.TokenURL == "" {
		return DeviceSignIn{}, false
	}
	r := c.Reason("provider."+provider+".device", "provider."+provider+".device.device_url", "provider."+provider+".device.token_url")
	r.Who = guard.Model
	client := guard.Client(r, guard.Network{})
	client.CheckRedirect = guard.NoRedirects
	client.Timeout = 30 * time.Second
	return DeviceSignIn{provider, s, client}, true
}

// config is what package oauth2 needs; the error says what is to be configured.
func (d DeviceSignIn) config() (*oauth2.Config, error) {
	if d.Settings.ClientID == "" {
		where := "your application"
		if d.Settings.Register != "" {
			where += ", which you register at " + d.Settings.Register + " (public, without a secret)"
		}
		return nil, fmt.Errorf("set provider.%s.device.client_id in pillion.jsonc to the client id of %s", d.Provider, where)
	}
	for _, at := range []string{d.Settings.DeviceURL, d.Settings.TokenURL} {
		u, err := url.Parse(at)
		if err != nil || u.Scheme != "https" && !net.ParseIP(u.Hostname()).IsLoopback() {
			return nil, fmt.Errorf("provider.%s.device: %q is no https address", d.Provider, at)
		}
	}
	return &oauth2.Config{ClientID: d.Settings.ClientID, Scopes: strings.Fields(d.Settings.Scope),
		Endpoint: oauth2.Endpoint{DeviceAuthURL: d.Settings.DeviceURL, TokenURL: d.Settings.TokenURL, AuthStyle: oauth2.AuthStyleInParams}}, nil
}

// Begin asks for a code.
func (d DeviceSignIn) Begin(ctx context.Context) (DeviceCode, error) {
	c, err := d.config()
	if err != nil {
		return DeviceCode{}, err
	}
	r, err := c.DeviceAuth(context.WithValue(ctx, oauth2.HTTPClient, d.client))
	if err != nil {
		return DeviceCode{}, d.failure(err)
	}
	if r.DeviceCode == "" || r.UserCode == "" || r.VerificationURI == "" {
		return DeviceCode{}, fmt.Errorf("%s sent no code", d.Settings.DeviceURL)
	}
	// What it says may be a mistake: it is asked no more often than once a second, and not seldom.
	r.Interval = min(max(r.Interval, 0), longestPoll)
	if latest := time.Now().Add(time.Hour); r.Expiry.IsZero() || r.Expiry.After(latest) {
		r.Expiry = time.Now().Add(deviceExpiry)
	}
	return DeviceCode{r.UserCode, r.VerificationURI, r.VerificationURIComplete, r}, nil
}

// Wait waits until the person has typed the code, and returns the account.
func (d DeviceSignIn) Wait(ctx context.Context, code DeviceCode) (json.RawMessage, error) {
	c, err := d.config()
	if err != nil {
		return nil, err
	}
	inner := context.WithValue(ctx, oauth2.HTTPClient, d.client)
	for {
		t, err := c.DeviceAccessToken(inner, code.response)
		if err == nil {
			return deviceAccount(t)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if errors.Is(err, context.DeadlineExceeded) && !time.Now().Before(code.response.Expiry) {
			return nil, errors.New("the code has expired before it was typed; run the command again")
		}
		// A connection that failed once says nothing about the code: it is asked again after the interval.
		var network *url.Error
		if !errors.As(err, &network) {
			return nil, d.failure(err)
		}
	}
}

// failure is an error of the service for a person. It never quotes an answer, which may hold a token.
func (d DeviceSignIn) failure(err error) error {
	var said *oauth2.RetrieveError
	if !errors.As(err, &said) {
		return err
	}
	switch said.ErrorCode {
	case "access_denied":
		return errors.New("the sign-in was refused in the browser")
	case "expired_token":
		return errors.New("the code has expired before it was typed; run the command again")
	case "":
		return fmt.Errorf("%s answered %s", d.Provider, said.Response.Status)
	}
	// The words are the service's, and go to a terminal.
	words := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, said.ErrorCode+" "+said.ErrorDescription)
	return fmt.Errorf("%s refused the sign-in: %s", d.Provider, strings.TrimSpace(words[:min(len(words), 300)]))
}

// deviceTokens is an account of DeviceOwner, in the form that plugins' accounts have too.
type deviceTokens struct {
	Type    string `json:"type"` // oauth
	Access  string `json:"access"`
	Refresh string `json:"refresh,omitempty"`
	Expires int64  `json:"expires,omitempty"` // milliseconds since 1970; 0: never
}

// deviceAccount is the account for a token.
func deviceAccount(t *oauth2.Token) (json.RawMessage, error) {
	// It goes into a header of each request.
	if err := keys.Check("x", t.AccessToken); err != nil {
		return nil, errors.New("the service sent a token that cannot be one")
	}
	a := deviceTokens{Type: "oauth", Access: t.AccessToken, Refresh: t.RefreshToken}
	if !t.Expiry.IsZero() {
		a.Expires = t.Expiry.UnixMilli()
	}
	return json.Marshal(a)
}

// DeviceAccess says how requests are made with an account of DeviceOwner. A token that ends is renewed and given to keep.
func (m *Models) DeviceAccess(ctx context.Context, cwd, provider string, account keys.Account, keep func(json.RawMessage) error) (Accessed, error) {
	m.renewing.Lock()
	defer m.renewing.Unlock()
	again := "run: pillion auth login " + provider
	// Another turn may have renewed it while this one waited.
	if now, ok := m.accounts()[provider]; ok && now.Owner == DeviceOwner {
		account = now
	}
	var a deviceTokens
	if err := json.Unmarshal(account.Value, &a); err != nil || a.Access == "" {
		return Accessed{}, fmt.Errorf("the account of %s cannot be read; %s", provider, again)
	}
	if ends := time.UnixMilli(a.Expires); a.Expires != 0 && time.Until(ends) < renewBefore {
		renewed, err := m.renew(ctx, cwd, provider, a)
		switch {
		case err == nil:
			if err := keep(renewed); err != nil {
				return Accessed{}, err
			}
			if err := json.Unmarshal(renewed, &a); err != nil {
				return Accessed{}, err
			}
		case time.Until(ends) <= 0:
			return Accessed{}, fmt.Errorf("the sign-in to %s has ended (%w); %s", provider, err, again)
		}
	}
	sum := sha256.Sum256([]byte(a.Access))
	return Accessed{Token: a.Access, Version: hex.EncodeToString(sum[:8])}, nil
}

// renew gets a new token for an account.
func (m *Models) renew(ctx context.Context, cwd, provider string, a deviceTokens) (json.RawMessage, error) {
	if a.Refresh == "" {
		return nil, errors.New("it cannot be renewed")
	}
	d, ok := m.Device(cwd, provider)
	if !ok {
		return nil, errors.New("the provider has no device section")
	}
	c, err := d.config()
	if err != nil {
		return nil, err
	}
	t, err := c.TokenSource(context.WithValue(ctx, oauth2.HTTPClient, d.client), &oauth2.Token{RefreshToken: a.Refresh, Expiry: time.Unix(1, 0)}).Token()
	if err != nil {
		return nil, d.failure(err)
	}
	return deviceAccount(t)
}
