package builtin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/builtin"
	"github.com/pillion-dev/pillion/tools/files"
	"github.com/pillion-dev/pillion/tools/permission"
)

// accept is a gate that prints what is asked and allows it. A real one is permission.NewGate.
type accept struct{}

func (accept) Ask(_ context.Context, r permission.Request) (permission.Reply, error) {
	fmt.Println("asked:", r.Permission, r.Patterns)
	return permission.Reply{Kind: permission.Once}, nil
}

// The tools of a session share an Env. An edit is proposed, asked about, and written; the model reads the result.
func Example() {
	dir, err := os.MkdirTemp("", "builtin-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "greet.txt")
	if err := os.WriteFile(path, []byte("hello\n"), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	env := builtin.Env{Cwd: dir, Root: dir, Tracker: &files.Tracker{}, Locks: &files.Locks{}}
	call := &tools.Call{SessionID: "s", CallID: "c", Host: tools.Host{Gate: accept{}}}
	r, err := tools.Invoke(context.Background(), builtin.Edit(env), json.RawMessage(`{"filePath":"greet.txt","oldString":"hello","newString":"good morning"}`), call, tools.CapOptions{})
	fmt.Println(r.Output, err)
	text, _ := os.ReadFile(path)
	fmt.Print(string(text))
	// Output:
	// asked: edit [greet.txt]
	// Edit applied successfully. <nil>
	// good morning
}
