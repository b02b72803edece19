package provider

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// post sends a request and returns the response whose body is the stream.
func (b *base) post(ctx context.Context, req *Request, to *url.URL, header http.Header, body ...[]byte) (*http.Response, error) {
	q, err := newPost(ctx, req, to, header, body...)
	if err != nil {
		return nil, err
	}
	return b.send(q)
}

// newPost makes a request that send takes. The headers of the model and of the request are added to header; later ones win. The body is
// given in parts, which are not changed: joining them would copy the whole conversation at each step.
func newPost(ctx context.Context, req *Request, to *url.URL, header http.Header, body ...[]byte) (*http.Request, error) {
	for _, more := range []map[string]string{req.Model.Headers, req.Headers} {
		for k, v := range more {
			header.Set(k, v)
		}
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), nil)
	if err != nil {
		return nil, err
	}
	q.Header = header
	for _, part := range body {
		q.ContentLength += int64(len(part))
	}
	// GetBody lets net/http read the body once more after a redirect, or where a kept connection was closed meanwhile.
	q.GetBody = func() (io.ReadCloser, error) {
		parts := net.Buffers(slices.Clone(body)) // reading takes them from the list
		return io.NopCloser(&parts), nil
	}
	q.Body, _ = q.GetBody()
	return q, nil
}

// send sends a request and returns the response whose body is the stream. It repeats nothing: the agent does, and shows it. A failure
// that the server reports is an *apiFailure; other errors are of the network.
func (b *base) send(q *http.Request) (*http.Response, error) {
	resp, err := b.httpClient().Do(q)
	if err != nil {
		return nil, err
	}
	// A redirect that net/http does not follow, such as one without a Location, is no answer either.
	if resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	// What has come of a body that breaks off is used: the status alone says a lot.
	said, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	return nil, parseFailure(resp.StatusCode, resp.Header, said)
}

// newHeader makes the header of a request: that of the format in pairs of name and value, of which those without a value are left out,
// then the configuration's headers. post adds those of the model and of the request. A later value replaces an earlier one, so what a
// person writes wins over a key from the environment.
func (b *base) newHeader(own ...string) http.Header {
	header := http.Header{"Content-Type": {"application/json"}, "User-Agent": {"Pillion"}}
	for i := 0; i+1 < len(own); i += 2 {
		if own[i+1] != "" {
			header.Set(own[i], own[i+1])
		}
	}
	for k, v := range b.cfg.Headers {
		header.Set(k, v)
	}
	return header
}

// bearer is the value of Authorization for a token; empty without one.
func bearer(token string) string {
	if token == "" {
		return ""
	}
	return "Bearer " + token
}

// joinURL appends an escaped path to an address. The address keeps its own path, in which a gateway may have a second address with
// "//", and its query.
func joinURL(address, path string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	escaped := strings.TrimRight(u.EscapedPath(), "/") + "/" + path
	u.Path, err = url.PathUnescape(escaped)
	u.RawPath = escaped
	return u, err
}

// pathSegment escapes a name so that it stays one segment of a path: a name of dots alone would be read as a way upwards.
func pathSegment(name string) string {
	if name == "." || name == ".." {
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return url.PathEscape(name)
}
