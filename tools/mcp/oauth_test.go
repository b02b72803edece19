package mcp

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/oauth2"

	"github.com/pillion-dev/pillion/tools"
)

// provider is an MCP server with its authorization server: registration, PKCE, refresh.
type provider struct {
	*httptest.Server
	mu        sync.Mutex
	challenge string // guarded by mu
	access    string // guarded by mu: the token that counts
	refreshed int    // guarded by mu
	need      string // a scope that calls want besides
	scopes    string // guarded by mu: those that were asked for last
}

func newProvider(t *testing.T) *provider {
	p := &provider{access: "first"}
	server := testServer("all")
	mcp := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		ok, granted := r.Header.Get("Authorization") == "Bearer "+p.access, strings.Contains(p.scopes, p.need)
		p.mu.Unlock()
		if ok && !granted {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			if bytes.Contains(body, []byte(`"tools/call"`)) {
				w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer error="insufficient_scope", scope=%q`, p.need))
				http.Error(w, "more rights", http.StatusForbidden)
				return
			}
		}
		if !ok {
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer resource_metadata="%s/.well-known/oauth-protected-resource/mcp"`, p.URL))
			http.Error(w, "sign in", http.StatusUnauthorized)
			return
		}
		mcp.ServeHTTP(w, r)
	})
	mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"resource": p.URL + "/mcp", "authorization_servers": []string{p.URL}})
	})
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "registration_endpoint": p.URL + "/register",
			"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"}, "token_endpoint_auth_methods_supported": []string{"none"}})
	})
	mux.HandleFunc("/register", func(w http.ResponseWriter, r *http.Request) {
		var m map[string]any
		_ = json.NewDecoder(r.Body).Decode(&m)
		m["client_id"] = "registered"
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(m)
	})
	mux.HandleFunc("/authorize", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		p.mu.Lock()
		p.challenge, p.scopes = q.Get("code_challenge"), q.Get("scope")
		p.mu.Unlock()
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {"the-code"}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		p.mu.Lock()
		defer p.mu.Unlock()
		switch r.Form.Get("grant_type") {
		case "authorization_code":
			sum := sha256.Sum256([]byte(r.Form.Get("code_verifier")))
			if r.Form.Get("code") != "the-code" || base64.RawURLEncoding.EncodeToString(sum[:]) != p.challenge {
				http.Error(w, `{"error":"invalid_grant"}`, http.StatusBadRequest)
				return
			}
			answer(w, map[string]any{"access_token": p.access, "token_type": "Bearer", "refresh_token": "again", "expires_in": 1})
		case "refresh_token":
			if r.Form.Get("refresh_token") != "again" || r.Form.Get("client_id") != "registered" {
				http.Error(w, `{"error":"invalid_grant"}`, http.StatusBadRequest)
				return
			}
			p.refreshed++
			p.access = fmt.Sprintf("refreshed-%d", p.refreshed)
			answer(w, map[string]any{"access_token": p.access, "token_type": "Bearer", "refresh_token": "again", "expires_in": 3600})
		}
	})
	p.Server = httptest.NewServer(mux)
	t.Cleanup(func() { p.CloseClientConnections(); p.Close() })
	return p
}

func TestSignIn(t *testing.T) {
	p := newProvider(t)
	state := t.TempDir()
	var notices []string
	make := func() *Set {
		return New(Options{Root: t.TempDir(), StateDir: state, Servers: []Server{{Name: "web", URL: p.URL + "/mcp"}}, Notice: func(_, s string) { notices = append(notices, s) }})
	}
	s := started(t, make())
	if st := s.Statuses()[0]; st.State != SignIn || len(notices) != 1 || !strings.Contains(notices[0], "pillion mcp login web") {
		t.Fatalf("%+v %q", st, notices)
	}
	s.Close(t.Context())

	login := make()
	err := login.Login(t.Context(), "web", func(address string) error { // the person's browser
		r, err := http.Get(address)
		if err == nil {
			_ = r.Body.Close()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	file := login.find("web").signIn.path()
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v", info, err)
	}

	// A new process: the kept token has run out and is refreshed, and the new one is kept.
	s = started(t, make())
	if r, err := run(t, s, "web_echo_it", `{"text":"signed in"}`, tools.Host{}); err != nil || r.Output != "signed in" {
		t.Fatalf("%q %v %+v", r.Output, err, s.Statuses())
	}
	raw, _ := os.ReadFile(file)
	if !strings.Contains(string(raw), "refreshed-") {
		t.Errorf("the refreshed token is not kept: %s", raw)
	}
	s.Close(t.Context())
	if there, err := login.Logout("web"); !there || err != nil {
		t.Error(there, err)
	}
	if there, err := login.Logout("web"); there || err != nil {
		t.Error(there, err)
	}
}

func TestARefreshTokenThatCountsOnceIsUsedOnce(t *testing.T) {
	state := t.TempDir()
	var mu sync.Mutex
	used, another := 0, false // another process is quicker
	var v *server
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		mu.Lock()
		defer mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		if another {
			in := v.signIn.load()
			in.Token = &oauth2.Token{AccessToken: "theirs", RefreshToken: "r9", Expiry: time.Now().Add(time.Hour)}
			if err := v.signIn.save(in); err != nil {
				t.Error(err)
			}
		}
		if another || r.Form.Get("refresh_token") != fmt.Sprintf("r%d", used) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"error":"invalid_grant"}`))
			return
		}
		used++
		_ = json.NewEncoder(w).Encode(map[string]any{"access_token": fmt.Sprintf("a%d", used), "token_type": "Bearer", "refresh_token": fmt.Sprintf("r%d", used), "expires_in": 3600})
	}))
	defer tokens.Close()
	s := New(Options{StateDir: state, Servers: []Server{{Name: "web", URL: "https://mcp.example/mcp"}}})
	v = s.find("web")
	spent := &signedIn{URL: v.URL, ClientID: "c", TokenURL: tokens.URL, Style: int(oauth2.AuthStyleInParams), Token: &oauth2.Token{AccessToken: "old", RefreshToken: "r0", Expiry: time.Now().Add(-time.Hour)}}
	if err := v.signIn.save(spent); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 16 {
		source, err := kept{v.signIn}.TokenSource(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			if got, err := source.Token(); err != nil || got.AccessToken != "a1" {
				t.Errorf("%v %v", got, err)
			}
		})
	}
	wg.Wait()
	mu.Lock()
	another = true
	mu.Unlock()
	if err := v.signIn.save(spent); err != nil {
		t.Fatal(err)
	}
	source, _ := kept{v.signIn}.TokenSource(t.Context())
	if got, err := source.Token(); err != nil || got.AccessToken != "theirs" {
		t.Errorf("%v %v", got, err)
	}
}

func TestASignInThatIsRefused(t *testing.T) {
	p := newProvider(t)
	s := New(Options{StateDir: t.TempDir(), Servers: []Server{{Name: "web", URL: p.URL + "/mcp"}, {Name: "local", Command: []string{"true"}}}})
	err := s.Login(t.Context(), "web", func(address string) error {
		u, _ := url.Parse(address)
		r, err := http.Get(u.Query().Get("redirect_uri") + "?error=access_denied&error_description=no+thanks")
		if err == nil {
			_ = r.Body.Close()
		}
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "access_denied no thanks") {
		t.Error(err)
	}
	err = s.Login(t.Context(), "web", func(address string) error { // somebody else's answer: a state that we did not make
		u, _ := url.Parse(address)
		r, err := http.Get(u.Query().Get("redirect_uri") + "?code=evil&state=guessed")
		if err == nil {
			_ = r.Body.Close()
		}
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "state") {
		t.Error(err)
	}
	if err := s.Login(t.Context(), "local", nil); err == nil {
		t.Error("a local server signed in")
	}
}
