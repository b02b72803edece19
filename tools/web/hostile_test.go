package web

import (
	"bufio"
	"bytes"
	"compress/flate"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// raw answers every connection with bytes of its own, after it has read the request.
func raw(t *testing.T, answer func(net.Conn)) (*Client, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
					answer(c)
				}
			}()
		}
	}()
	return New(Options{Allow: Allow{l.Addr().String()}}), "http://" + l.Addr().String()
}

// Redirects that want out of the web, to somebody else's name, or never to end.
func TestHostileRedirects(t *testing.T) {
	hops := 0
	c, at := server(t, func(w http.ResponseWriter, r *http.Request) {
		hops++
		if to := r.URL.Query().Get("to"); to != "" {
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusFound)
			return
		}
		http.Redirect(w, r, fmt.Sprintf("/%d", hops), http.StatusFound)
	})
	for to, want := range map[string]string{
		"file:///etc/passwd": "only http and https", "ftp://x.example/": "only http and https", "javascript:alert(1)": "", "data:text/html,x": "", "gopher://x.example": "only http and https", "//user:pw@x.example/": "name and password",
		"http://x.example@evil.example/": "name and password", "http://[::1": "", "http:///": "no host", "http://x.example:99999/": "", "https://аpple.example/": "another host", "http://127.0.0.1.nip.example/": "another host", "http://①②⑦.0.0.1/": "another host",
	} {
		_, err := c.Fetch(t.Context(), Request{URL: at + "/?to=" + strings.NewReplacer("&", "%26", "#", "%23", "%", "%25").Replace(to)})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "pw") {
			t.Errorf("%s: %v", to, err)
		}
	}
	hops = 0
	if _, err := c.Fetch(t.Context(), Request{URL: at + "/x"}); err == nil || hops > maxRedirects {
		t.Errorf("%d hops: %v", hops, err)
	}
}

// However an address of this machine is written, it is not connected to.
func TestWaysToWriteThisMachine(t *testing.T) {
	c := New(Options{})
	yes := func(context.Context, string, string) error { return nil }
	for _, host := range []string{"[::]", "[0:0:0:0:0:ffff:7f00:1]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[::127.0.0.1]", "[fe80::1%25lo]", "LOCALHOST", "169.254.169.254", "[::ffff:a9fe:a9fe]"} {
		_, err := c.Fetch(t.Context(), Request{URL: "http://" + host + ":9/", Redirect: yes, Timeout: 5 * time.Second})
		var private *PrivateError
		if !errors.As(err, &private) {
			t.Errorf("%s: %v", host, err)
		}
	}
	// Forms that a resolver of C's might take for an address: refused, or no name at all; never connected to.
	for _, host := range []string{"localhost.", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "①②⑦.0.0.1", "127.0.0.1%2eexample"} {
		if p, err := c.Fetch(t.Context(), Request{URL: "http://" + host + ":9/", Timeout: 5 * time.Second}); err == nil {
			t.Errorf("%s: %+v", host, p)
		}
	}
}

// Time and size hold for the body too, whatever it says of itself.
func TestHostileBodies(t *testing.T) {
	// Made before the clock of a fetch runs: the race detector takes seconds for it.
	var bomb bytes.Buffer
	z, _ := flate.NewWriter(&bomb, flate.BestSpeed)
	_, _ = z.Write(make([]byte, 20<<20))
	_ = z.Close()
	flood := make([]byte, 64<<10)
	for name, x := range map[string]struct {
		answer func(net.Conn)
		want   string
	}{
		"drops of a body": {func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100000\r\n\r\n")
			for _, err := c.Write([]byte("x")); err == nil; _, err = c.Write([]byte("x")) {
				time.Sleep(20 * time.Millisecond) // the slow loris
			}
		}, "within 300ms"},
		"drops of a head": {func(c net.Conn) {
			for _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\n"); err == nil; _, err = io.WriteString(c, "X: y\r\n") {
				time.Sleep(20 * time.Millisecond)
			}
		}, "within 300ms"},
		"HTTP/0.9": {func(c net.Conn) { _, _ = io.WriteString(c, "<html>hello</html>") }, "malformed"},
		"garbage":  {func(c net.Conn) { _, _ = c.Write([]byte{0, 1, 2, 3, 0xff, '\n', '\n'}) }, "malformed"},
		"an endless head": {func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nX: ")
			for _, err := c.Write(bytes.Repeat([]byte("y"), len(flood))); err == nil; _, err = c.Write(bytes.Repeat([]byte("y"), len(flood))) {
			}
		}, "header"},
		"an endless body": {func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
			for _, err := c.Write(flood); err == nil; _, err = c.Write(flood) {
			}
		}, "larger than"},
		"a wrong length": {func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 500\r\n\r\nshort")
		}, "broke off"},
		"a negative length": {func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nshort") }, "Content-Length"},
		"brotli": {func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: br\r\n\r\n\x0b\x02\x80abc")
		}, "br"},
		"gzip that is none": {func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n\r\nplain words")
		}, "gzip"},
		"deflate": {func(c net.Conn) {
			_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: deflate\r\nContent-Length: %d\r\n\r\n%s", bomb.Len(), bomb.Bytes())
		}, "deflate"},
	} {
		t.Run(name, func(t *testing.T) {
			limit := time.Minute
			if strings.Contains(x.want, "300ms") {
				limit = 300 * time.Millisecond
			}
			c, at := raw(t, x.answer)
			p, err := c.Fetch(t.Context(), Request{URL: at, Timeout: limit})
			if err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("%+v %v", p, err)
			}
		})
	}
}

// What a page is called and what it is need not be the same.
func TestTypesThatLie(t *testing.T) {
	c, at := server(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", map[string]string{"/html": "image/png", "/binary": "text/html", "/bad": "text/html; charset=\"\xff", "/odd": "nonsense", "/utf16": "text/html; charset=no-such"}[r.URL.Path])
		_, _ = w.Write(map[string][]byte{"/html": []byte("<html>not a picture"), "/binary": append([]byte("\x7fELF\x00\x00"), make([]byte, 1000)...), "/bad": []byte("<p>a"), "/odd": []byte("a"), "/utf16": []byte("<p>a")}[r.URL.Path])
	})
	if p, err := c.Fetch(t.Context(), Request{URL: at + "/html"}); err == nil {
		t.Errorf("a picture that is none: %+v", p)
	}
	if p, err := c.Fetch(t.Context(), Request{URL: at + "/binary"}); err == nil {
		t.Errorf("a program as a page: %q", p.Text)
	}
	for path, want := range map[string]string{"/bad": "a", "/utf16": "a"} {
		if p, err := c.Fetch(t.Context(), Request{URL: at + path}); err != nil || p.Text != want {
			t.Errorf("%s: %+v %v", path, p, err)
		}
	}
	if _, err := c.Fetch(t.Context(), Request{URL: at + "/odd"}); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Error(err)
	}
}

func TestVeryLongAddresses(t *testing.T) {
	if _, err := Clean("https://x.example/" + strings.Repeat("a", maxURL)); err == nil || len(err.Error()) > 500 {
		t.Errorf("%v", err)
	}
	c, at := server(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/"+strings.Repeat("a", maxURL))
		w.WriteHeader(http.StatusFound)
	})
	if _, err := c.Fetch(t.Context(), Request{URL: at}); err == nil || len(err.Error()) > 500 {
		t.Errorf("%v", err)
	}
}
