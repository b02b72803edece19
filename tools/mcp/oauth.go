package mcp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/whole"
)

// OAuth is what is known of a client beforehand; empty fields are found out or registered. Without a ClientID Pillion
// registers itself at the authorization server (RFC 7591), and Scopes replace those that the server proposes.
type OAuth struct {
	ClientID     string
	ClientSecret string
	Scopes       []string
}

// signInError is returned when the server wants a sign-in, which needs a person and a browser. It ends the attempts to
// connect: trying again cannot help before a person has acted.
type signInError struct {
	server string
	more   []string // scopes that the present sign-in lacks
}

// Error begins in the middle of a sentence: the caller names the server. It ends with the
// command to run.
func (e *signInError) Error() string {
	if len(e.more) > 0 {
		return fmt.Sprintf("it wants more rights (%s) than you signed in with: pillion mcp login %s", tools.Cut(strings.Join(e.more, " "), 200), e.server)
	}
	return fmt.Sprintf("it wants you to sign in: pillion mcp login %s", e.server)
}

// signedIn is a sign-in as it is kept, in a file of its own that only its owner can read. It holds the endpoints as well,
// so that a refresh needs no discovery. Secret is the client's, not the person's.
type signedIn struct {
	URL      string        `json:"url"` // of the server; a token is for no other
	ClientID string        `json:"client_id"`
	Secret   string        `json:"client_secret,omitempty"`
	AuthURL  string        `json:"auth_url,omitempty"`
	TokenURL string        `json:"token_url"`
	Style    int           `json:"auth_style,omitempty"`
	Scopes   []string      `json:"scopes,omitempty"`
	Wanted   []string      `json:"wanted,omitempty"` // scopes that a call lacked; the next sign-in asks for them, too
	Token    *oauth2.Token `json:"token"`
}

// config is the stored client as the oauth2 package wants it.
func (in *signedIn) config() *oauth2.Config {
	return &oauth2.Config{ClientID: in.ClientID, ClientSecret: in.Secret, Scopes: in.Scopes,
		Endpoint: oauth2.Endpoint{AuthURL: in.AuthURL, TokenURL: in.TokenURL, AuthStyle: oauth2.AuthStyle(in.Style)}}
}

// signInFile is where the sign-in of one server is kept. Requests, and other processes, share it.
type signInFile struct {
	server string // its name
	url    string // its address
	dir    string // the state folder; empty: nothing is kept
	log    *slog.Logger

	mu sync.Mutex // held while the sign-in is looked at and refreshed
}

// path is named by the server's address, so that another server of the same name does not get the token. Empty without a state folder; reading an empty path then fails like a missing file.
func (f *signInFile) path() string {
	if f.dir == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(f.url))
	return filepath.Join(f.dir, "mcp-auth", tools.Name(f.server)+"-"+hex.EncodeToString(sum[:8])+".json")
}

// load reads what is kept, nil without it. The address is compared although it is part of the file's name: a token must
// never reach another server.
func (f *signInFile) load() *signedIn {
	raw, err := os.ReadFile(f.path())
	if err != nil {
		return nil
	}
	var in signedIn
	if json.Unmarshal(raw, &in) != nil || in.URL != f.url || in.Token == nil {
		return nil
	}
	return &in
}

// save keeps a sign-in; without a state folder it does nothing. The mode is 0600, because a refresh token is as
// good as a password.
func (f *signInFile) save(in *signedIn) error {
	path := f.path()
	if path == "" {
		return nil
	}
	raw, err := json.Marshal(in)
	if err != nil {
		return err
	}
	return whole.Write(path, raw, 0o600)
}

// keeping is a token source that stores each new token. Requests and other processes share a sign-in, and many servers
// accept a refresh token only once: so one request refreshes at a time, from what is stored at that moment.
type keeping struct {
	ctx  context.Context
	file *signInFile
	in   *signedIn // where nothing is kept in a file
}

// behind is how long another process's refresh may take to reach the file, once it has made ours fail. That process has
// its answer already and only writes it.
const behind = time.Second

// Token refreshes the token when it has expired and stores the new one: servers that rotate refresh tokens refuse the old
// one from then on. The file is read each time, because another process may have refreshed meanwhile. A token that cannot
// be stored is used all the same.
func (k *keeping) Token() (*oauth2.Token, error) {
	k.file.mu.Lock()
	defer k.file.mu.Unlock()
	in := k.file.load()
	if in == nil {
		in = k.in
	}
	t, err := in.config().TokenSource(k.ctx, in.Token).Token()
	if err != nil {
		return k.other(in.Token, err)
	}
	if in.Token == nil || t.AccessToken != in.Token.AccessToken {
		in.Token = t
		k.in = in
		if err := k.file.save(in); err != nil {
			k.file.log.Warn("mcp: the sign-in could not be kept", "server", k.file.server, "err", err)
		}
	}
	return t, nil
}

// other waits, at most a second, for the token of another process whose refresh came before ours. It returns failed, our own
// error, when there is none or when the server did not refuse the token but could not be reached.
func (k *keeping) other(old *oauth2.Token, failed error) (*oauth2.Token, error) {
	var refused *oauth2.RetrieveError
	// A server that could not be reached says nothing about the token, so waiting would only delay the error.
	if !errors.As(failed, &refused) {
		return nil, failed
	}
	for until := time.Now().Add(behind); ; {
		if in := k.file.load(); in != nil && in.Token.Valid() && in.Token.AccessToken != old.AccessToken {
			return in.Token, nil
		}
		if time.Now().After(until) {
			return nil, failed
		}
		select {
		case <-time.After(behind / 10):
		case <-k.ctx.Done():
			return nil, failed
		}
	}
}

// kept is an OAuth handler that uses the stored sign-in. It never opens a browser: connections are made in the background,
// when no person expects a page.
type kept struct{ file *signInFile }

// TokenSource is the stored sign-in; nil where there is none, and the request is then made
// without a token.
func (s kept) TokenSource(ctx context.Context) (oauth2.TokenSource, error) {
	in := s.file.load()
	if in == nil {
		return nil, nil
	}
	return &keeping{ctx: ctx, file: s.file, in: in}, nil
}

// Authorize is called when a server refuses a request. It never opens a browser: the error
// says which command signs in. Returning nil has the SDK repeat the request once; an error ends it. Challenges are those
// of RFC 6750, section 3.
func (s kept) Authorize(_ context.Context, _ *http.Request, r *http.Response) error {
	_ = r.Body.Close()
	var scopes []string
	var why string
	if challenges, err := oauthex.ParseWWWAuthenticate(r.Header.Values("WWW-Authenticate")); err == nil {
		for _, c := range challenges {
			if c.Scheme == "bearer" {
				scopes, why = append(scopes, strings.Fields(c.Params["scope"])...), cmp.Or(why, c.Params["error"])
			}
		}
	}
	if r.StatusCode == http.StatusForbidden && why != "insufficient_scope" {
		return nil // not a matter of signing in: the request is made again, and its answer says why
	}
	return &signInError{s.file.server, s.file.lacks(scopes, why)}
}

// lacks returns the scopes that the present sign-in does not have and stores them for the next Login. Only
// insufficient_scope names scopes that a next sign-in should ask for; a 401 means a missing or expired token.
func (f *signInFile) lacks(scopes []string, why string) (more []string) {
	if why != "insufficient_scope" {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	in := f.load()
	if in == nil {
		return nil
	}
	for _, s := range scopes {
		if !slices.Contains(in.Scopes, s) {
			more = append(more, s)
		}
	}
	if len(more) > 0 {
		in.Wanted = more
		if err := f.save(in); err != nil {
			f.log.Warn("mcp: the missing rights could not be kept", "server", f.server, "err", err)
		}
	}
	return more
}

// withWanted are the scopes found, those that were there before, and those that were missed since. Asking only for the
// missing ones would lose the rights of the present sign-in, which the next one replaces.
func (f *signInFile) withWanted(found []string) []string {
	in := f.load()
	if in == nil || len(in.Wanted) == 0 {
		return found
	}
	all := slices.Clone(found)
	for _, s := range slices.Concat(in.Scopes, in.Wanted) {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// stored is the OAuth handler of connections, nil where signing in is switched off.
func (v *server) stored() auth.OAuthHandler {
	if v.NoOAuth {
		return nil
	}
	return kept{v.signIn}
}

// loginMax is how long a person may take in the browser, a second factor included. A listener must not stay open for
// ever.
const loginMax = 5 * time.Minute // how long a person may take in the browser

// Login signs in to a server: open shows the person an address (in a browser), the answer comes back to a listener on
// loopback that takes nothing but this one answer. What was signed in before is replaced. It connects once, because the
// SDK signs in when a server refuses a request; the token is stored before the connection is used.
func (s *Set) Login(ctx context.Context, name string, open func(address string) error) error {
	v := s.find(name)
	if v == nil || v.URL == "" {
		return fmt.Errorf("%s is no remote MCP server of the configuration", name)
	}
	if v.NoOAuth {
		return fmt.Errorf("sign-in is switched off for %s (oauth: false)", name)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, loginMax, fmt.Errorf("no sign-in came back within %s", loginMax))
	defer cancel()
	// The address must be known before the client is registered, because it is part of the registration.
	back, err := newCallback()
	if err != nil {
		return err
	}
	defer back.close()
	c := &auth.AuthorizationCodeHandlerConfig{
		Client: v.plainClient(), RedirectURL: back.url, RequestRefreshToken: true,
		AuthorizationCodeFetcher: func(ctx context.Context, a *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			if err := open(a.URL); err != nil {
				return nil, err
			}
			return back.wait(ctx)
		},
		NewTokenSource: func(ctx context.Context, c *oauth2.Config, t *oauth2.Token) (oauth2.TokenSource, error) {
			in := &signedIn{URL: v.URL, ClientID: c.ClientID, Secret: c.ClientSecret, AuthURL: c.Endpoint.AuthURL, TokenURL: c.Endpoint.TokenURL,
				Style: int(c.Endpoint.AuthStyle), Scopes: c.Scopes, Token: t}
			if err := v.signIn.save(in); err != nil {
				return nil, fmt.Errorf("the sign-in could not be kept: %w", err)
			}
			return &keeping{ctx: ctx, file: v.signIn, in: in}, nil
		},
	}
	if o := v.OAuth; o != nil && o.ClientID != "" {
		c.PreregisteredClient = &oauthex.ClientCredentials{ClientID: o.ClientID}
		if o.ClientSecret != "" {
			c.PreregisteredClient.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: o.ClientSecret}
		}
	} else {
		// A native program cannot keep a secret, so it registers as a public client (RFC 8252, section 8.4) and relies on
		// PKCE.
		c.DynamicClientRegistrationConfig = &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			RedirectURIs: []string{back.url}, ClientName: "Pillion", GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"}, TokenEndpointAuthMethod: "none",
		}}
	}
	c.ScopeFilter = v.signIn.withWanted
	if o := v.OAuth; o != nil && len(o.Scopes) > 0 {
		c.ScopeFilter = func([]string) []string { return o.Scopes }
	}
	handler, err := auth.NewAuthorizationCodeHandler(c)
	if err != nil {
		return err
	}
	hc := v.httpClient()
	session, err := v.client().Connect(ctx, &sdk.StreamableClientTransport{Endpoint: v.URL, HTTPClient: hc, OAuthHandler: handler, DisableStandaloneSSE: true}, nil)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return err
	}
	return session.Close()
}

// Logout forgets a server's sign-in; false when there was none. The token is not revoked at the server, which may still
// accept it until it expires.
func (s *Set) Logout(name string) (bool, error) {
	v := s.find(name)
	if v == nil {
		return false, fmt.Errorf("no MCP server %q in the configuration", name)
	}
	err := os.Remove(v.signIn.path())
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// callback is the loopback listener that a sign-in comes back to.
type callback struct {
	url    string
	server *http.Server
	got    chan *auth.AuthorizationResult // room for one: the first answer counts
	failed chan error                     // likewise
}

// newCallback listens on a free port of 127.0.0.1, as RFC 8252 wants it for native programs. A request of another local
// program can at most spoil the sign-in: without the state that the SDK checks its code is refused.
func newCallback() (*callback, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("no address for the sign-in to come back to: %w", err)
	}
	c := &callback{url: fmt.Sprintf("http://%s/callback", l.Addr()), got: make(chan *auth.AuthorizationResult, 1), failed: make(chan error, 1)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /callback", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if e := q.Get("error"); e != "" {
			select {
			case c.failed <- fmt.Errorf("the sign-in was refused: %s %s", tools.Cut(e, 100), tools.Cut(q.Get("error_description"), 300)):
			default:
			}
			fmt.Fprintln(w, "The sign-in was refused. You can close this page and go back to Pillion.")
			return
		}
		select {
		case c.got <- &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}: // the state is checked by the SDK
		default:
		}
		fmt.Fprintln(w, "Signed in. You can close this page and go back to Pillion.")
	})
	// The bounds are for other local programs, which can reach the listener as well.
	c.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 16 << 10}
	go func() { _ = c.server.Serve(l) }()
	return c, nil
}

// wait returns when the browser has come back, the listener has failed, or ctx ends. The error is the cause of ctx where
// there is one, such as the time limit of Login.
func (c *callback) wait(ctx context.Context) (*auth.AuthorizationResult, error) {
	select {
	case r := <-c.got:
		return r, nil
	case err := <-c.failed:
		return nil, err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// close ends the listener after the page in the browser was sent.
func (c *callback) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second) // the page may still be on its way
	defer cancel()
	_ = c.server.Shutdown(ctx)
}
