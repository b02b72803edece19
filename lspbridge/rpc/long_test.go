package rpc_test

import (
	"context"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/lspbridge/rpc"
)

// The parameters of a long message do not pass through Conn. They belong to the handler of this message only.
func TestALongMessageThenAShortOne(t *testing.T) {
	got := make(chan string, 10)
	server := rpc.PeerOptions{Handler: func(_ context.Context, r *rpc.Request) (any, error) {
		r.Async()
		got <- r.Method + string(r.Params[:min(len(r.Params), 12)])
		if r.Method == "refuse" {
			return nil, rpc.MethodNotFound(r.Method)
		}
		return nil, nil
	}}
	client, _ := pair(t, rpc.NewLineStream, rpc.PeerOptions{}, server)
	long := map[string]string{"text": strings.Repeat("x", 2<<20)}
	for _, c := range []struct {
		method string
		params any
		want   string
	}{
		{"long", long, `long{"text":"xxx`}, {"none", nil, "none"}, {"refuse", long, `refuse{"text":"xxx`}, {"short", []int{1}, "short[1]"},
	} {
		_ = client.Call(t.Context(), c.method, c.params, nil)
		if s := <-got; s != c.want {
			t.Errorf("%s: %s", c.method, s)
		}
	}
	if err := client.Notify(t.Context(), "told", long); err != nil {
		t.Fatal(err)
	}
	if s := <-got; s != `told{"text":"xxx` {
		t.Error(s)
	}
}
