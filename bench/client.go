package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// client is an editor that does nothing but answer: newline-delimited JSON-RPC to a child process. Permission requests
// are answered "once" at once.
type client struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	log   bytes.Buffer // the child's stderr; read after it has ended
	began time.Time    // just before the process was started
	ended chan struct{}

	next atomic.Int64

	mu      sync.Mutex // guards what follows, and writing
	pending map[int64]chan answer
	err     error
	// update hears every session/update, as it came, in the reader's goroutine.
	update  func(line []byte, at time.Time)
	asked   int       // permission requests so far
	askedAt time.Time // the last one
	// decide runs before a permission request is answered, in a goroutine of its own; nil answers at once.
	decide func(params json.RawMessage)
	// refused means that permission requests are answered with a rejection.
	refused bool
}

type answer struct {
	at     time.Time
	result json.RawMessage
	err    *struct {
		Code    int
		Message string
		Data    json.RawMessage
	}
}

// agent starts a program that speaks ACP.
func (b *bench) agent(env []string, program string, args ...string) *client {
	if program == b.bin {
		args = b.profiling(args)
	}
	c := &client{cmd: exec.CommandContext(b.ctx, program, args...), ended: make(chan struct{}), pending: map[int64]chan answer{}}
	c.cmd.Env, c.cmd.Dir, c.cmd.Stderr = env, b.dir, &c.log
	// Some agents are a script around a program, which would live on with its streams when only the script is killed.
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.cmd.Cancel = c.kill
	in, err := c.cmd.StdinPipe()
	check(err)
	out, err := c.cmd.StdoutPipe()
	check(err)
	c.in = in
	c.began = time.Now()
	check(c.cmd.Start())
	go c.read(out)
	return c
}

// profiling adds the flag that makes Pillion write profiles, each process into a folder of its own.
func (b *bench) profiling(args []string) []string {
	if b.profile == "" {
		return args
	}
	b.profiled++
	return append(args[:len(args):len(args)], "--profile", filepath.Join(b.profile, fmt.Sprint(b.profiled)))
}

// message is any line.
type message struct {
	ID     json.RawMessage
	Method string
	Result json.RawMessage
	Error  json.RawMessage
	Params json.RawMessage
}

var updateMethod = []byte(`"method":"session/update"`)

func (c *client) read(out io.Reader) {
	defer close(c.ended)
	r := bufio.NewReaderSize(out, 1<<20)
	for {
		line, err := r.ReadBytes('\n')
		at := time.Now()
		if len(line) > 0 {
			c.take(line, at)
		}
		if err != nil {
			c.mu.Lock()
			c.err = err
			for id, ch := range c.pending {
				close(ch)
				delete(c.pending, id)
			}
			c.mu.Unlock()
			return
		}
	}
}

func (c *client) take(line []byte, at time.Time) {
	if bytes.Contains(line[:min(len(line), 200)], updateMethod) {
		c.mu.Lock()
		f := c.update
		c.mu.Unlock()
		if f != nil {
			f(line, at)
		}
		return
	}
	var m message
	if json.Unmarshal(line, &m) != nil {
		return
	}
	switch {
	case m.Method == "session/request_permission":
		c.mu.Lock()
		c.asked++
		c.askedAt = at
		decide, kind := c.decide, "allow_once"
		if c.refused {
			kind = "reject_once"
		}
		c.mu.Unlock()
		answer := func() {
			c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":%q}}}`, m.ID, optionOf(m.Params, kind)))
		}
		if decide == nil {
			answer()
			return
		}
		go func() {
			decide(m.Params)
			answer()
		}()
	case m.Method != "" && len(m.ID) > 0:
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, m.ID))
	case m.Method == "":
		var id int64
		if json.Unmarshal(m.ID, &id) != nil {
			return
		}
		a := answer{at: at, result: m.Result}
		if len(m.Error) > 0 {
			_ = json.Unmarshal(m.Error, &a.err)
		}
		c.mu.Lock()
		ch := c.pending[id]
		delete(c.pending, id)
		c.mu.Unlock()
		if ch != nil {
			ch <- a
		}
	}
}

// optionOf is the option of a kind that a request for permission has; agents name theirs as they like.
func optionOf(params json.RawMessage, kind string) string {
	var asked struct {
		Options []struct{ OptionID, Kind string }
	}
	_ = json.Unmarshal(params, &asked)
	for _, o := range asked.Options {
		if o.Kind == kind {
			return o.OptionID
		}
	}
	return "once"
}

func (c *client) send(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = io.WriteString(c.in, line+"\n") // a dead child is noticed by the reader
}

// call asks and gives the answer and when it came.
func (c *client) call(method string, params any) (json.RawMessage, time.Time, error) {
	id := c.next.Add(1)
	ch := make(chan answer, 1)
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return nil, time.Time{}, fmt.Errorf("%s: the agent has ended: %w", method, c.err)
	}
	c.pending[id] = ch
	c.mu.Unlock()
	p, err := json.Marshal(params)
	if err != nil {
		return nil, time.Time{}, err
	}
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, p))
	a, ok := <-ch
	switch {
	case !ok:
		state := c.cmd.Wait()
		return nil, time.Time{}, fmt.Errorf("%s: %s has ended without an answer: %v %s", method, filepath.Base(c.cmd.Path), state, strings.TrimSpace(c.log.String()))
	case a.err != nil:
		return nil, a.at, fmt.Errorf("%s: %d %s %s", method, a.err.Code, a.err.Message, a.err.Data)
	}
	return a.result, a.at, nil
}

// initialize returns the time from starting the process to the answer, in milliseconds.
func (c *client) initialize() float64 {
	_, at, err := c.call("initialize", map[string]any{"protocolVersion": 1, "clientCapabilities": map[string]any{}})
	check(err)
	return ms(at.Sub(c.began))
}

func (c *client) newSession(cwd string) string {
	raw, _, err := c.call("session/new", map[string]any{"cwd": cwd, "mcpServers": []any{}})
	check(err)
	var r struct{ SessionID string }
	check(json.Unmarshal(raw, &r))
	return r.SessionID
}

// prompt runs a turn to its end.
func (c *client) prompt(session, text string) (time.Time, error) {
	raw, at, err := c.call("session/prompt", map[string]any{"sessionId": session, "prompt": []any{map[string]any{"type": "text", "text": text}}})
	if err != nil {
		return at, err
	}
	var r struct{ StopReason string }
	if err := json.Unmarshal(raw, &r); err != nil || r.StopReason != "end_turn" {
		return at, fmt.Errorf("the turn ended with %s", raw)
	}
	return at, nil
}

func (c *client) listen(f func(line []byte, at time.Time)) {
	c.mu.Lock()
	c.update = f
	c.mu.Unlock()
}

// beforeAnswering sets what runs before a permission request is answered.
func (c *client) beforeAnswering(decide func(params json.RawMessage)) {
	c.mu.Lock()
	c.decide = decide
	c.mu.Unlock()
}

// refuse makes the client reject what it is asked from now on.
func (c *client) refuse() {
	c.mu.Lock()
	c.refused = true
	c.mu.Unlock()
}

// close ends the child and waits for it.
func (c *client) close() {
	_ = c.in.Close()
	select {
	case <-c.ended:
	case <-time.After(5 * time.Second):
		_ = c.kill()
		<-c.ended
	}
	_ = c.cmd.Wait()
}

// kill ends the child with all that it has started.
func (c *client) kill() error { return syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL) }

// home makes a user's home of its own, with the configuration given, and returns the environment of a child in it.
func (b *bench) home(name string, config map[string]any) []string {
	home := filepath.Join(b.dir, "home-"+name)
	folder := filepath.Join(home, ".config", "pillion")
	check(os.MkdirAll(folder, 0o755))
	data, err := json.Marshal(config)
	check(err)
	check(os.WriteFile(filepath.Join(folder, "pillion.jsonc"), data, 0o644))
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "XDG_CONFIG_HOME=" + filepath.Join(home, ".config"),
		"XDG_STATE_HOME=" + filepath.Join(home, ".state"), "XDG_CACHE_HOME=" + filepath.Join(home, ".cache"), "NO_PROXY=*",
	}
}

// project makes an empty project.
func (b *bench) project(name string) string {
	dir := filepath.Join(b.dir, name)
	check(os.MkdirAll(dir, 0o755))
	real, err := filepath.EvalSymlinks(dir)
	check(err)
	return real
}

func (b *bench) write(path, text string) {
	check(os.MkdirAll(filepath.Dir(path), 0o755))
	check(os.WriteFile(path, []byte(text), 0o644))
}

// lines is a child that answers each line with one, as pillion tool call --jsonl does.
type lines struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func (b *bench) toolCalls(env []string, cwd string, more ...string) *lines {
	return b.toolCallsBy(nil, env, cwd, more...)
}

// toolCallsBy is toolCalls with a program that starts it, which may set limits; by is its command line, nil for none.
func (b *bench) toolCallsBy(by, env []string, cwd string, more ...string) *lines {
	argv := append(append(by[:len(by):len(by)], b.bin), b.profiling(append([]string{"tool", "call", "--jsonl", "--no-lsp", "--approve", "all", "--cwd", cwd}, more...))...)
	l := &lines{cmd: exec.CommandContext(b.ctx, argv[0], argv[1:]...)}
	l.cmd.Env, l.cmd.Dir, l.cmd.Stderr = env, cwd, os.Stderr
	in, err := l.cmd.StdinPipe()
	check(err)
	out, err := l.cmd.StdoutPipe()
	check(err)
	l.in, l.out = in, bufio.NewReaderSize(out, 1<<20)
	check(l.cmd.Start())
	return l
}

// call returns a tool's output and how long the answer took, in milliseconds.
func (l *lines) call(tool string, input map[string]any) (string, float64) {
	out, took, err := l.ask(tool, input)
	check(err)
	return out, took
}

// try is call where a refusal is an answer too; it says which it was.
func (l *lines) try(tool string, input map[string]any) string {
	_, took, err := l.ask(tool, input)
	if err != nil {
		return "refused"
	}
	return fmt.Sprintf("done in %.0f ms", took)
}

func (l *lines) ask(tool string, input map[string]any) (string, float64, error) {
	line, err := json.Marshal(map[string]any{"tool": tool, "input": input})
	check(err)
	began := time.Now()
	_, err = l.in.Write(append(line, '\n'))
	check(err)
	reply, err := l.out.ReadBytes('\n')
	took := ms(time.Since(began))
	check(err)
	var a struct {
		Output string
		Error  *struct{ Message string }
	}
	check(json.Unmarshal(reply, &a))
	if a.Error != nil {
		return "", took, fmt.Errorf("%s: %s", tool, a.Error.Message)
	}
	return a.Output, took, nil
}

func (l *lines) close() {
	_ = l.in.Close()
	_ = l.cmd.Wait()
}
