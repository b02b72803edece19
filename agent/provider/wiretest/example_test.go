package wiretest_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/agent/provider/wiretest"
)

// A model that calls a tool: the test sees what the request offered, and the provider what the model said.
func Example() {
	srv, err := wiretest.Start(wiretest.Step{Calls: []wiretest.Call{{Name: "read", Input: json.RawMessage(`{"filePath":"a.go"}`)}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	p, err := provider.New(provider.Config{Kind: provider.KindAnthropic, BaseURL: srv.AnthropicURL(), Key: "test"})
	if err != nil {
		fmt.Println(err)
		return
	}
	req := &provider.Request{
		Model:    provider.Model{Provider: "anthropic", ID: "scripted"},
		Messages: []provider.Message{{ID: "1", Role: provider.RoleUser, Parts: []provider.Part{{Type: provider.PartText, Text: "look at a.go"}}}},
		Tools:    []provider.ToolSpec{{Name: "read", Parameters: json.RawMessage(`{"type":"object"}`)}},
	}
	err = p.Stream(context.Background(), req, func(e provider.Event) error {
		if e.Type == provider.EventToolEnd {
			fmt.Println("call", e.Name, e.Text)
		}
		return nil
	})
	sent := srv.Requests()[0]
	fmt.Println("sent", sent.Format, sent.ToolNames(), sent.LastText(), err)
	// Output:
	// call read {"filePath":"a.go"}
	// sent anthropic [read] look at a.go <nil>
}
