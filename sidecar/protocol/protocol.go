// Package protocol defines what travels between Pillion and an editor: the Agent Client Protocol, version 1, and
// Pillion's own additions. The types are generated from two schemas (gen/acp.schema.json, gen/pillion.schema.json), and
// so are the TypeScript and Lua twins in extension/. It sends nothing and knows no session.
//
//	var p protocol.PromptRequest
//	err := protocol.Decode(params, &p) // "prompt[0].text: want a string, got a number"
package protocol

//go:generate go run ./gen

// Version of ACP that Pillion speaks.
const Version = 1

// ExtensionVersion of the _pillion methods.
const ExtensionVersion = 1

// Method is one method of the protocol. Side answers it: "agent", "client" or "protocol" (both). A method without a
// result is a notification.
type Method struct {
	Name, Side, Params, Result string
}
