package wiretest

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// Format is a wire format.
type Format string

// The formats, by the paths they are asked on.
const (
	Anthropic Format = "anthropic" // …/messages
	Chat      Format = "openai"    // …/chat/completions
	Responses Format = "responses" // …/responses
	Gemini    Format = "gemini"    // …:streamGenerateContent
)

// writers has a function for each format that formatOf can return.
var writers = map[Format]func(*stream){
	Anthropic: writeAnthropic,
	Chat:      writeChat,
	Responses: writeResponses,
	Gemini:    writeGemini,
}

// stream writes one answer and cuts it where the step says. Only the handler's goroutine uses it. Its methods panic to leave the writer
// at any depth; ServeHTTP recovers.
type stream struct {
	w     http.ResponseWriter
	ctx   context.Context
	step  Step
	model string
	n     int // of the request, from 1; ids are made of it
	limit int // bytes left until the cut, -1: none
}

// obj is a JSON object. encoding/json sorts the keys of a map, so the same step always gives the same bytes.
type obj map[string]any

// event writes one SSE event; an empty name leaves the event line out.
func (s *stream) event(name string, data any) {
	b, err := json.Marshal(data)
	if err != nil {
		panic(err) // a bug in this package
	}
	if name != "" {
		s.write("event: " + name + "\ndata: " + string(b) + "\n\n")
	} else {
		s.write("data: " + string(b) + "\n\n")
	}
	// Each event is flushed on its own unless the step says otherwise, so that a test notices a reader that holds events back.
	if !s.step.Burst {
		s.flush()
	}
}

// marker stands for the text of a delta in an event that is marshalled once for many texts. U+FDD0 is a noncharacter, so no script
// contains it.
const marker = "\ufdd0text\ufdd0"

// deltas writes one event for each text; build makes the event for a text.
// Many deltas are marshalled once, since benchmarks use this server too.
func (s *stream) deltas(name string, texts []string, build func(text string) any) {
	// a few events are not worth a template
	if len(texts) < 4 {
		for _, t := range texts {
			s.event(name, build(t))
		}
		return
	}
	b, err := json.Marshal(build(marker))
	if err != nil {
		panic(err) // a bug in this package
	}
	before, after, _ := strings.Cut(string(b), marker)
	before = "data: " + before
	if name != "" {
		before = "event: " + name + "\n" + before
	}
	after += "\n\n"
	var line []byte
	for _, t := range texts {
		q, _ := json.Marshal(t)
		// without the quotes that before and after have already
		line = append(append(append(line[:0], before...), q[1:len(q)-1]...), after...)
		s.write(string(line))
		if !s.step.Burst {
			s.flush()
		}
	}
}

// write writes text up to the cut; at the cut the response ends as the step says.
func (s *stream) write(text string) {
	// The cut counts bytes of the body, so that a test can cut inside an event, a line or a character.
	if s.limit >= 0 && len(text) >= s.limit {
		s.raw(text[:s.limit])
		s.cut()
	}
	if s.limit >= 0 {
		s.limit -= len(text)
	}
	s.raw(text)
}

// raw writes without counting. A client that has gone away ends the handler.
func (s *stream) raw(text string) {
	if _, err := s.w.Write([]byte(text)); err != nil {
		panic(http.ErrAbortHandler) // the client went away
	}
}

func (s *stream) flush() {
	if f, ok := s.w.(http.Flusher); ok {
		f.Flush()
	}
}

// cut ends the response. http.ErrAbortHandler makes net/http drop the connection without the last chunk, which a client sees as a broken
// stream.
func (s *stream) cut() {
	s.flush()
	if s.step.CutClean {
		panic(cleanEnd{})
	}
	panic(http.ErrAbortHandler)
}

// cleanEnd leaves the writer and lets the response end regularly.
type cleanEnd struct{}

// end is called between the content and the closing events. The stream is cut, hangs or pauses here when the step says so, so that a test
// can look at a turn in the middle of an answer. A hang ends when the client goes away or the server is closed.
func (s *stream) end() {
	s.flush()
	if s.step.Cut < 0 {
		s.cut()
	}
	if s.step.Hang {
		<-s.ctx.Done()
		panic(http.ErrAbortHandler)
	}
	if s.step.Pause != nil {
		select {
		case <-s.step.Pause:
		case <-s.ctx.Done():
			panic(http.ErrAbortHandler)
		}
	}
}

// stop is the step's stop reason, or the one that its content implies.
func (s *stream) stop() string {
	if s.step.Stop == "" {
		if len(s.step.Calls) > 0 {
			return "tool_use"
		}
		return "end_turn"
	}
	return s.step.Stop
}

// usage is the step's, or a small one. It is never zero, because the agent estimates the context where a server counts nothing.
func (s *stream) usage() Usage {
	if s.step.Usage != nil {
		return *s.step.Usage
	}
	return Usage{Input: 100, Output: 10 + len(s.step.Text)/4}
}

// signature is the step's, or one made of the request's number. It is valid base64, because the real APIs check that.
func (s *stream) signature() string {
	if s.step.Signature != "" {
		return s.step.Signature
	}
	return "c2ln" + strconv.Itoa(s.n)
}

// texts are the step's Deltas where it has them, so that a test can choose the pieces itself.
func (s *stream) texts() []string {
	if s.step.Deltas != nil {
		return s.step.Deltas
	}
	return s.pieces(s.step.Text)
}

// pieces cuts a text into chunks between code points. What people see as one character may be cut in two, as with real models.
func (s *stream) pieces(text string) []string {
	size := s.step.Chunk
	if size == 0 {
		size = 16
	}
	if text == "" {
		return nil
	}
	if size < 0 {
		return []string{text}
	}
	var out []string
	n, start := 0, 0
	for i := range text {
		if n == size {
			out = append(out, text[start:i])
			n, start = 0, i
		}
		n++
	}
	return append(out, text[start:])
}

// jsonArgs are a call's arguments for formats that carry them as a value and not as a string.
func jsonArgs(c Call) json.RawMessage {
	if a := c.args(); json.Valid([]byte(a)) {
		return json.RawMessage(a)
	}
	// Broken arguments become a JSON string. No real API sends that, which is what such a test is about.
	b, _ := json.Marshal(c.args())
	return b
}

func (e Error) status() int {
	if e.Status == 0 {
		return http.StatusInternalServerError
	}
	return e.Status
}

// message names the status where the step has no text of its own.
func (e Error) message() string {
	if e.Message == "" {
		return "scripted failure: " + http.StatusText(e.status())
	}
	return e.Message
}

// shape is the failure as the format's provider writes it.
func (e Error) shape(f Format) obj {
	kind := e.Type
	if kind == "" {
		kind = errorType(f, e.status())
	}
	switch f {
	case Anthropic:
		return obj{"type": "error", "error": obj{"type": kind, "message": e.message()}}
	case Gemini:
		return obj{"error": obj{"code": e.status(), "message": e.message(), "status": kind}}
	}
	// OpenAI's two formats have the same shape; code is null unless the step sets it.
	var code any
	if e.Code != "" {
		code = e.Code
	}
	return obj{"error": obj{"message": e.message(), "type": kind, "param": nil, "code": code}}
}

// errorType is the type that the format's provider sends with an HTTP status.
// The lists are those of the providers' documentation.
func errorType(f Format, status int) string {
	switch f {
	case Anthropic:
		switch status {
		case 401:
			return "authentication_error"
		case 403:
			return "permission_error"
		case 404:
			return "not_found_error"
		case 413:
			return "request_too_large"
		case 429:
			return "rate_limit_error"
		case 529:
			return "overloaded_error"
		}
		if status >= 500 {
			return "api_error"
		}
		return "invalid_request_error"
	case Gemini:
		switch status {
		case 401:
			return "UNAUTHENTICATED"
		case 403:
			return "PERMISSION_DENIED"
		case 404:
			return "NOT_FOUND"
		case 429:
			return "RESOURCE_EXHAUSTED"
		case 503:
			return "UNAVAILABLE"
		}
		if status >= 500 {
			return "INTERNAL"
		}
		return "INVALID_ARGUMENT"
	}
	switch {
	case status == 429:
		return "rate_limit_error"
	case status >= 500:
		return "server_error"
	}
	return "invalid_request_error"
}

// writeError answers with a failure before the stream begins.
// Headers of the step come last and may replace those above.
func writeError(w http.ResponseWriter, f Format, e Error) {
	w.Header().Set("Content-Type", "application/json")
	if e.RetryAfter != "" {
		w.Header().Set("Retry-After", e.RetryAfter)
	}
	for k, v := range e.Headers {
		w.Header().Set(k, v)
	}
	w.WriteHeader(e.status())
	if e.Body != "" {
		_, _ = w.Write([]byte(e.Body))
		return
	}
	_ = json.NewEncoder(w).Encode(e.shape(f))
}
