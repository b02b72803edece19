// Package rpc is JSON-RPC 2.0 for both of our wires: newline-delimited (ACP) and Content-Length framed (LSP). It puts
// forgiving streams, codecs and guards around go.lsp.dev/jsonrpc2's Conn, which by itself ends the connection at a bad
// line, a panic or a failed notification, and never tells the peer of a cancelled call. It knows no method but cancel.
//
//	out := rpc.NewOutbox(os.Stdout, rpc.OutboxOptions{})
//	peer := rpc.NewPeer(rpc.NewLineStream(os.Stdin, out, rpc.StreamOptions{}), rpc.PeerOptions{
//		Handler: func(ctx context.Context, r *rpc.Request) (any, error) {
//			switch r.Method {
//			case "session/prompt":
//				r.Async() // from here on the next message is read while this one works
//				return prompt(ctx, r.Params)
//			}
//			return nil, rpc.MethodNotFound(r.Method)
//		},
//	})
//	<-peer.Done()
//
// Order: handlers run one after the other, in the order of the wire, until they call Async. Whatever is sent (answers,
// notifications, calls) leaves in the order it was queued. Peer.Call must not be used by a handler before Async.
package rpc
