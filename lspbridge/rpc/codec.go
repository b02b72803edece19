package rpc

import (
	"bytes"
	"encoding/json"
	"sync"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
)

// JSON is the codec for ACP. It uses encoding/json, not the protocol library: field names match in any
// case, duplicate keys and invalid UTF-8 are accepted, and our wire types need no extra methods.
var JSON jsonrpc2.Codec = jsonCodec{}

// LSP is the codec for LSP. It uses protocol.Marshal and Unmarshal because encoding/json cannot decode
// LSP's union types (a string or an object in the same member). Raw messages pass through unchanged.
var LSP jsonrpc2.Codec = lspCodec{}

// jsonCodec is JSON.
type jsonCodec struct{}

// encoders holds buffers for Marshal: a session streams thousands of small messages, and each would
// allocate its own.
var encoders = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func (jsonCodec) Marshal(v any) ([]byte, error) {
	if raw, ok := rawBytes(v); ok {
		return raw, nil
	}
	b := encoders.Get().(*bytes.Buffer)
	defer encoders.Put(b)
	b.Reset()
	e := json.NewEncoder(b)
	// Source code is full of < and &: escaped as \u003c it would be longer, and hard to read in a log.
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	out := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	// A large message takes its buffer along: the pool must not keep it for the rest of the session.
	if b.Cap() > 1<<20 {
		*b = bytes.Buffer{}
		return out, nil
	}
	return bytes.Clone(out), nil
}

func (jsonCodec) Unmarshal(data []byte, v any) error {
	if rawInto(data, v) {
		return nil
	}
	return json.Unmarshal(data, v)
}

// lspCodec is LSP.
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

// rawBytes returns v itself when it is already JSON, so that it is not parsed and encoded a second time. A
// nil message becomes null: an empty body would be invalid JSON on the wire.
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

// rawInto copies data into v when v is a raw message. It must copy: the stream reuses the frame's buffer
// for the next message.
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
