package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"go.lsp.dev/jsonrpc2"
)

// DefaultMaxMessage is what one message may weigh, in bytes: the npm ACP SDK's own limit.
const DefaultMaxMessage = 32 << 20

// StreamOptions of NewLineStream and NewHeaderStream. The zero value is good.
type StreamOptions struct {
	MaxMessage int // bytes; 0 is DefaultMaxMessage
	// OnBad hears of everything that was skipped, repaired or refused. It must not block.
	OnBad func(error)
	// Trace sees every frame, sent ('>') and received ('<'), for a log. It must not keep the slice.
	Trace func(direction byte, frame []byte)
}

func (o *StreamOptions) defaults() {
	if o.MaxMessage <= 0 {
		o.MaxMessage = DefaultMaxMessage
	}
	if o.OnBad == nil {
		o.OnBad = func(error) {}
	}
}

// owner is a writer that takes the slice over instead of copying it; *Outbox is one.
type owner interface{ put(frame []byte) error }

// send writes one frame in one call, so that frames never mix.
func send(w io.Writer, frame []byte) (int64, error) {
	if o, ok := w.(owner); ok {
		return int64(len(frame)), o.put(frame)
	}
	n, err := w.Write(frame)
	return int64(n), err
}

// oneLine turns raw line breaks into blanks: in valid JSON they can only stand between tokens.
func oneLine(b []byte) {
	for i, c := range b {
		if c == '\n' || c == '\r' {
			b[i] = ' '
		}
	}
}

// verdict of check on a received frame.
type verdict int

const (
	deliver verdict = iota
	refuse          // answer with code and message
	drop            // say nothing to the peer
)

// judged is a frame the way Conn may see it, or the reason it may not.
type judged struct {
	verdict verdict
	frame   []byte
	more    [][]byte // further frames: responses taken out of a batch
	id      []byte   // with refuse, nil for null
	code    jsonrpc2.Code
	reason  string
}

// check lets a frame through to Conn only when Conn cannot end the connection over it, repairing what the field gets
// wrong. lenient also forgives a missing or different "jsonrpc" member, as some language servers send.
func check(frame []byte, lenient bool) judged {
	frame = bytes.TrimSpace(bytes.TrimPrefix(frame, []byte("\ufeff"))) // some platforms' writers put a mark first
	if !json.Valid(frame) {
		return judged{verdict: refuse, code: jsonrpc2.ParseError, reason: "Parse error: the message is not valid JSON"}
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

// quoted reports an answer whose id is a string: our own ids are numbers, so the peer has put quotes around one.
func quoted(msg jsonrpc2.Message) bool {
	r, ok := msg.(*jsonrpc2.Response)
	return ok && r.ID().IsString()
}

// checkBatch keeps requests together, so that Conn answers them with one array, and takes responses out: Conn would
// answer those too.
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

// repair rewrites an object Conn would not decode, or says why it cannot be.
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

// canonicalID gives back an id Conn can read: strings and integers as they are, 1.0 as 1; nil for null and none.
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

// canonicalError makes an error object out of whatever stands there, so that the waiting call ends.
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

// tooLong judges a message by its first (and last) bytes: what was asked gets its error, and what was answered ends the
// waiting call with one.
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

// findID looks for a top-level id near the edge of a message that is not parsed.
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

func clip(b []byte) string {
	if len(b) > 200 {
		return string(bytes.ToValidUTF8(b[:200], nil)) + "…"
	}
	return string(b)
}

// decode is the Read half both streams share; Conn itself uses ReadFrame.
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
