package mcp_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pillion-dev/pillion/tools/mcp"
)

// A Set offers the tools of its servers under "server_tool". The server here speaks streamable HTTP.
func Example() {
	type in struct {
		Name string `json:"name"`
	}
	server := sdk.NewServer(&sdk.Implementation{Name: "demo", Version: "1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "greet", Description: "Says hello."}, func(context.Context, *sdk.CallToolRequest, in) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "hello"}}}, nil, nil
	})
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	defer web.Close()

	ctx := context.Background()
	set := mcp.New(mcp.Options{Servers: []mcp.Server{{Name: "demo", URL: web.URL, NoOAuth: true}}})
	defer web.CloseClientConnections()
	defer set.Close(ctx)
	for _, t := range set.Tools(ctx, "session") {
		fmt.Println(t.ID, "-", t.Description)
	}
	// Output: demo_greet - Says hello.
}
