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

// OAuth holds the settings of a sign-in. Without a ClientID Pillion registers itself at the authorization server (dynamic client
// registration, RFC 7591).
type OAuth struct {
	ClientID     string
	ClientSecret string
	Scopes       []string // not empty: asked for instead of those that the server proposes
}

// signInError means that the server requires a sign-in, which needs a person and a browser. It ends the attempts to connect: a retry cannot
// help before the person has signed in.
type signInError struct {
	server string
	more   []string // scopes that the present sign-in lacks
}

// Error continues a sentence in which the caller names the server, and ends with the command to run.
func (e *signInError) Error() string {
	if len(e.more) > 0 {
		return fmt.Sprintf("it needs more rights (%s) than you signed in with: pillion mcp login %s", tools.Cut(strings.Join(e.more, " "), 200), e.server)
	}
	return fmt.Sprintf("it needs you to sign in: pillion mcp login %s", e.server)
}

// signedIn is a stored sign-in, the JSON of a file that only its owner can read. It includes the endpoints, so that a refresh needs no
// discovery. Secret is the client's, not the person's.
type signedIn struct {
	URL      string        `json:"url"` // the server's address; the token is sent to no other
	ClientID string        `json:"client_id"`
	Secret   string        `json:"client_secret,omitempty"`
	AuthURL  string        `json:"auth_url,omitempty"`
	TokenURL string        `json:"token_url"`
	Style    int           `json:"auth_style,omitempty"`
	Scopes   []string      `json:"scopes,omitempty"`
	Wanted   []string      `json:"wanted,omitempty"` // scopes that a request lacked; the next sign-in asks for them too
	Token    *oauth2.Token `json:"token"`
}

// config returns the stored client in the form of package oauth2.
func (in *signedIn) config() *oauth2.Config {
	return &oauth2.Config{ClientID: in.ClientID, ClientSecret: in.Secret, Scopes: in.Scopes,
		Endpoint: oauth2.Endpoint{AuthURL: in.AuthURL, TokenURL: in.TokenURL, AuthStyle: oauth2.AuthStyle(in.Style)}}
}

// signInFile stores the sign-in of one server. All requests share it, and so do other processes; mu serialises only those of this process.
type signInFile struct {
	server string // its name
	url    string // its address
	dir    string // the state folder; empty: nothing is stored
	log    *slog.Logger

	mu sync.Mutex // held from reading the sign-in until it is refreshed and stored, so that one request at a time refreshes it
}

// path returns the file of the sign-in. Its name includes a hash of the server's address, so that another server of the same name does not
// get the token. It is "" without a state folder; reading "" fails like reading a missing file.
func (f *signInFile) path() string {
	if f.dir == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(f.url))
	return filepath.Join(f.dir, "mcp-auth", tools.Name(f.server)+"-"+hex.EncodeToString(sum[:8])+".json")
}

// load reads the stored sign-in; nil if there is none. It compares the address although the file's name depends on it, because a token must
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

// save stores a sign-in; without a state folder it does nothing. The mode is 0600, because a refresh token is as good as a password.
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

// keeping is a token source that stores each new token. Many servers accept a refresh token only once, so no request or process may refresh
// with an outdated one: each refresh starts from what is stored at that moment.
type keeping struct {
	ctx  context.Context
	file *signInFile
	in   *signedIn // guarded by file.mu; the sign-in when there is no state folder and so no file
}

// behind is how long to wait for the token of another process whose refresh has made this one's fail. That process has the server's answer
// by then and only has to write the file.
const behind = time.Second

// Token implements oauth2.TokenSource. It refreshes an expired token and stores the new one, because a server that rotates refresh tokens
// refuses the old one from then on. It reads the file each time, because another process may have refreshed the token. A token that cannot
// be stored is still used.
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
	// Only a refreshed token is stored; a valid one is returned unchanged.
	if in.Token == nil || t.AccessToken != in.Token.AccessToken {
		in.Token = t
		k.in = in
		if err := k.file.save(in); err != nil {
			k.file.log.Warn("mcp: the sign-in could not be saved", "server", k.file.server, "err", err)
		}
	}
	return t, nil
}

// other waits, at most behind, for the token of another process that has refreshed first. Without one it returns failed, this process's own
// error; it returns at once if the server did not refuse the token.
func (k *keeping) other(old *oauth2.Token, failed error) (*oauth2.Token, error) {
	var refused *oauth2.RetrieveError
	// Other errors, such as a server that cannot be reached, say nothing about the token.
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

// kept is an OAuth handler that uses the stored sign-in. It never opens a browser: connections are made in the background, when no person
// expects a page.
type kept struct{ file *signInFile }

// TokenSource returns the stored sign-in; nil if there is none, and the SDK then sends the request without a token.
func (s kept) TokenSource(ctx context.Context) (oauth2.TokenSource, error) {
	in := s.file.load()
	if in == nil {
		return nil, nil
	}
	return &keeping{ctx: ctx, file: s.file, in: in}, nil
}

// Authorize is called by the SDK when a server refuses a request with 401 or 403. An error ends the request and names the command that
// signs in; nil makes the SDK repeat the request once. The challenges are those of RFC 6750, section 3.
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
		return nil // a sign-in would not help; the repeated request fails with the server's own reason
	}
	return &signInError{s.file.server, s.file.lacks(scopes, why)}
}

// lacks returns the scopes that the stored sign-in lacks, and stores them for the next Login. why is the challenge's error: only
// insufficient_scope means missing scopes; a 401 means a missing or expired token.
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
			f.log.Warn("mcp: the missing rights could not be saved", "server", f.server, "err", err)
		}
	}
	return more
}

// withWanted adds to the scopes that the server proposes those of the stored sign-in and those found missing since. Requesting only the
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

// stored returns the OAuth handler for connections; nil if sign-in is turned off.
func (v *server) stored() auth.OAuthHandler {
	if v.NoOAuth {
		return nil
	}
	return kept{v.signIn}
}

// loginMax is how long a person may take in the browser, including a second factor. After that the listener closes.
const loginMax = 5 * time.Minute

// Login signs in to a server and replaces an earlier sign-in. open shows an address to the person, usually in a browser; the answer arrives
// at a loopback listener that accepts only this answer. Login makes a connection, because the SDK signs in when a server refuses a request;
// NewTokenSource stores the token.
func (s *Set) Login(ctx context.Context, name string, open func(address string) error) error {
	v := s.find(name)
	if v == nil || v.URL == "" {
		return fmt.Errorf("%s is not a remote MCP server of the configuration", name)
	}
	if v.NoOAuth {
		return fmt.Errorf("sign-in is turned off for %s (oauth: false)", name)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, loginMax, fmt.Errorf("the sign-in did not finish within %s", loginMax))
	defer cancel()
	// Open the listener first: its address is part of the client's registration.
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
				return nil, fmt.Errorf("the sign-in could not be saved: %w", err)
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
	// Configured scopes replace all others, including those that were missing.
	c.ScopeFilter = v.signIn.withWanted
	if o := v.OAuth; o != nil && len(o.Scopes) > 0 {
		c.ScopeFilter = func([]string) []string { return o.Scopes }
	}
	handler, err := auth.NewAuthorizationCodeHandler(c)
	if err != nil {
		return err
	}
	hc := v.httpClient()
	// The connection is only for the sign-in and needs no event stream.
	session, err := v.client().Connect(ctx, &sdk.StreamableClientTransport{Endpoint: v.URL, HTTPClient: hc, OAuthHandler: handler, DisableStandaloneSSE: true}, nil)
	if err != nil {
		// The cause names the time limit.
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return err
	}
	return session.Close()
}

// Logout deletes a server's stored sign-in; false if there is none. It does not revoke the token, which the server may accept until it
// expires.
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

// callback is the loopback listener to which the browser returns with the sign-in's answer.
type callback struct {
	url    string
	server *http.Server
	got    chan *auth.AuthorizationResult // buffer of one: the first answer counts, and later ones do not block
	failed chan error                     // buffer of one, likewise
}

// newCallback listens on a free port of 127.0.0.1, as RFC 8252, section 7.3, recommends for native programs. A request of another local
// program can at most make the sign-in fail: it does not know the state parameter, which the SDK checks.
func newCallback() (*callback, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("no address for the sign-in's redirect: %w", err)
	}
	c := &callback{url: fmt.Sprintf("http://%s/callback", l.Addr()), got: make(chan *auth.AuthorizationResult, 1), failed: make(chan error, 1)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /callback", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		// The error response of RFC 6749, section 4.1.2.1. Its texts come from outside, so they are cut.
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
	// Limits against other local programs, which can reach the listener too.
	c.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 16 << 10}
	go func() { _ = c.server.Serve(l) }()
	return c, nil
}

// wait returns the answer, or an error when the sign-in was refused or ctx has ended; the error is then the cause of ctx, such as Login's
// time limit.
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

// close closes the listener. It allows a second for a page that is being sent to the browser.
func (c *callback) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = c.server.Shutdown(ctx)
}
