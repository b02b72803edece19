package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pillion-dev/pillion/agent/provider/wiretest"
)

// companyProxy is an HTTP proxy as companies have them: the only way out, with names of servers that only it resolves.
type companyProxy struct {
	to       string // the address that every name stands for
	password string // user:password that it wants; "": none

	mu   sync.Mutex
	seen []string // guarded by mu: the names it was asked for
}

func (p *companyProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.password != "" && r.Header.Get("Proxy-Authorization") != "Basic "+base64.StdEncoding.EncodeToString([]byte(p.password)) {
		w.Header().Set("Proxy-Authenticate", `Basic realm="company"`)
		w.WriteHeader(http.StatusProxyAuthRequired)
		return
	}
	if r.Method != http.MethodConnect {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	p.mu.Lock()
	p.seen = append(p.seen, r.Host)
	p.mu.Unlock()
	server, err := net.Dial("tcp", p.to)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	client, rest, err := http.NewResponseController(w).Hijack()
	if err != nil {
		server.Close()
		return
	}
	_, _ = io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n")
	go func() {
		_, _ = io.Copy(server, rest)
		server.Close()
	}()
	_, _ = io.Copy(client, server)
	client.Close()
}

func (p *companyProxy) asked() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.seen...)
}

// A machine in a company's network: everything goes through a proxy, with a certificate of the company's own authority. The whole
// program runs, because Go reads the variables once in a process.
func TestThroughACompanyProxy(t *testing.T) {
	t.Parallel()
	model, err := wiretest.Start(wiretest.Step{Text: "Hello through the proxy."})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = model.Close() }) // the cases are parallel: they run when this function has returned
	model.Repeat = true
	// httptest's certificate is for example.com, by an authority of its own.
	server := httptest.NewUnstartedServer(model)
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // refused certificates are what some cases want
	server.StartTLS()
	t.Cleanup(server.Close)
	dir := t.TempDir()
	authority := filepath.Join(dir, "company.pem")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o644); err != nil {
		t.Fatal(err)
	}
	noPEM := filepath.Join(dir, "empty.pem")
	if err := os.WriteFile(noPEM, []byte("no certificate"), 0o644); err != nil {
		t.Fatal(err)
	}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + closed.Addr().String()
	closed.Close()

	for _, c := range []struct {
		name, password string
		proxy          string // instead of the proxy's own address; PROXY stands for it
		env            []string
		want           string // in what it prints
		through        bool   // the model was asked through the proxy
	}{
		{name: "an authority beside the system's", env: []string{"NODE_EXTRA_CA_CERTS=" + authority}, want: "Hello through the proxy.", through: true},
		{name: "an authority instead of the system's", env: []string{"SSL_CERT_FILE=" + authority}, want: "Hello through the proxy.", through: true},
		{name: "an authority that nobody knows", want: "set NODE_EXTRA_CA_CERTS to the PEM file", through: true},
		{name: "a file without certificates", env: []string{"NODE_EXTRA_CA_CERTS=" + noPEM}, want: "holds no certificate in PEM form", through: true},
		{name: "a password", password: "ann:secret", proxy: "http://ann:secret@PROXY", env: []string{"NODE_EXTRA_CA_CERTS=" + authority}, want: "Hello through the proxy.", through: true},
		{name: "no password", password: "ann:secret", env: []string{"NODE_EXTRA_CA_CERTS=" + authority}, want: "the proxy wants a user and a password"},
		{name: "no proxy at its address", proxy: nobody, want: "the proxy of HTTPS_PROXY or HTTP_PROXY cannot be reached"},
		// example.com is a name that the test's machine may resolve or not; port 1 answers on none.
		{name: "a server that the proxy is not for", env: []string{"NO_PROXY=example.com"}, want: "example.com"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			proxy := &companyProxy{to: server.Listener.Addr().String(), password: c.password}
			at := httptest.NewServer(proxy)
			defer at.Close()
			address := at.URL
			if c.proxy != "" {
				address = strings.ReplaceAll(c.proxy, "PROXY", strings.TrimPrefix(at.URL, "http://"))
			}
			home := t.TempDir()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			cmd := exec.CommandContext(ctx, os.Args[0], "run", "--max-steps", "1", "hello")
			cmd.Dir = home
			cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "PILLION_TEST_MAIN=1", "HOME=" + home, "XDG_CONFIG_HOME=" + home + "/c", "XDG_STATE_HOME=" + home + "/s",
				"OPENAI_BASE_URL=https://example.com:1/v1", "OPENAI_API_KEY=k", "PILLION_MODEL=openai/scripted", "HTTPS_PROXY=" + address,
				`PILLION_CONFIG_CONTENT={"lsp": false, "provider": {"openai": {"options": {"timeout": 2000}}}}`}, c.env...)
			var out bytes.Buffer
			// A failure to connect is tried again for minutes, so what is printed first decides.
			reader, writer := io.Pipe()
			cmd.Stdout, cmd.Stderr = writer, writer
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait(); writer.Close() }()
			defer func() { cancel(); go func() { _, _ = io.Copy(io.Discard, reader) }(); <-ended }()
			buf := make([]byte, 4096)
			for !strings.Contains(out.String(), c.want) {
				n, err := reader.Read(buf)
				out.Write(buf[:n])
				if err != nil {
					break
				}
			}
			if !strings.Contains(out.String(), c.want) {
				t.Errorf("it printed %q, want %q in it", out.String(), c.want)
			}
			if got := len(proxy.asked()) > 0; got != c.through {
				t.Errorf("the proxy was asked for %q, want any: %v", proxy.asked(), c.through)
			}
			for _, host := range proxy.asked() {
				if host != "example.com:1" {
					t.Errorf("the proxy was asked for %s", host)
				}
			}
			if strings.Contains(out.String(), "secret") {
				t.Errorf("the proxy's password is in %q", out.String())
			}
		})
	}
}
