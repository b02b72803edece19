package guard

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
)

// What a file of an untrusted folder asks for neither starts nor connects, and what it asked for while the folder was
// trusted does not continue over a connection that is still open.
func TestTheGateFollowsTheFoldersTrust(t *testing.T) {
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { requests.Add(1) }))
	defer server.Close()
	var trusted atomic.Bool
	brought := Reason{Who: Model, Setting: "provider.x.baseURL", Place: "/p/pillion.json:1:2", Folder: "/p", Trusted: func(f string) bool { return f == "/p" && trusted.Load() }}
	client := Client(brought, Network{})
	get := func() error {
		r, err := client.Get(server.URL)
		if err == nil {
			_, _ = io.Copy(io.Discard, r.Body)
			_ = r.Body.Close()
		}
		return err
	}
	var refused *UntrustedError
	if err := get(); !errors.As(err, &refused) || requests.Load() != 0 {
		t.Fatalf("%v, %d requests", err, requests.Load())
	}
	for _, want := range []string{"provider.x.baseURL", "/p/pillion.json:1:2", "pillion trust"} {
		if !strings.Contains(refused.Error(), want) {
			t.Errorf("%q does not say %s", refused, want)
		}
	}
	trusted.Store(true)
	if err := get(); err != nil || requests.Load() != 1 {
		t.Fatalf("in a trusted folder: %v", err)
	}
	trusted.Store(false)
	if err := get(); !errors.As(err, &refused) || requests.Load() != 1 {
		t.Errorf("over the connection from before: %v, %d requests", err, requests.Load())
	}
	if _, err := Dialer(brought, Network{})(t.Context(), "tcp", strings.TrimPrefix(server.URL, "http://")); !errors.As(err, &refused) {
		t.Errorf("dialled: %v", err)
	}
	if runtime.GOOS != "windows" {
		for want, r := range map[bool]Reason{true: {Who: Server}, false: {Who: Server, Folder: "/p"}} {
			if err := CommandFor(context.Background(), r, "true").Run(); (err == nil) != want {
				t.Errorf("%+v starts: %v", r, err)
			}
		}
	}
}

// The gate does not get in the way of who has no folder, and the address is judged after the name was looked up.
func TestTheGateLetsThePersonsOwnThrough(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := Dialer(Reason{Who: Storage}, Network{})(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
}
