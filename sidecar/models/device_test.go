package models

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/sidecar/config"
	"github.com/pillion-dev/pillion/sidecar/keys"
)

// deviceService answers the requests of a sign-in by a script. It has no socket, so the clock of a test may be a false one.
type deviceService struct {
	interval string          // as JSON, of the code; empty: not said
	expires  string          // likewise
	polls    []string        // answers of the token's address, one each; an error's code, network, or token
	asked    []time.Duration // when, after the start
	forms    []url.Values    // what it was sent
	start    time.Time
}

func (s *deviceService) RoundTrip(q *http.Request) (*http.Response, error) {
	body, _ := io.ReadAll(q.Body)
	form, _ := url.ParseQuery(string(body))
	s.forms = append(s.forms, form)
	status, text := http.StatusOK, ""
	switch q.URL.Path {
	case "/device":
		text = `{"device_code": "device-secret", "user_code": "ABCD-EFGH", "verification_uri": "https://acme.example/device"`
		for name, v := range map[string]string{"interval": s.interval, "expires_in": s.expires} {
			if v != "" {
				text += `, "` + name + `": ` + v
			}
		}
		text += "}"
		s.start = time.Now()
	case "/token":
		s.asked = append(s.asked, time.Since(s.start))
		if len(s.polls) == 0 {
			text, status = `{"error": "authorization_pending"}`, http.StatusBadRequest
			break
		}
		next := s.polls[0]
		s.polls = s.polls[1:]
		switch next {
		case "token":
			text = `{"access_token": "access-token-0123456789", "token_type": "bearer", "refresh_token": "refresh-token-0123456789", "expires_in": 3600}`
		case "bad token":
			text = `{"access_token": "two words", "token_type": "bearer"}`
		case "network":
			return nil, errors.New("connection reset")
		case "page":
			text, status = "<html>access-token-0123456789</html>", http.StatusBadGateway
		default:
			text, status = `{"error": "`+next+`", "error_description": "no\u001b[2J"}`, http.StatusBadRequest
		}
	}
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(text)), Request: q}, nil
}

func (s *deviceService) signIn() DeviceSignIn {
	return DeviceSignIn{"acme", config.DeviceSignIn{ClientID: "client", DeviceURL: "https://acme.example/device", TokenURL: "https://acme.example/token", Scope: "read chat"}, &http.Client{Transport: s}}
}

func TestASignInByCode(t *testing.T) {
	for name, tt := range map[string]struct {
		s    deviceService
		want string // of the account, or of the error
		asks []int  // seconds after the code
	}{
		"at once":               {deviceService{interval: "2", expires: "600", polls: []string{"token"}}, "access-token", []int{2}},
		"without an interval":   {deviceService{expires: "600", polls: []string{"token"}}, "access-token", []int{5}},
		"pending":               {deviceService{interval: "1", expires: "600", polls: []string{"authorization_pending", "authorization_pending", "token"}}, "access-token", []int{1, 2, 3}},
		"slow down":             {deviceService{interval: "1", expires: "600", polls: []string{"slow_down", "authorization_pending", "slow_down", "token"}}, "access-token", []int{1, 7, 13, 24}},
		"refused":               {deviceService{interval: "1", expires: "600", polls: []string{"access_denied", "token"}}, "refused in the browser", []int{1}},
		"expired, it says":      {deviceService{interval: "1", expires: "600", polls: []string{"expired_token", "token"}}, "has expired", []int{1}},
		"expired":               {deviceService{interval: "4", expires: "10"}, "has expired", []int{4, 8}},
		"without an expiry":     {deviceService{interval: "59"}, "has expired", []int{59, 118, 177, 236, 295, 354, 413, 472, 531, 590, 649, 708, 767, 826, 885}},
		"a failed connection":   {deviceService{interval: "1", expires: "600", polls: []string{"network", "authorization_pending", "token"}}, "access-token", []int{1, 2, 3}},
		"a wrong client":        {deviceService{interval: "1", expires: "600", polls: []string{"invalid_client"}}, "invalid_client", []int{1}},
		"a page of a gateway":   {deviceService{interval: "1", expires: "600", polls: []string{"page"}}, "acme answered", []int{1}},
		"a token that is none":  {deviceService{interval: "1", expires: "600", polls: []string{"bad token"}}, "cannot be one", []int{1}},
		"an interval below 0":   {deviceService{interval: "-5", expires: "600", polls: []string{"token"}}, "access-token", []int{5}},
		"an interval of a year": {deviceService{interval: "31536000", expires: "600", polls: []string{"token"}}, "access-token", []int{60}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := tt.s.signIn()
				code, err := d.Begin(t.Context())
				if err != nil || code.Code != "ABCD-EFGH" || code.URL != "https://acme.example/device" {
					t.Fatalf("%+v %v", code, err)
				}
				account, err := d.Wait(t.Context(), code)
				got := string(account)
				if err != nil {
					if got = err.Error(); strings.Contains(got, "\x1b") || strings.Contains(got, "secret") || strings.Contains(got, "0123456789") {
						t.Errorf("it tells a secret: %s", got)
					}
				}
				if !strings.Contains(got, tt.want) {
					t.Errorf("%q, want %q", got, tt.want)
				}
				var asks []int
				for _, at := range tt.s.asked {
					asks = append(asks, int(at.Seconds()))
				}
				if string(mustJSON(t, asks)) != string(mustJSON(t, tt.asks)) {
					t.Errorf("it asked after %v seconds, want %v", asks, tt.asks)
				}
				if f := tt.s.forms[0]; f.Get("client_id") != "client" || f.Get("scope") != "read chat" {
					t.Errorf("%v", f)
				}
				if f := tt.s.forms[len(tt.s.forms)-1]; f.Get("device_code") != "device-secret" || f.Get("grant_type") != "urn:ietf:params:oauth:grant-type:device_code" {
					t.Errorf("%v", f)
				}
			})
		})
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestASignInByCodeIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &deviceService{interval: "5", expires: "600"}
		d := s.signIn()
		code, err := d.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 12*time.Second)
		defer cancel()
		if account, err := d.Wait(ctx, code); account != nil || !errors.Is(err, context.DeadlineExceeded) || len(s.asked) != 2 {
			t.Errorf("%s %v, asked %v", account, err, s.asked)
		}
	})
}

func TestWhatASignInByCodeNeeds(t *testing.T) {
	for text, want := range map[string]string{
		`{}`: "client_id in pillion.jsonc to the client id of your application, which you register at https://huggingface.co/settings/applications/new",
		`{"provider": {"huggingface": {"device": {"client_id": "c", "token_url": "http://evil.example/token"}}}}`: "no https address",
	} {
		d, ok := source(t, text, nil).Device("/", "huggingface")
		if _, err := d.Begin(t.Context()); !ok || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v %v", text, ok, err)
		}
	}
	if _, ok := source(t, `{"provider": {"acme": {"device": {"client_id": "c"}}}}`, nil).Device("/", "acme"); ok {
		t.Error("a sign-in without addresses")
	}
	d, ok := source(t, `{"provider": {"acme": {"device": {"client_id": "c", "device_url": "https://a/d", "token_url": "https://a/t"}}}}`, nil).Device("/", "acme")
	if _, err := d.config(); !ok || err != nil {
		t.Errorf("%v %v", ok, err)
	}
}

// A token is renewed before it ends, once for all who wait; one that cannot be renewed says what to do.
func TestATokenOfASignInIsRenewed(t *testing.T) {
	m := source(t, `{"provider": {"huggingface": {"device": {"client_id": "client"}}}}`, nil)
	kept := keys.Account{Owner: DeviceOwner, Value: mustJSON(t, deviceTokens{"oauth", "old-token", "", time.Now().Add(time.Hour).UnixMilli()})}
	m.Accounts = func() map[string]keys.Account { return map[string]keys.Account{"huggingface": kept} }
	m.Access = deviceAccess{m, func(v json.RawMessage) error { kept.Value = v; return nil }}
	p, model, err := m.Resolve(t.Context(), "/", "huggingface/some/model")
	if err != nil || p == nil || model.String() != "huggingface/some/model" {
		t.Fatalf("%v %v", model, err)
	}
	if a, err := m.Access.Access(t.Context(), "/", "huggingface", kept, nil); err != nil || a.Token != "old-token" {
		t.Errorf("%+v %v", a, err)
	}
	kept.Value = mustJSON(t, deviceTokens{"oauth", "old-token", "", time.Now().Add(-time.Hour).UnixMilli()})
	if _, _, err := m.Resolve(t.Context(), "/", "huggingface/some/model"); err == nil || !strings.Contains(err.Error(), "pillion auth login huggingface") {
		t.Errorf("%v", err)
	}
	// With a refresh token it is renewed, once for all who need it.
	asked := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked++; r.FormValue("refresh_token") != "refresh-0" || r.FormValue("client_id") != "client" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"access_token": "new-token", "refresh_token": "refresh-1", "expires_in": 3600, "token_type": "bearer"}`))
	}))
	defer srv.Close()
	m.Config = source(t, `{"provider": {"huggingface": {"device": {"client_id": "client", "device_url": "`+srv.URL+`/d", "token_url": "`+srv.URL+`/t"}}}}`, nil).Config
	kept.Value = mustJSON(t, deviceTokens{"oauth", "old-token", "refresh-0", time.Now().Add(-time.Hour).UnixMilli()})
	stale := kept
	var wait sync.WaitGroup
	for range 5 {
		wait.Go(func() {
			if a, err := m.Access.Access(t.Context(), "/", "huggingface", stale, nil); err != nil || a.Token != "new-token" {
				t.Errorf("%+v %v", a, err)
			}
		})
	}
	wait.Wait()
	if asked != 1 || !strings.Contains(string(kept.Value), "refresh-1") {
		t.Errorf("asked %d times; %s", asked, kept.Value)
	}
	list := m.List(t.Context(), "/", false)
	found := false
	for _, x := range list {
		found = found || strings.HasPrefix(x.ID, "huggingface/") && strings.Contains(x.Origin, DeviceOwner)
	}
	if !found {
		t.Error("the models of the account are not listed")
	}
}

// deviceAccess is Access as the app has it.
type deviceAccess struct {
	m    *Models
	keep func(json.RawMessage) error
}

func (d deviceAccess) Access(ctx context.Context, cwd, id string, account keys.Account, _ []provider.Model) (Accessed, error) {
	return d.m.DeviceAccess(ctx, cwd, id, account, d.keep)
}
