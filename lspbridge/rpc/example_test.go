package rpc_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/pillion-dev/pillion/lspbridge/rpc"
)

// A language server that prints a banner, and counts characters where bytes are meant, is still understood.
func ExampleNewHeaderStream() {
	output := "Server 1.2 ready\n" +
		"Content-Length: 38\r\n\r\n" + `{"jsonrpc":"2.0","method":"hello","params":["é"]}`
	stream := rpc.NewHeaderStream(strings.NewReader(output), io.Discard, rpc.StreamOptions{
		OnBad: func(err error) { fmt.Println("warning:", err) },
	})
	frame, _, err := stream.ReadFrame(context.Background())
	fmt.Printf("%s %v\n", frame, err)
	_, _, err = stream.ReadFrame(context.Background())
	fmt.Println(err)
	// Output:
	// warning: skipped output that is not LSP: Server 1.2 ready
	// warning: the header of a message gave a wrong length (38 bytes); read 50
	// {"jsonrpc":"2.0","method":"hello","params":["é"]} <nil>
	// EOF
}

// A line that is not JSON is answered with an error, and the next line is read as usual.
func ExampleNewLineStream() {
	input := "hello?\n" + `{"jsonrpc":"2.0","id":1,"method":"initialize"}` + "\n"
	stream := rpc.NewLineStream(strings.NewReader(input), os.Stdout, rpc.StreamOptions{})
	frame, _, _ := stream.ReadFrame(context.Background())
	fmt.Printf("read %s\n", frame)
	// Output:
	// {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: the message is not valid JSON"}}
	// read {"jsonrpc":"2.0","id":1,"method":"initialize"}
}

// Flush returns when everything queued before it has been written.
func ExampleOutbox() {
	out := rpc.NewOutbox(struct{ io.Writer }{os.Stdout}, rpc.OutboxOptions{})
	ctx := context.Background()
	_ = out.Post(ctx, &rpc.Note{Method: "session/update", Params: map[string]string{"text": "hello"}})
	_, _ = out.Write([]byte(`{"jsonrpc":"2.0","id":1,"result":null}` + "\n"))
	fmt.Println(out.Flush(ctx))
	_ = out.Close()
	<-out.Done()
	// Output:
	// {"jsonrpc":"2.0","method":"session/update","params":{"text":"hello"}}
	// {"jsonrpc":"2.0","id":1,"result":null}
	// <nil>
}
