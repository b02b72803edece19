package lend_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/sidecar/lend"
	"github.com/pillion-dev/pillion/sidecar/terminal"
)

// Another agent, here in the same process, reads a file of the project with Pillion's tool.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	for _, name := range []string{"XDG_STATE_HOME", "XDG_CONFIG_HOME", "HOME"} {
		os.Setenv(name, filepath.Join(dir, name)) // the example must not read or change the settings of who runs it
	}
	project := filepath.Join(dir, "project")
	_ = os.Mkdir(project, 0o700)
	_ = os.WriteFile(filepath.Join(project, "a.txt"), []byte("hello\n"), 0o600)

	s := lend.New(lend.Options{App: app.Options{Place: app.NewWorkplace("example"), NoLSP: true}, Dir: project, Approve: terminal.Ask, Tools: []string{"read"}})
	defer s.Close()
	ctx, cancel := context.WithCancel(context.Background())
	here, there := sdk.NewInMemoryTransports()
	ended := make(chan error)
	go func() { ended <- s.Run(ctx, there) }()

	client, err := sdk.NewClient(&sdk.Implementation{Name: "other-agent"}, nil).Connect(ctx, here, nil)
	if err != nil {
		panic(err)
	}
	answer, err := client.CallTool(ctx, &sdk.CallToolParams{Name: "read", Arguments: map[string]any{"filePath": "a.txt"}})
	if err != nil {
		panic(err)
	}
	for line := range strings.Lines(answer.Content[0].(*sdk.TextContent).Text) {
		if strings.HasPrefix(line, "1: ") { // numbered from 1, as the model sees it
			fmt.Print(line)
		}
	}
	cancel()
	fmt.Println("ended:", <-ended)
	// Output:
	// 1: hello
	// ended: <nil>
}
