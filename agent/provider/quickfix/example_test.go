package quickfix_test

import (
	"context"
	"fmt"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/agent/provider/quickfix"
)

// The built-in model begins every request with a call of the lsp tool. The agent runs the call and sends the
// conversation with its result; the model then continues its script.
func ExampleProvider_Stream() {
	req := &provider.Request{
		Model:    quickfix.Model,
		Messages: []provider.Message{{ID: "1", Role: provider.RoleUser, Parts: []provider.Part{{Type: provider.PartText, Text: "Please fix the errors in main.go."}}}},
		Tools:    []provider.ToolSpec{{Name: "lsp"}},
	}
	err := quickfix.Provider{}.Stream(context.Background(), req, func(e provider.Event) error {
		switch e.Type {
		case provider.EventToolEnd:
			fmt.Println(e.Name, e.Text)
		case provider.EventStop:
			fmt.Println(e.Stop)
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// lsp {"filePath":"main.go","operation":"diagnostics"}
	// tool_use
	// <nil>
}
