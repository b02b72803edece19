package provider_test

import (
	"context"
	"fmt"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/agent/provider/wiretest"
)

// One request, streamed. The server here is a scripted one on this machine; without a BaseURL it is the provider's own.
func ExampleNew() {
	server, err := wiretest.Start(wiretest.Step{Text: "It is in report.go."})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()

	p, err := provider.New(provider.Config{Kind: provider.KindAnthropic, BaseURL: server.AnthropicURL(), Key: "test"})
	if err != nil {
		fmt.Println(err) // a wrong configuration: nothing was sent yet
		return
	}
	req := &provider.Request{
		Model: provider.Lookup("anthropic", provider.DefaultModel("anthropic")),
		Messages: []provider.Message{{ID: "msg_1", Role: provider.RoleUser,
			Parts: []provider.Part{{Type: provider.PartText, Text: "Where is Total declared?"}}}},
	}
	answer := ""
	err = p.Stream(context.Background(), req, func(e provider.Event) error {
		switch e.Type {
		case provider.EventText:
			answer += e.Text
		case provider.EventStop:
			fmt.Println(answer, e.Stop)
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// It is in report.go. end_turn
	// <nil>
}

// Gemini takes a subset of JSON Schema: null becomes nullable, and additionalProperties is dropped.
func ExampleTransformSchema() {
	schema := []byte(`{"type":"object","properties":{"line":{"type":["integer","null"]}},"additionalProperties":false}`)
	fmt.Println(string(provider.TransformSchema(provider.KindGemini, schema)))
	// Output: {"properties":{"line":{"nullable":true,"type":"integer"}},"type":"object"}
}

// A cost is in USD; prices are per million tokens.
func ExampleCost() {
	m := provider.Model{Provider: "local", ID: "m", CostIn: 3, CostOut: 15, CostRead: 0.3}
	fmt.Printf("%.4f\n", provider.Cost(m, provider.Usage{Input: 1000, CacheRead: 10_000, Output: 200}))
	// Output: 0.0090
}
