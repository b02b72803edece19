package provider

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
)

// unpacking decompresses answers that a proxy compressed although the request did not accept that
// (DisableCompression).
type unpacking struct{ http.RoundTripper }

func (u unpacking) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := u.RoundTripper.RoundTrip(req)
	if err == nil && strings.EqualFold(resp.Header.Get("Content-Encoding"), "gzip") {
		resp.Header.Del("Content-Encoding")
		// the length that was announced is that of the packed bytes
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
