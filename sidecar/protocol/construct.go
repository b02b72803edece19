package protocol

import (
	"go.lsp.dev/jsonrpc2"
)

// TextBlock is a text as a content block.
func TextBlock(text string) ContentBlock {
	return ContentBlock{Type: "text", Value: &TextContent{Text: text}}
}

// TextOfCall is a text as a part of a tool call's content.
func TextOfCall(text string) ToolCallContent {
	return ToolCallContent{Type: "content", Value: &Content{Content: TextBlock(text)}}
}

// NotFound is ACP's error "resource not found": what was named does not exist, or no longer.
func NotFound(format string, a ...any) error {
	return jsonrpc2.Errorf(jsonrpc2.Code(ErrorCodeResourceNotFound), format, a...)
}
