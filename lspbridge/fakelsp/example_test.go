package fakelsp_test

import (
	"context"
	"fmt"

	"github.com/pillion-dev/pillion/lspbridge/fakelsp"
	"github.com/pillion-dev/pillion/lspbridge/rpc"
)

// A client opens a document and the server publishes its problem.
func Example() {
	server := fakelsp.New(fakelsp.Options{Push: true, Versions: true})
	published := make(chan string, 1)
	r, w := server.Pipes()
	client := rpc.NewPeer(rpc.NewHeaderStream(r, w, rpc.StreamOptions{}), rpc.PeerOptions{
		Cancel: rpc.CancelLSP,
		Handler: func(_ context.Context, r *rpc.Request) (any, error) {
			published <- string(r.Params)
			return nil, nil
		},
	})
	defer client.Close()
	ctx := context.Background()
	_ = client.Call(ctx, "initialize", map[string]any{}, nil)
	_ = client.Notify(ctx, "textDocument/didOpen", map[string]any{
		"textDocument": map[string]any{"uri": "file:///a.txt", "version": 1, "text": "ok\nBAD idea\n"}})
	fmt.Println(<-published)
	fmt.Println(server.Seen())
	// Output:
	// {"diagnostics":[{"message":"idea","range":{"end":{"character":8,"line":1},"start":{"character":0,"line":1}},"severity":1,"source":"fake"}],"uri":"file:///a.txt","version":1}
	// [initialize textDocument/didOpen]
}
