// Package web fetches pages and asks search engines. It connects only to public addresses, and to private ones that a rule allows;
// it checks the address when it connects. The caller decides whether to follow a redirect to another host. Answers are limited
// before and after decompression and become Markdown, plain text, or an image.
//
//	c := web.New(web.Options{Version: "1.0"})
//	page, err := c.Fetch(ctx, web.Request{URL: "https://go.dev/doc/", Format: web.Markdown})
package web

import (
	"syscall"

	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/html/charset"

	"github.com/pillion-dev/pillion/tools/guard"
)

// Limits of one fetch; the figures are OpenCode's. MaxBody bounds what is read and decoded, so a small compressed answer
// cannot fill the memory. MaxTimeout is the most that a model may ask for.
const (
	MaxBody        = 5 << 20 // bytes, uncompressed
	DefaultTimeout = 30 * time.Second
	MaxTimeout     = 120 * time.Second
	maxRedirects   = 10
	maxURL         = 8 << 10 // bytes; servers refuse longer ones too
)

// Format is the format of a fetched page.
type Format string

// The formats.
const (
	Markdown Format = "markdown"
	Text     Format = "text"
	HTML     Format = "html"
)

// Options configure a Client.
type Options struct {
	Version string                                // in the User-Agent
	Allow   Allow                                 // private places that the person allows for every fetch
	Proxy   func(*http.Request) (*url.URL, error) // nil: the proxy of the environment
}

// Client fetches pages. It is safe for concurrent use.
type Client struct {
	o    Options
	http *http.Client // its transport checks each connection; it follows no redirects
}

// New returns a client; it connects to nothing.
func New(o Options) *Client {
	if o.Proxy == nil {
		o.Proxy = http.ProxyFromEnvironment
	}
	c := &Client{o: o}
	// It runs for each address that is dialled, after its name was resolved; see check.
	control := func(ctx context.Context, network, address string, conn syscall.RawConn) error {
		if _, ok := ctx.Value(proxyKey{}).(bool); ok {
			return nil
		}
		return check(ctx, network, address, conn)
	}
	c.http = guard.Client(guard.Reason{Who: guard.Web}, guard.Network{Timeout: 15 * time.Second, Control: control, Proxy: o.Proxy, Tune: func(t *http.Transport) {
		t.TLSHandshakeTimeout, t.MaxResponseHeaderBytes, t.ForceAttemptHTTP2 = 15*time.Second, 256<<10, false
		t.DisableKeepAlives = true // each fetch is checked: a connection that was allowed for one fetch must not be used by the next
	}})
	// Redirects are followed by hand (see follow), because each new address needs its own target in the context and may need
	// approval.
	c.http.CheckRedirect = guard.NoRedirects
	return c
}

// proxyKey marks requests that go through a proxy. The address that is dialled is the proxy's, which may be private; ahead has
// checked the page's address. A request without a proxy must not carry it, because it turns check off.
type proxyKey struct{}

// Request says what to fetch.
type Request struct {
	URL     string
	Format  Format        // empty: Markdown
	Timeout time.Duration // 0: DefaultTimeout; at most MaxTimeout
	Allow   Allow         // besides the client's, for this fetch
	// Redirect is called before a redirect to another host is followed; its error ends the fetch. nil: such redirects are refused.
	Redirect func(ctx context.Context, from, to string) error
}

// Page is a fetched page. Its text is not trusted: callers must mark it as foreign for the model, because a page may contain
// instructions for it.
type Page struct {
	URL   string // the address after all redirects
	Mime  string
	Title string
	Text  string // in the format asked for; empty for an image or a PDF
	Data  []byte // an image or a PDF
	Bytes int    // of the body, uncompressed
}

// Clean checks an address of at most 8 KiB and completes it: https if there is no scheme, no fragment. An address with a user name
// and password is refused: they would be stored in the event log, and user@host makes one host look like another.
func Clean(raw string) (*url.URL, error) {
	raw = strings.TrimSpace(raw)
	if len(raw) > maxURL {
		return nil, fmt.Errorf("the address is %d bytes long, the limit is %d", len(raw), maxURL)
	}
	if raw != "" && !strings.Contains(raw, "://") {
		raw = "https://" + raw
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%q is no web address", raw)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("%q: only http and https are fetched", raw)
	case u.Hostname() == "":
		return nil, fmt.Errorf("%q has no host", raw)
	case u.User != nil:
		return nil, fmt.Errorf("%q has a name and password in it; leave them out", u.Redacted())
	}
	// A fragment is never sent, so two addresses that differ only in it are one page.
	u.Fragment = ""
	return u, nil
}

// Fetch fetches a page; the timeout is for all redirects together. An http address is tried as https first, unless a rule allows
// its host by name or it has a port; if no connection is possible, http is used. Statuses other than 2xx, binary content and bodies
// over MaxBody are errors that tell the model the next step. A private address is a *PrivateError. Errors name the host or address,
// never the body.
func (c *Client) Fetch(ctx context.Context, r Request) (*Page, error) {
	u, err := Clean(r.URL)
	if err != nil {
		return nil, err
	}
	limit := min(cmp.Or(r.Timeout, DefaultTimeout), MaxTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%s did not answer within %s", u.Host, limit))
	defer cancel()
	// The full slice expression makes append copy, so that the caller's list does not get the client's rules.
	r.Allow = append(r.Allow[:len(r.Allow):len(r.Allow)], c.o.Allow...)
	page, err := c.follow(ctx, upgraded(u, r.Allow), r)
	var private *PrivateError
	// A private address is not tried again: it would be refused the same way.
	if err != nil && u.Scheme == "http" && ctx.Err() == nil && !errors.As(err, &private) && isConnection(err) {
		page, err = c.follow(ctx, u, r)
	}
	// The cause names the host and the limit; "context deadline exceeded" does not.
	if err != nil && context.Cause(ctx) != nil && ctx.Err() == context.DeadlineExceeded {
		return nil, context.Cause(ctx)
	}
	return page, err
}

// upgraded is the https form of an http address. An address with a port, or of a private place, stays http: a development server
// rarely has TLS, and it usually has a port.
func upgraded(u *url.URL, allow Allow) *url.URL {
	t := targetOf(u, nil)
	if u.Scheme != "http" || u.Port() != "" || allow.named(t.host) {
		return u
	}
	s := *u
	s.Scheme = "https"
	return &s
}

// named reports whether a rule names the host: the person then means this host, even without TLS. A CIDR range does not count,
// because it names no host.
func (a Allow) named(host string) bool {
	for _, rule := range a {
		name, _, err := net.SplitHostPort(rule)
		if err != nil {
			name = rule
		}
		if strings.EqualFold(name, host) {
			return true
		}
	}
	return false
}

// isConnection reports whether the error occurred before there was an answer: only then may http be tried after https. An answer
// with any status is final.
func isConnection(err error) bool {
	var u *url.Error
	return errors.As(err, &u)
}

// follow fetches an address and follows its redirects. Each step is checked again: a public page may redirect to a private address,
// and an allowed host to another one.
func (c *Client) follow(ctx context.Context, u *url.URL, r Request) (*Page, error) {
	for range maxRedirects {
		resp, err := c.get(ctx, u, r)
		if err != nil {
			return nil, err
		}
		next, err := resp.Location()
		if resp.StatusCode/100 != 3 || err != nil {
			defer resp.Body.Close()
			return read(resp, r.Format)
		}
		_ = resp.Body.Close()
		if next, err = Clean(next.String()); err != nil {
			return nil, fmt.Errorf("%s redirects: %w", u.Host, err)
		}
		// With http, anyone on the network path could read the request and change the answer.
		if u.Scheme == "https" && next.Scheme == "http" && !r.Allow.named(next.Hostname()) {
			return nil, fmt.Errorf("%s redirects to an address without encryption, %s; fetch that one if you want it", u.Host, next)
		}
		if !sameHost(u, next) {
			if r.Redirect == nil {
				return nil, fmt.Errorf("%s redirects to another host, %s; fetch that one if you want it", u.Host, next)
			}
			if err := r.Redirect(ctx, u.String(), next.String()); err != nil {
				return nil, err
			}
		}
		u = next
	}
	return nil, fmt.Errorf("%s redirects more than %d times", u.Host, maxRedirects)
}

// sameHost ignores a leading www. and the change from http to https. Anything else is another host, even a subdomain: on shared hosting it
// may belong to someone else.
func sameHost(a, b *url.URL) bool {
	bare := func(u *url.URL) string { return strings.TrimPrefix(strings.ToLower(u.Hostname()), "www.") }
	return bare(a) == bare(b) && (a.Port() == b.Port() || a.Port() == "" && b.Port() == "")
}

// accepts are the Accept headers. Some sites answer with Markdown if it is preferred; that is shorter than what can be made from
// their HTML.
var accepts = map[Format]string{
	Markdown: "text/markdown;q=1.0, text/html;q=0.9, text/plain;q=0.8, image/*;q=0.5, */*;q=0.1",
	Text:     "text/plain;q=1.0, text/html;q=0.9, */*;q=0.1",
	HTML:     "text/html;q=1.0, application/xhtml+xml;q=0.9, text/plain;q=0.8, */*;q=0.1",
}

// get sends one request. It sends no cookies and no credentials, so a page cannot see who the person is.
func (c *Client) get(ctx context.Context, u *url.URL, r Request) (*http.Response, error) {
	ctx = context.WithValue(ctx, targetKey{}, targetOf(u, r.Allow))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	// With a proxy the address of the page is not dialled here, so it is checked before.
	if p, err := c.o.Proxy(req); err == nil && p != nil {
		if err := ahead(ctx, targetOf(u, r.Allow)); err != nil {
			return nil, err
		}
		req = req.WithContext(context.WithValue(ctx, proxyKey{}, true))
	}
	req.Header.Set("User-Agent", "Pillion/"+cmp.Or(c.o.Version, "dev"))
	req.Header.Set("Accept", accepts[cmp.Or(r.Format, Markdown)])
	req.Header.Set("Accept-Language", "en-US,en;q=0.9")
	return c.http.Do(req)
}

// read reads the body, at most MaxBody bytes after decompression. The length in the header is only a claim: a large one ends the
// fetch early, a small one proves nothing.
func read(resp *http.Response, f Format) (*Page, error) {
	if resp.StatusCode/100 != 2 {
		return nil, fmt.Errorf("%s answers %s", resp.Request.URL, resp.Status)
	}
	if resp.ContentLength > MaxBody {
		return nil, tooLarge(resp.Request.URL)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, MaxBody+1))
	if err != nil {
		return nil, fmt.Errorf("%s broke off: %w", resp.Request.URL.Host, err)
	}
	if len(body) > MaxBody {
		return nil, tooLarge(resp.Request.URL)
	}
	if e := resp.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") { // gzip was decoded before; no other encoding was requested
		return nil, fmt.Errorf("%s is encoded with %s, which was not requested; download it with a command if you need it", resp.Request.URL, e)
	}
	kind := resp.Header.Get("Content-Type")
	if kind == "" {
		kind = http.DetectContentType(body)
	}
	media, _, err := mime.ParseMediaType(kind)
	if err != nil {
		media, _, _ = strings.Cut(kind, ";")
		media = strings.ToLower(strings.TrimSpace(media))
	}
	p := &Page{URL: resp.Request.URL.String(), Mime: media, Bytes: len(body)}
	switch {
	case media == "image/png", media == "image/jpeg", media == "image/gif", media == "image/webp", media == "application/pdf":
		if is := http.DetectContentType(body); strings.HasPrefix(is, "text/html") { // otherwise the model's provider would refuse the whole request
			return nil, fmt.Errorf("%s is declared as %s but is %s", p.URL, media, is)
		}
		p.Data = body
		return p, nil
	case !textual(media):
		return nil, fmt.Errorf("%s is %s (%d bytes), which cannot be shown as text; download it with a command if you need it", p.URL, media, len(body))
	}
	// Servers send binaries as text/plain if they do not know the extension; a NUL in the first KiB shows that it is binary.
	if bytes.IndexByte(body[:min(len(body), 1024)], 0) >= 0 && !strings.Contains(strings.ToLower(kind), "utf-16") && !utf16Mark(body) {
		return nil, fmt.Errorf("%s is declared as %s but is binary (%d bytes); download it with a command if you need it", p.URL, media, len(body))
	}
	if r, err := charset.NewReader(strings.NewReader(string(body)), kind); err == nil {
		// One byte of an older encoding becomes at most three bytes of UTF-8.
		if decoded, err := io.ReadAll(io.LimitReader(r, 3*MaxBody)); err == nil {
			body = decoded
		}
	}
	text := strings.ToValidUTF8(string(body), "\uFFFD")
	if media == "text/html" || media == "application/xhtml+xml" {
		return p.render(text, cmp.Or(f, Markdown))
	}
	p.Text = text
	return p, nil
}

// utf16Mark reports a byte order mark of UTF-16. Such a text contains zero bytes although it is not binary.
func utf16Mark(b []byte) bool {
	return bytes.HasPrefix(b, []byte{0xfe, 0xff}) || bytes.HasPrefix(b, []byte{0xff, 0xfe})
}

// tooLarge is the error for a body over MaxBody.
func tooLarge(u *url.URL) error {
	return fmt.Errorf("%s is larger than the limit of %d bytes; look for a smaller page or download it with a command", u, MaxBody)
}

// textual reports whether a media type is text for a model. SVG counts as text: models can read its source, and providers do not
// accept it as an image.
func textual(media string) bool {
	if strings.HasPrefix(media, "text/") || strings.HasSuffix(media, "+json") || strings.HasSuffix(media, "+xml") {
		return true
	}
	switch media {
	case "application/json", "application/xml", "application/javascript", "application/x-javascript", "application/ecmascript", "application/yaml", "application/x-yaml", "application/toml",
		"application/x-sh", "application/x-ndjson", "application/sql", "application/graphql", "application/rtf", "application/x-tex", "application/typescript", "image/svg+xml":
		return true
	}
	return false
}
