package rpc

import (
	"bytes"
	"encoding/json"
	"sync"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
)

// JSON is the codec for ACP: encoding/json, so that field names match in any case, duplicate keys and invalid UTF-8 are
// forgiven, and our wire types need nothing special.
var JSON jsonrpc2.Codec = jsonCodec{}

// LSP is the codec for LSP: protocol.Marshal and Unmarshal, which know the unions. Raw messages pass untouched.
var LSP jsonrpc2.Codec = lspCodec{}

type jsonCodec struct{}

var encoders = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func (jsonCodec) Marshal(v any) ([]byte, error) {
	if raw, ok := rawBytes(v); ok {
		return raw, nil
	}
	b := encoders.Get().(*bytes.Buffer)
	defer encoders.Put(b)
	b.Reset()
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	out := bytes.Clone(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
	if b.Cap() > 1<<20 {
		*b = bytes.Buffer{}
	}
	return out, nil
}

func (jsonCodec) Unmarshal(data []byte, v any) error {
	if rawInto(data, v) {
		return nil
	}
	return json.Unmarshal(data, v)
}

type lspCodec struct{}

func (lspCodec) Marshal(v any) ([]byte, error) {
	if raw, ok := rawBytes(v); ok {
		return raw, nil
	}
	return protocol.Marshal(v)
}

func (lspCodec) Unmarshal(data []byte, v any) error {
	if rawInto(data, v) {
		return nil
	}
	return protocol.Unmarshal(data, v)
}

func rawBytes(v any) ([]byte, bool) {
	var raw []byte
	switch m := v.(type) {
	case jsonrpc2.RawMessage:
		raw = m
	case json.RawMessage:
		raw = m
	default:
		return nil, false
	}
	if raw == nil {
		raw = []byte("null")
	}
	return raw, true
}

// rawInto copies: the frame's buffer is used again.
func rawInto(data []byte, v any) bool {
	switch p := v.(type) {
	case *jsonrpc2.RawMessage:
		*p = bytes.Clone(data)
	case *json.RawMessage:
		*p = bytes.Clone(data)
	default:
		return false
	}
	return true
}
