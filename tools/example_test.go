package tools_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/pillion-dev/pillion/tools"
)

// A number that the model quoted is a number, and a misspelled parameter name is understood.
func ExampleInvoke() {
	type params struct {
		Text  string `json:"text" jsonschema:"what to repeat"`
		Times int    `json:"times,omitempty" default:"1" minimum:"1" maximum:"3"`
	}
	echo := tools.New("echo", "Repeats a text.", func(_ context.Context, p params, _ *tools.Call) (tools.Result, error) {
		out := ""
		for range p.Times {
			out += p.Text
		}
		return tools.Result{Output: out}, nil
	})
	for _, input := range []string{`{"text": "ha", "times": "2"}`, `{"Text": "ha"}`, `{"text": "ha", "times": 9}`} {
		r, err := tools.Invoke(context.Background(), echo, json.RawMessage(input), &tools.Call{}, tools.CapOptions{})
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(r.Output)
	}
	// Output:
	// haha
	// ha
	// The echo tool was called with invalid arguments: Expected a value less than or equal to 3, got 9 at ["times"].
	// Please rewrite the input so it satisfies the expected schema.
}
