package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"go.lsp.dev/jsonrpc2"
)

// DefaultMaxMessage is the size limit of one message, in bytes, when StreamOptions sets none. It is the
// limit of the ACP SDK for npm: editors built on it cannot send more.
const DefaultMaxMessage = 32 << 20

// StreamOptions configures NewLineStream and NewHeaderStream. The zero value is ready for use.
type StreamOptions struct {
	MaxMessage int // bytes; 0 is DefaultMaxMessage
	// OnBad hears of everything that was skipped, repaired or refused. It must not block.
	OnBad func(error)
	// Trace is called for every frame, sent ('>') and received ('<'). It must not block, and must not keep
	// the slice, which is reused.
	Trace func(direction byte, frame []byte)
}

// defaults fills in what was left out, so that the streams need not test for nil.
func (o *StreamOptions) defaults() {
	if o.MaxMessage <= 0 {
		o.MaxMessage = DefaultMaxMessage
	}
	if o.OnBad == nil {
		o.OnBad = func(error) {}
	}
}

// owner is a writer that takes ownership of a frame instead of copying it. *Outbox is one; it saves a copy
// of every message.
type owner interface{ Put(frame []byte) error }

// send writes one frame in one call, so that concurrent writers never mix frames.
func send(w io.Writer, frame []byte) (int64, error) {
	if o, ok := w.(owner); ok {
		return int64(len(frame)), o.Put(frame)
	}
	n, err := w.Write(frame)
	return int64(n), err
}

// oneLine replaces raw line breaks by spaces. Valid JSON contains them only between tokens, so its meaning
// stays the same.
func oneLine(b []byte) {
	for i, c := range b {
		if c == '\n' || c == '\r' {
			b[i] = ' '
		}
	}
}

// verdict of check on a received frame.
type verdict int

// The verdicts.
const (
	deliver verdict = iota // hand the frame to Conn
	refuse                 // answer with code and message
	drop                   // do not answer: an answer to a response would be a protocol error
)

// judged is a frame in the form that Conn accepts, or the reason why there is none.
type judged struct {
	verdict verdict
	frame   []byte
	more    [][]byte      // further frames: responses taken out of a batch
	id      []byte        // with refuse: of the error response; nil for null
	code    jsonrpc2.Code // with refuse
	reason  string        // with refuse and drop
}

// check decides what to do with a received frame. Conn ends the connection when it cannot decode a
// message, so only messages that it can decode pass, and common mistakes of real programs are repaired.
// lenient also accepts a missing or different "jsonrpc" member and quoted ids, which some language servers
// send.
func check(frame []byte, lenient bool) judged {
	frame = bytes.TrimSpace(bytes.TrimPrefix(frame, []byte("\ufeff"))) // some platforms' writers put a mark first
	if !json.Valid(frame) {
		return judged{verdict: refuse, code: jsonrpc2.ParseError, reason: "Parse error: the message is not valid JSON"}
	}
	if !utf8.Valid(frame) {
		// Go's decoder replaces such bytes in strings but keeps them in what is passed on undecoded: an id would be
		// given back with them, and no strict peer could read the answer.
		frame = bytes.ToValidUTF8(frame, []byte("\ufffd"))
	}
	switch frame[0] {
	case '[':
		return checkBatch(frame, lenient)
	case '{':
		msg, err := jsonrpc2.DecodeMessage(frame)
		if err == nil && !(lenient && quoted(msg)) {
			return judged{frame: frame}
		}
		return repair(frame, lenient)
	}
	return judged{verdict: refuse, code: jsonrpc2.InvalidRequest, reason: "Invalid Request: a message is an object or an array of objects"}
}

// quoted reports a response whose id is a string. Our ids are numbers, so the peer has quoted one, and
// Conn would not find the call that waits.
func quoted(msg jsonrpc2.Message) bool {
	r, ok := msg.(*jsonrpc2.Response)
	return ok && r.ID().IsString()
}

// checkBatch keeps the requests of a batch together, so that Conn answers them with one array as JSON-RPC
// requires. It takes the responses out and delivers them one by one, because Conn would answer them as
// invalid requests.
func checkBatch(frame []byte, lenient bool) judged {
	var members []json.RawMessage
	if err := json.Unmarshal(frame, &members); err != nil {
		return judged{verdict: refuse, code: jsonrpc2.ParseError, reason: err.Error()}
	}
	var out judged
	requests := make([]json.RawMessage, 0, len(members))
	for _, m := range members {
		if len(m) == 0 || m[0] != '{' {
			requests = append(requests, json.RawMessage("{}")) // Conn answers it as an invalid request
			continue
		}
		var probe struct {
			Method json.RawMessage `json:"method"`
			Result json.RawMessage `json:"result"`
			Error  json.RawMessage `json:"error"`
		}
		_ = json.Unmarshal(m, &probe)
		if probe.Method == nil && (probe.Result != nil || probe.Error != nil) {
			if j := check(m, lenient); j.verdict == deliver {
				out.more = append(out.more, bytes.Clone(j.frame))
			}
			continue
		}
		if _, err := jsonrpc2.DecodeMessage(m); err != nil {
			if j := repair(m, lenient); j.verdict == deliver {
				m = j.frame
			}
		}
		requests = append(requests, m)
	}
	switch {
	case len(requests) == len(members):
		out.frame = frame
		if len(members) == 0 {
			return judged{verdict: refuse, code: jsonrpc2.InvalidRequest, reason: "Invalid Request: empty batch"}
		}
		out.frame, _ = json.Marshal(requests)
	case len(requests) > 0:
		out.frame, _ = json.Marshal(requests)
	case len(out.more) > 0:
		out.frame, out.more = out.more[0], out.more[1:]
	default:
		out.verdict, out.reason = drop, "batch of malformed responses"
	}
	return out
}

// repair rewrites an object that Conn cannot decode; when that is impossible, it gives the reason.
func repair(frame []byte, lenient bool) judged {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(frame, &m); err != nil {
		return judged{verdict: refuse, code: jsonrpc2.ParseError, reason: err.Error()}
	}
	if lenient {
		m["jsonrpc"] = json.RawMessage(`"2.0"`)
	}
	id, idOK := canonicalID(m["id"])
	if _, isRequest := m["method"]; lenient && !isRequest && len(id) > 2 && id[0] == '"' {
		if n := id[1 : len(id)-1]; json.Valid(n) && n[0] >= '0' && n[0] <= '9' {
			id, idOK = canonicalID(n)
		}
	}
	if id != nil {
		m["id"] = id
	}
	// Some peers write every member, with null for those that do not apply. JSON-RPC allows only one of
	// result and error in a response, and none in a request.
	for _, k := range []string{"error", "result"} {
		if _, isRequest := m["method"]; (isRequest || k == "error") && string(m[k]) == "null" {
			delete(m, k)
		}
	}
	_, isRequest := m["method"]
	_, hasResult := m["result"]
	_, hasError := m["error"]
	if !isRequest {
		if !idOK || id == nil || !hasResult && !hasError && len(m) > 2 && !lenient {
			if hasResult || hasError {
				return judged{verdict: drop, reason: "malformed response: " + clip(frame)}
			}
			return judged{verdict: refuse, id: id, code: jsonrpc2.InvalidRequest, reason: "Invalid Request: no method"}
		}
		switch {
		case hasError:
			delete(m, "result")
			m["error"] = canonicalError(m["error"])
		case !hasResult:
			m["result"] = json.RawMessage("null") // JSON.stringify leaves out an undefined result
		}
		m["jsonrpc"] = json.RawMessage(`"2.0"`)
	}
	fixed, err := json.Marshal(m)
	if err == nil {
		_, err = jsonrpc2.DecodeMessage(fixed)
	}
	switch {
	case err == nil:
		return judged{frame: fixed}
	case isRequest:
		why := "Invalid Request"
		if string(m["jsonrpc"]) != `"2.0"` {
			why += `: "jsonrpc" must be "2.0"`
		} else if !idOK {
			why += `: "id" must be a string or an integer of 64 bits`
			if raw := m["id"]; raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9' {
				id = raw // a number that Conn cannot hold; who asked knows it all the same
			}
		}
		return judged{verdict: refuse, id: id, code: jsonrpc2.InvalidRequest, reason: why}
	}
	return judged{verdict: drop, reason: "malformed response: " + clip(frame)}
}

// canonicalID returns an id in the form Conn can decode: strings and integers as they are, 1.0 as 1; nil
// for null or a missing id. ok is false for other types, and for numbers that no 64-bit integer (or, as a
// float, no exact integer) can hold.
func canonicalID(raw json.RawMessage) (id json.RawMessage, ok bool) {
	switch {
	case raw == nil || string(raw) == "null":
		return nil, true
	case raw[0] == '"':
		return raw, true
	}
	if _, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return raw, true
	}
	if f, err := strconv.ParseFloat(string(raw), 64); err == nil && f == float64(int64(f)) && f < 1<<53 && f > -(1<<53) {
		return strconv.AppendInt(nil, int64(f), 10), true
	}
	return nil, false
}

// canonicalError makes a valid error object of any JSON. A response whose error cannot be decoded would be
// lost, and its call would wait for ever.
func canonicalError(raw json.RawMessage) json.RawMessage {
	var e struct {
		Code    json.Number     `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data,omitempty"`
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		e.Message = clip(raw)
	}
	code, err := strconv.ParseInt(e.Code.String(), 10, 32)
	if err != nil {
		code = int64(jsonrpc2.InternalError)
	}
	return errorObject(jsonrpc2.Code(code), e.Message, e.Data)
}

// errorObject is a JSON-RPC error; data may be nil.
func errorObject(code jsonrpc2.Code, message string, data json.RawMessage) json.RawMessage {
	b, _ := json.Marshal(struct {
		Code    jsonrpc2.Code   `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data,omitempty"`
	}{code, message, data})
	return b
}

// errorResponse is a whole response frame; a nil id is null.
func errorResponse(id []byte, code jsonrpc2.Code, message string) []byte {
	if id == nil {
		id = []byte("null")
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":%s}`, id, errorObject(code, message, nil))
}

// tooLong judges a message that was too long to be parsed, by its first and last bytes. A request gets an
// error response. A response becomes an error response to our own call, so that the caller learns of it at
// once.
func tooLong(head, tail []byte, size int64, max int) judged {
	text := fmt.Sprintf("message of %d bytes exceeds the limit of %d bytes", size, max)
	id := findID(head)
	if bytes.Contains(head, []byte(`"method"`)) || id == nil && findID(tail) == nil {
		return judged{verdict: refuse, id: id, code: jsonrpc2.InvalidRequest, reason: text}
	}
	if id == nil {
		id = findID(tail)
	}
	return judged{frame: errorResponse(id, jsonrpc2.InternalError, "the peer's "+text)}
}

// findID looks for the id of a message near one of its ends, without parsing it. It returns nil when there
// is none, or when the only one is inside the parameters or the result and so does not belong to the
// message.
func findID(b []byte) []byte {
	for _, stop := range []string{`"params"`, `"result"`} { // an id inside the payload is somebody else's
		if i := bytes.Index(b, []byte(stop)); i >= 0 && bytes.Index(b, []byte(`"id"`)) > i {
			return nil
		}
	}
	i := bytes.LastIndex(b, []byte(`"id"`))
	if i < 0 {
		return nil
	}
	rest := bytes.TrimLeft(b[i+4:], " :")
	n := 0
	if len(rest) > 0 && rest[0] == '"' {
		if n = bytes.IndexByte(rest[1:], '"') + 2; n < 2 {
			return nil
		}
	} else {
		for n < len(rest) && (rest[n] >= '0' && rest[n] <= '9' || rest[n] == '-') {
			n++
		}
	}
	if n == 0 || !json.Valid(rest[:n]) {
		return nil
	}
	return bytes.Clone(rest[:n])
}

// clip is the beginning of b, for a log line or an error.
func clip(b []byte) string {
	if len(b) > 200 {
		return string(bytes.ToValidUTF8(b[:200], nil)) + "…"
	}
	return string(b)
}

// decode implements jsonrpc2.Stream's Read for both streams. Conn itself uses ReadFrame.
func decode(ctx context.Context, s interface {
	ReadFrame(context.Context) ([]byte, int64, error)
}) (jsonrpc2.Message, int64, error) {
	b, n, err := s.ReadFrame(ctx)
	if err != nil {
		return nil, 0, err
	}
	msg, err := jsonrpc2.DecodeMessage(b)
	return msg, n, err
}
