package provider

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
)

// unpacking reads answers that a proxy compressed although nobody asked for it.
type unpacking struct{ http.RoundTripper }

func (u unpacking) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := u.RoundTripper.RoundTrip(req)
	if err == nil && strings.EqualFold(resp.Header.Get("Content-Encoding"), "gzip") {
		resp.Header.Del("Content-Encoding")
		resp.ContentLength = -1
		resp.Body = &packedBody{ReadCloser: resp.Body}
	}
	return resp, err
}

// packedBody unpacks at the first read: the header must not be waited for before that.
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
