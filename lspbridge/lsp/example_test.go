package lsp_test

import (
	"encoding/json"
	"fmt"

	"github.com/pillion-dev/pillion/lspbridge/lsp"
)

// One item without a range does not lose the other; a number is a code as well as a string.
func ExampleDiagnostics() {
	items := []json.RawMessage{
		json.RawMessage(`{"message": "no range"}`),
		json.RawMessage(`{"range": {"start": {"line": 2, "character": 0}, "end": {"line": 2, "character": 5}}, "code": 2304, "message": "Cannot find name 'x'."}`),
	}
	for _, d := range lsp.Diagnostics(items) {
		fmt.Println(d.Range.Start.Line, d.Severity, d.Code, d.Message)
	}
	// Output: 2 1 2304 Cannot find name 'x'.
}

// A definition may be answered with links; the location is then the name of the target.
func ExampleLocations() {
	answer := `[{"targetUri": "file:///a.go", "targetRange": {"start": {"line": 1}, "end": {"line": 9}},
		"targetSelectionRange": {"start": {"line": 1, "character": 5}, "end": {"line": 1, "character": 8}}}]`
	for _, l := range lsp.Locations(json.RawMessage(answer)) {
		fmt.Println(l.URI, l.Range.Start.Line, l.Range.Start.Character)
	}
	// Output: file:///a.go 1 5
}

// A code action's command may be a bare Command.
func ExampleCodeAction() {
	var a lsp.CodeAction
	err := json.Unmarshal([]byte(`{"title": "Add test", "command": "gopls.add_test", "arguments": [1]}`), &a)
	fmt.Println(a.Title, a.Command.Command, string(a.Command.Arguments), err)
	// Output: Add test gopls.add_test [1] <nil>
}
