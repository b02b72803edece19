package guard

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"
)

// Network is how connections are made. The zero value connects like net/http does: through the environment's proxy, with
// 30 seconds for a connection and 10 for its handshake. The authorities of NODE_EXTRA_CA_CERTS count beside the system's.
type Network struct {
	Timeout time.Duration // to connect; 0: 30 seconds
	// Control judges the address that a name stands for, just before it is dialled; nil: every address is fine.
	Control func(ctx context.Context, network, address string, c syscall.RawConn) error
	// Proxy is the proxy of a request; nil: the environment's.
	Proxy func(*http.Request) (*url.URL, error)
	// Tune sets further fields of the transport; it must leave DialContext and DialTLSContext alone, which are the gate.
	Tune func(*http.Transport)
}

// connectTimeout is that of http.DefaultTransport.
const connectTimeout = 30 * time.Second

// Dialer makes connections for a reason. Each passes the gate again.
func Dialer(r Reason, n Network) func(ctx context.Context, network, address string) (net.Conn, error) {
	d := &net.Dialer{Timeout: n.Timeout, KeepAlive: 30 * time.Second, ControlContext: n.Control}
	if d.Timeout == 0 {
		d.Timeout = connectTimeout
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if err := r.Check(); err != nil {
			return nil, err
		}
		return d.DialContext(ctx, network, address)
	}
}

// Client is an HTTP client for a reason. Every request passes the gate, not only every connection: one that was made
// while a folder was trusted must not serve it afterwards. Clients share no connections.
func Client(r Reason, n Network) *http.Client {
	return &http.Client{Transport: Gate(r, Transport(r, n))}
}

// Transport is the transport of Client without the gate for requests: Gate puts one before it, for each of those who
// share its connections.
func Transport(r Reason, n Network) *http.Transport {
	t := &http.Transport{
		Proxy: n.Proxy, DialContext: Dialer(r, n), ForceAttemptHTTP2: true, MaxIdleConns: 100, IdleConnTimeout: 90 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second, ExpectContinueTimeout: time.Second,
	}
	if tls, err := authorities(); err == nil && tls != nil {
		t.TLSClientConfig = tls.Clone() // http.Transport changes it
	}
	if t.Proxy == nil {
		t.Proxy = http.ProxyFromEnvironment
	}
	if n.Tune != nil {
		n.Tune(t)
	}
	return t
}

// Gate lets requests through to next while their reason holds.
func Gate(r Reason, next http.RoundTripper) http.RoundTripper { return gate{r, next} }

// gate is an http.RoundTripper that refuses requests for a reason that no longer counts,
// for example when trust in a folder was withdrawn.
type gate struct {
	reason Reason
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper, which has to close the body also when it refuses.
func (g gate) RoundTrip(q *http.Request) (*http.Response, error) {
	if err := g.reason.Check(); err != nil {
		if q.Body != nil {
			_ = q.Body.Close()
		}
		return nil, err
	}
	return g.next.RoundTrip(q)
}

// CloseIdleConnections lets http.Client.CloseIdleConnections through.
func (g gate) CloseIdleConnections() {
	if c, ok := g.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// NoRedirects is the CheckRedirect of a client that follows no redirect: the answer that names another address is its answer.
func NoRedirects(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
