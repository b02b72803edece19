package provider

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
)

// unpacking decompresses answers that a proxy compressed although the request did not accept that: sharedTransport sets
// DisableCompression, so net/http does not decompress them.
type unpacking struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper. Other encodings than gzip pass unchanged and fail as "not JSON".
func (u unpacking) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := u.RoundTripper.RoundTrip(req)
	if err == nil && strings.EqualFold(resp.Header.Get("Content-Encoding"), "gzip") {
		resp.Header.Del("Content-Encoding")
		// The announced length is that of the packed bytes.
		resp.ContentLength = -1
		resp.Body = &packedBody{ReadCloser: resp.Body}
	}
	return resp, err
}

// packedBody unpacks at the first read: waiting for gzip's header in RoundTrip would delay the status.
type packedBody struct {
	io.ReadCloser
	z *gzip.Reader
}

// Read starts the decompressor at its first call. A body that is not gzip in spite of its header fails here, with gzip's error.
func (b *packedBody) Read(p []byte) (int, error) {
	if b.z == nil {
		z, err := gzip.NewReader(b.ReadCloser)
		if err != nil {
			return 0, err
		}
		b.z = z
	}
	return b.z.Read(p)
}
