package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/agent/provider/wiretest"
)

// model is the scripted model behind a clock: when each request had arrived whole, and when the last bytes of each
// answer were handed to the kernel.
type model struct {
	*wiretest.Server
	beside *wiretest.Server // answers what is no step of the script
	url    string
	http   *http.Server

	kept int // of a request, in bytes; set before the first one

	mu    sync.Mutex // guards what follows
	turns []*exchange
	mark  []byte    // when this was first handed to the kernel …
	sent  time.Time // … is kept here
}

const keptOfRequest = 256 << 10 // bytes, where nothing reads all of a long request

const titleAnswer = `data: {"id":"t","object":"chat.completion.chunk","created":1,"model":"title","choices":[{"index":0,"delta":{"role":"assistant","content":"Title"},"finish_reason":null}]}

data: {"id":"t","object":"chat.completion.chunk","created":1,"model":"title","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

data: [DONE]

`

// exchange is one request's times.
type exchange struct{ arrived, ended time.Time }

func newModel() *model {
	s, err := wiretest.Start()
	check(err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	beside, err := wiretest.Start(wiretest.Step{Text: "Title"})
	check(err)
	beside.Repeat = true
	m := &model{Server: s, beside: beside, kept: keptOfRequest, url: "http://" + ln.Addr().String() + "/v1"}
	m.http = &http.Server{Handler: http.HandlerFunc(m.serve)}
	go func() { _ = m.http.Serve(ln) }()
	return m
}

func (m *model) close() {
	_ = m.http.Close()
	_ = m.Server.Close()
	_ = m.beside.Close()
}

// config names the model to Pillion, language servers off.
func (m *model) config() map[string]any {
	return map[string]any{"lsp": false, "model": "scripted/m",
		"provider": map[string]any{"scripted": map[string]any{"baseURL": m.url, "key": "none", "models": map[string]any{"m": map[string]any{"context": 1 << 30}, "title": map[string]any{}}}}}
}

func (m *model) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		m.Server.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client went away
	}
	at := time.Now()
	if bytes.Contains(body[:min(len(body), 200)], []byte(`"model":"title"`)) { // somebody names the session meanwhile: no step of the script
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, titleAnswer)
		return
	}
	// Claude Code asks for a title, and for a guess of the person's next message, without tools of its own.
	if strings.HasPrefix(r.URL.Path, "/v1/messages") && (len((wiretest.Request{Path: r.URL.Path, Body: body}).ToolNames()) == 0 || bytes.Contains(body, []byte("[SUGGESTION MODE"))) {
		r.Body = io.NopCloser(bytes.NewReader(body))
		m.beside.ServeHTTP(w, r)
		return
	}
	// The script keeps what it was asked; of a long history the beginning is enough.
	r.Body = io.NopCloser(bytes.NewReader(body[:min(len(body), m.kept)]))
	turn := &exchange{arrived: at}
	m.mu.Lock()
	m.turns = append(m.turns, turn) // now: the next request may arrive before this handler continues after its last flush
	m.mu.Unlock()
	m.Server.ServeHTTP(&clock{ResponseWriter: w, m: m, turn: turn}, r)
}

// clock notes when bytes leave.
type clock struct {
	http.ResponseWriter
	m    *model
	turn *exchange
}

func (c *clock) Write(p []byte) (int, error) {
	c.m.mu.Lock()
	if c.m.mark != nil && bytes.Contains(p, c.m.mark) {
		c.m.mark, c.m.sent = nil, time.Now()
	}
	c.m.mu.Unlock()
	return c.ResponseWriter.Write(p)
}

// Flush notes the time before it: nothing can be answered that has not left.
func (c *clock) Flush() {
	c.m.mu.Lock()
	c.turn.ended = time.Now()
	c.m.mu.Unlock()
	c.ResponseWriter.(http.Flusher).Flush()
}

// watch waits for a text among the bytes that leave.
func (m *model) watch(mark string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mark, m.sent = []byte(mark), time.Time{}
}

func (m *model) seen() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sent
}

// take returns the exchanges since the last call, in order.
func (m *model) take() []exchange {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []exchange
	for _, t := range m.turns {
		out = append(out, *t)
	}
	m.turns = nil
	return out
}

// gaps are the times from an answer's end to the next request's arrival, in milliseconds.
func gaps(turns []exchange) Samples {
	var out Samples
	for i := 1; i < len(turns); i++ {
		out = append(out, ms(turns[i].arrived.Sub(turns[i-1].ended)))
	}
	return out
}

// calls is a step that calls one tool; Burst sends its last event and the end of the stream together.
func calls(tool string, input map[string]any) wiretest.Step {
	data, err := json.Marshal(input)
	check(err)
	return wiretest.Step{Chunk: -1, Burst: true, Calls: []wiretest.Call{{Name: tool, Input: data}}}
}

var says = wiretest.Step{Text: "Done.", Chunk: -1, Burst: true}
