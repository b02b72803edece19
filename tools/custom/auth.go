package custom

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/tools"
)

// The sign-ins of plugins: OpenCode's hook auth. A plugin signs in to an account, is given the tokens that it got, and says how requests to
// the provider's models are made with them; it may make them itself. Tokens are kept outside of the plugin, and only the plugin that
// signed in gets them.

// Accounts keeps what plugins sign in with. owner identifies a plugin, see SignIn.
type Accounts interface {
	// Account is what a plugin keeps for a provider, a JSON object of OpenCode's type Auth; nil: nothing.
	Account(provider, owner string) json.RawMessage
	SetAccount(provider, owner string, account json.RawMessage) error
}

// accountLimit is how long a plugin's loader may take. It may renew a token over a network.
const accountLimit = 30 * time.Second

// The client's methods that concern accounts. The first is OpenCode's; the worker calls the second for the function that loaders get.
const (
	clientSetAccount = "auth.set"
	clientAccount    = "pillion.account"
)

// SignIn is a plugin's sign-in to a provider.
type SignIn struct {
	Provider string         `json:"provider"`
	Methods  []SignInMethod `json:"methods"`
	Loader   bool           `json:"loader"` // it says how requests are made
	Owner    string         `json:"-"`      // the plugin: its package's name without a version, or its file
	host     *Host
}

// SignInMethod is one way to sign in.
type SignInMethod struct {
	Type      string         `json:"type"` // oauth, or api for a key
	Label     string         `json:"label"`
	Prompts   []SignInPrompt `json:"prompts"`
	Authorize bool           `json:"authorize"` // of api: the plugin turns the answers into a key
}

// SignInPrompt is a question to the person.
type SignInPrompt struct {
	Type        string         `json:"type"` // text or select
	Key         string         `json:"key"`
	Message     string         `json:"message"`
	Placeholder string         `json:"placeholder"`
	Options     []SignInOption `json:"options"`
}

// SignInOption is an answer to choose.
type SignInOption struct{ Label, Value, Hint string }

// Authorization is what the person does in a browser.
type Authorization struct {
	URL          string
	Instructions string
	Method       string // auto: the plugin notices the end itself; code: the person pastes a code
}

// SignIns returns the sign-ins of all plugins. It loads the plugins if needed.
func (h *Host) SignIns(ctx context.Context) []SignIn {
	h.ready(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []SignIn
	for _, s := range h.hooked {
		for _, in := range s.signIns {
			in.Owner, in.host = s.file.owner, h
			out = append(out, in)
		}
	}
	return out
}

// signedIn is the running plugin that owns a provider's account.
func (h *Host) signedIn(ctx context.Context, provider, owner string) (*source, error) {
	h.ready(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.hooked {
		if s.file.owner == owner && !s.over() && s.signsInTo(provider) {
			return s, nil
		}
	}
	return nil, fmt.Errorf("the account of %s belongs to the plugin %s, which is not loaded here; add it to plugin in pillion.jsonc, or sign in again with pillion auth login %s", provider, owner, provider)
}

// step sends one step of a sign-in to the plugin and decodes its answer into out.
func (in SignIn) step(ctx context.Context, step string, method int, more map[string]any, out any) error {
	s, err := in.host.signedIn(ctx, in.Provider, in.Owner)
	if err != nil {
		return err
	}
	message := map[string]any{"op": "auth", "step": step, "provider": in.Provider, "method": method}
	maps.Copy(message, more)
	raw, err := s.request(ctx, message)
	if err != nil {
		return fmt.Errorf("%w (plugin %s)", err, in.Owner)
	}
	return json.Unmarshal(raw, out)
}

// Wanted reports whether a prompt is to be asked, after the answers so far.
func (in SignIn) Wanted(ctx context.Context, method, prompt int, inputs map[string]string) (wanted bool, err error) {
	err = in.step(ctx, "wanted", method, map[string]any{"prompt": prompt, "inputs": inputs}, &wanted)
	return wanted, err
}

// Problem is what is wrong with an answer, in the plugin's words; "" when it is accepted.
func (in SignIn) Problem(ctx context.Context, method, prompt int, value string) (problem string, err error) {
	err = in.step(ctx, "validate", method, map[string]any{"prompt": prompt, "value": value}, &problem)
	return problem, err
}

// Authorize begins a sign-in of type oauth.
func (in SignIn) Authorize(ctx context.Context, method int, inputs map[string]string) (a Authorization, err error) {
	err = in.step(ctx, "authorize", method, map[string]any{"inputs": inputs}, &a)
	return a, err
}

// Finish ends a sign-in and keeps the account: after Authorize, with the code that the person pasted if there is one, or a sign-in of type
// api. It waits for the person as long as the plugin does.
func (in SignIn) Finish(ctx context.Context, method int, inputs map[string]string, code string) error {
	var said struct {
		Type     string
		Provider string
		Account  json.RawMessage
	}
	if err := in.step(ctx, "finish", method, map[string]any{"inputs": inputs, "code": code}, &said); err != nil {
		return err
	}
	if said.Type != "success" {
		return fmt.Errorf("the plugin %s could not sign in", in.Owner)
	}
	provider := cmp.Or(said.Provider, in.Provider)
	s, err := in.host.signedIn(ctx, provider, in.Owner) // a plugin keeps nothing for a provider that it does not name
	if err != nil {
		return err
	}
	return s.setAccount(provider, said.Account)
}

// signsInTo reports whether the file has a sign-in to a provider.
func (s *source) signsInTo(provider string) bool {
	return slices.ContainsFunc(s.signIns, func(in SignIn) bool { return in.Provider == provider })
}

// accountsOf is where this plugin's account of a provider is kept; the error says that it may have none.
func (s *source) accountsOf(provider string) (Accounts, error) {
	if s.host.o.Accounts == nil || !s.signsInTo(provider) {
		return nil, fmt.Errorf("the plugin has no sign-in to %q", provider)
	}
	return s.host.o.Accounts, nil
}

// setAccount keeps an account for this plugin.
func (s *source) setAccount(provider string, account json.RawMessage) error {
	kept, err := s.accountsOf(provider)
	if err != nil {
		return err
	}
	return kept.SetAccount(provider, s.file.owner, account)
}

// accountCall serves the client's methods for accounts; known is false for any other method.
func (s *source) accountCall(method string, raw json.RawMessage) (result any, known bool, err error) {
	var a struct {
		Path struct{ ID, ProviderID string }
		ID   string
		Body json.RawMessage
		Auth json.RawMessage
	}
	switch method {
	case clientSetAccount:
		if err := json.Unmarshal(raw, &a); err != nil {
			return nil, true, err
		}
		account := a.Body
		if len(account) == 0 {
			account = a.Auth
		}
		return true, true, s.setAccount(cmp.Or(a.Path.ID, a.Path.ProviderID, a.ID), account)
	case clientAccount:
		if err := json.Unmarshal(raw, &a); err != nil {
			return nil, true, err
		}
		kept, err := s.accountsOf(a.ID)
		if err != nil {
			return nil, true, err
		}
		return kept.Account(a.ID, s.file.owner), true, nil
	}
	return nil, false, nil
}

// Account is how requests to a provider's models are made with an account.
type Account struct {
	Key     string // its options apiKey, baseURL and headers; empty: not given
	BaseURL string
	Headers map[string]string
	// Transport sends requests through the plugin's own fetch; nil: it has none.
	Transport http.RoundTripper
	// Version differs between accounts, and between versions of the plugin.
	Version string
}

// Account asks the plugin that owns a provider's account how requests are made with it. provider is what its loader is shown, with the id
// and the models of the provider; it must encode to JSON.
func (h *Host) Account(ctx context.Context, id, owner string, provider any) (Account, error) {
	s, err := h.signedIn(ctx, id, owner)
	if err != nil {
		return Account{}, err
	}
	if h.o.Accounts == nil {
		return Account{}, errors.New("no accounts are kept")
	}
	kept := h.o.Accounts.Account(id, owner)
	if kept == nil {
		return Account{}, fmt.Errorf("not signed in to %s; run: pillion auth login %s", id, id)
	}
	version := s.accountVersion(kept)
	s.mu.Lock()
	a, ok := s.accounts[id]
	s.mu.Unlock()
	if ok && a.Version == version {
		return a, nil
	}
	ctx, cancel := context.WithTimeout(ctx, accountLimit)
	defer cancel()
	raw, err := s.request(ctx, map[string]any{"op": "auth", "step": "load", "provider": id, "info": provider})
	if err != nil {
		return Account{}, fmt.Errorf("the plugin %s does not say how %s is asked: %w", owner, id, err)
	}
	var said struct {
		APIKey  string            `json:"apiKey"`
		BaseURL string            `json:"baseURL"`
		Headers map[string]string `json:"headers"`
		Fetch   bool              `json:"fetch"`
	}
	if err := json.Unmarshal(raw, &said); err != nil {
		return Account{}, fmt.Errorf("the plugin %s: its loader's answer cannot be read: %w", owner, err)
	}
	a = Account{Key: said.APIKey, BaseURL: said.BaseURL, Headers: said.Headers, Version: version}
	if said.Fetch {
		a.Transport = &accountTransport{host: h, id: id, owner: owner, provider: provider}
	}
	// The loader may have renewed a token; the account is then another one than before, and equal to what it keeps now.
	if now := h.o.Accounts.Account(id, owner); now != nil {
		a.Version = s.accountVersion(now)
	}
	s.mu.Lock()
	if s.accounts == nil {
		s.accounts = map[string]Account{}
	}
	s.accounts[id] = a
	s.mu.Unlock()
	return a, nil
}

// accountVersion is Account.Version of what is kept.
func (s *source) accountVersion(kept json.RawMessage) string {
	sum := sha256.Sum256(kept)
	return s.unit + " " + hex.EncodeToString(sum[:8])
}

// request sends a message to the file's worker and returns its one answer. It waits as long as ctx does.
func (s *source) request(ctx context.Context, message map[string]any) (json.RawMessage, error) {
	defer s.enter()()
	id, answers := s.child.begin()
	defer s.child.forget(id)
	message["id"], message["unit"] = id, s.unit
	if err := s.child.send(message); err != nil {
		return nil, err
	}
	select {
	case m := <-answers:
		if m.Error != nil {
			return nil, m.Error
		}
		return m.Result, nil
	case <-s.gone:
		return nil, s.loss()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// accountTransport makes requests with a plugin's own fetch.
type accountTransport struct {
	host      *Host
	id, owner string
	provider  any
}

// maxFetchBody is how much of a request a plugin gets, in bytes: a message to the child is one line of JSON.
const maxFetchBody = maxLine / 2

// RoundTrip implements http.RoundTripper. The answer's body is streamed: the worker sends no more than a few pieces ahead of the reader, and
// stops when the body is closed or the request is cancelled.
func (t *accountTransport) RoundTrip(q *http.Request) (*http.Response, error) {
	var body []byte
	if q.Body != nil {
		var err error
		body, err = io.ReadAll(io.LimitReader(q.Body, maxFetchBody+1))
		_ = q.Body.Close()
		if err != nil {
			return nil, err
		}
		if len(body) > maxFetchBody {
			return nil, fmt.Errorf("the request is longer than the %d MiB that a plugin's fetch gets", maxFetchBody>>20)
		}
	}
	ctx := q.Context()
	// The file may have changed, or its code ended, since the account was loaded.
	if _, err := t.host.Account(ctx, t.id, t.owner, t.provider); err != nil {
		return nil, err
	}
	s, err := t.host.signedIn(ctx, t.id, t.owner)
	if err != nil {
		return nil, err
	}
	if err := t.host.o.reason(s.file.path).Check(); err != nil {
		return nil, err
	}
	headers := map[string]string{}
	// In lower case, as OpenCode's requests have them: a plugin that adds "authorization" replaces the one that is there.
	for name := range q.Header {
		headers[strings.ToLower(name)] = q.Header.Get(name)
	}
	leave := s.enter()
	id, answers := s.child.begin()
	b := &fetchBody{ctx: ctx, s: s, id: id, answers: answers, leave: leave}
	if err := s.child.send(map[string]any{"op": "fetch", "id": id, "unit": s.unit, "provider": t.id, "url": q.URL.String(), "method": q.Method, "headers": headers, "body": string(body)}); err != nil {
		b.finish()
		return nil, err
	}
	m, err := b.next()
	if err != nil {
		_ = b.Close()
		return nil, err
	}
	if m.Head == nil {
		_ = b.Close()
		return nil, errors.New("the plugin's fetch gave no answer")
	}
	resp := &http.Response{Status: fmt.Sprintf("%d %s", m.Head.Status, http.StatusText(m.Head.Status)), StatusCode: m.Head.Status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: b, ContentLength: -1, Request: q}
	for _, h := range m.Head.Headers {
		resp.Header.Add(h[0], h[1])
	}
	return resp, nil
}

// fetchBody is the body of an answer that a plugin's fetch gives. It has one reader.
type fetchBody struct {
	ctx     context.Context
	s       *source
	id      int64
	answers <-chan message
	leave   func()
	piece   bytes.Reader
	end     error // what Read returns after the last piece; nil: more may come
	closed  bool
}

// next is the next message of the answer; its error is the plugin's, or why there is none.
func (b *fetchBody) next() (message, error) {
	select {
	case m := <-b.answers:
		if m.Error != nil {
			return m, fmt.Errorf("the fetch of the plugin %s failed: %s", b.s.file.owner, tools.Cut(m.Error.Error(), 1<<10))
		}
		return m, nil
	case <-b.s.gone:
		return message{}, fmt.Errorf("the plugin %s ended during a request: %w", b.s.file.owner, b.s.loss())
	case <-b.ctx.Done():
		return message{}, b.ctx.Err()
	}
}

func (b *fetchBody) Read(p []byte) (int, error) {
	for b.piece.Len() == 0 {
		if b.end != nil {
			return 0, b.end
		}
		m, err := b.next()
		switch {
		case err != nil:
			b.end = err
		case m.Chunk != nil:
			b.piece.Reset(m.Chunk)
			// The worker may send another piece.
			_ = b.s.child.send(map[string]any{"op": "more", "id": b.id, "unit": b.s.unit})
		default:
			b.end = io.EOF
		}
	}
	return b.piece.Read(p)
}

// Close ends the request in the plugin, if its answer has not been read to the end.
func (b *fetchBody) Close() error {
	if !b.closed && b.end != io.EOF {
		_ = b.s.child.send(map[string]any{"op": "abort", "id": b.id, "unit": b.s.unit})
	}
	b.finish()
	return nil
}

// finish forgets the request.
func (b *fetchBody) finish() {
	if b.closed {
		return
	}
	b.closed = true
	if b.end == nil {
		b.end = errors.New("the body of the answer is closed")
	}
	b.s.child.forget(b.id)
	b.leave()
}
