package custom

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/tools/guard"
)

// maxLine bounds the memory that one message of the child may take. startLimit is for the first message of the runtime.
// stopGrace is longer than the second that host.mjs gives plugins to clean up (DISPOSE), so that a tidy end is not cut
// short; endGrace is for pipes that a program's own children keep open. oldestNode is what ErrNoRuntime asks for.
const (
	maxLine    = 64 << 20 // bytes of one message; a longer one is not read
	startLimit = 20 * time.Second
	endGrace   = 300 * time.Millisecond
	stopGrace  = 1500 * time.Millisecond // plugins clean up meanwhile
	oldestNode = 20
	maxTail    = 4 << 10 // bytes that are looked at of the beginning, and of the end, of a message that is too long
)

// child is the process that runs JavaScript. A Host has at most one that lives. It is never started again: running makes
// another.
type child struct {
	cmd     *exec.Cmd
	stdin   io.WriteCloser // written to with write held
	token   string         // in each line of ours from the child: tools print to the same standard output
	files   string         // folder of the host's own files and of bundles
	stderr  *guard.Tail
	exited  chan struct{} // closed when it has ended
	runtime string

	write sync.Mutex // one line at a time

	mu      sync.Mutex
	waiting map[int64]chan message // guarded by mu; by id
	units   map[string]*source     // guarded by mu
	last    int64                  // guarded by mu
	reason  string                 // guarded by mu: why it ended
}

// message is a line from the child. At most one of the fields behind Unit is set. The shapes are those that host.mjs and
// worker.mjs write.
type message struct {
	Token string `json:"token"`
	ID    int64  `json:"id"`
	Unit  string `json:"unit"`
	Gone  string `json:"gone"`
	Hello *struct {
		Runtime, Version string
	} `json:"hello"`
	Loaded   *loaded         `json:"loaded"`
	Result   json.RawMessage `json:"result"`
	Error    *remoteError    `json:"error"`
	Metadata *struct {
		Title    string         `json:"title"`
		Metadata map[string]any `json:"metadata"`
	} `json:"metadata"`
	Client *clientCall `json:"client"`
	Ask    *struct {
		N          int            `json:"n"`
		Permission string         `json:"permission"`
		Patterns   []string       `json:"patterns"`
		Always     []string       `json:"always"`
		Metadata   map[string]any `json:"metadata"`
	} `json:"ask"`
}

// loaded is what a file turned out to hold.
type loaded struct {
	Tools []struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Schema      json.RawMessage `json:"schema"`
		Problem     string          `json:"problem"`
	} `json:"tools"`
	Hooks        []string `json:"hooks"`
	Reconfigured bool     `json:"reconfigured"` // a plugin changed the configuration it was shown
}

// remoteError is what went wrong in the person's code; At is its place there.
type remoteError struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
	At      string `json:"at"`
	Name    string `json:"name"`
}

// Error is the message with the place in the person's file, which the bundle's source map
// gives.
func (e *remoteError) Error() string {
	if e.At != "" {
		return e.Message + " (" + strings.TrimPrefix(e.At, "file://") + ")"
	}
	return e.Message
}

// ErrNoRuntime: there is nothing to run JavaScript with.
var ErrNoRuntime = errors.New("custom tools and plugins in JavaScript need Node.js 20 or newer, Bun or Deno on PATH; install one, or set js_runtime in the configuration")

// running returns the child and starts one when none lives. The caller holds load, or refresh, which holds it, waits for
// the caller. A start that ctx cuts short leaves no child behind.
func (h *Host) running(ctx context.Context) (*child, error) {
	h.mu.Lock()
	c := h.child
	h.mu.Unlock()
	if c != nil && !c.dead() {
		return c, nil
	}
	c, err := h.startChild(ctx)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	h.child = c
	h.mu.Unlock()
	return c, nil
}

// findRuntime returns the program that runs JavaScript and its arguments before the script. Deno asks for permissions at
// the terminal unless it has them all; the person's own tools run with the person's rights in every runtime. Source maps
// make errors name the person's TypeScript lines instead of the bundle's.
func findRuntime(configured string) (string, []string, error) {
	names := []string{"node", "bun", "deno"}
	if configured != "" {
		names = []string{configured}
	}
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		base := strings.TrimSuffix(filepath.Base(path), ".exe")
		switch {
		case strings.HasPrefix(base, "deno"):
			return path, []string{"run", "--allow-all", "--quiet"}, nil
		case strings.HasPrefix(base, "bun"):
			return path, []string{"run"}, nil
		}
		return path, []string{"--enable-source-maps", "--no-warnings"}, nil
	}
	return "", nil, ErrNoRuntime
}

// startChild starts the child and waits for its first message, at most 20 seconds. A pipe of our own is its standard output:
// with cmd.StdoutPipe, Wait would close it before the last lines are read.
func (h *Host) startChild(ctx context.Context) (*child, error) {
	if h.ctx.Err() != nil {
		return nil, errors.New("this host was closed")
	}
	program, args, err := findRuntime(h.o.Runtime)
	if err != nil {
		return nil, err
	}
	files, err := h.files()
	if err != nil {
		return nil, err
	}
	// The token goes by the environment, which host.mjs deletes before the person's code can read it: that code could
	// otherwise forge answers.
	c := &child{token: rand.Text(), files: files, stderr: &guard.Tail{}, exited: make(chan struct{}), waiting: map[int64]chan message{}, units: map[string]*source{}}
	c.cmd = guard.Command(guard.Tool, slices.Concat([]string{program}, args, []string{filepath.Join(files, "host.mjs")})...)
	c.cmd.Dir = h.o.Directory
	c.cmd.Env = append(c.cmd.Env, "PILLION_HOST_TOKEN="+c.token, "PILLION_HOST_MEMORY="+strconv.Itoa(h.o.Memory))
	c.cmd.Stderr = c.stderr
	c.cmd.WaitDelay = endGrace
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c.cmd.Stdout = w
	// A group of its own lets KillGroup end what tools have started, too.
	guard.OwnGroup(c.cmd)
	start := h.o.Start
	if start == nil {
		start = (*exec.Cmd).Start
	}
	err = start(c.cmd)
	// Our copy of the writing end must be closed, or read would wait for the end of a pipe that we hold open ourselves.
	_ = w.Close()
	if err != nil {
		_ = r.Close()
		return nil, fmt.Errorf("starting %s: %w", program, err)
	}
	hello := make(chan message, 1)
	h.closed.Go(func() { c.read(r, hello) })
	h.closed.Go(func() {
		err := c.cmd.Wait()
		guard.KillGroup(c.cmd)
		c.over(err)
	})
	timer := time.NewTimer(startLimit)
	defer timer.Stop()
	select {
	case m := <-hello:
		c.runtime = m.Hello.Runtime + " " + m.Hello.Version
		if major, _, _ := strings.Cut(strings.TrimPrefix(m.Hello.Version, "v"), "."); m.Hello.Runtime == "node" && atoi(major) < oldestNode {
			c.stop()
			return nil, fmt.Errorf("%s is Node.js %s: %w", program, m.Hello.Version, ErrNoRuntime)
		}
		return c, nil
	case <-c.exited:
		return nil, fmt.Errorf("%s ended at once: %s", program, c.why())
	case <-timer.C:
		c.stop()
		return nil, fmt.Errorf("%s did not start within %s", program, startLimit)
	case <-ctx.Done():
		c.stop()
		return nil, ctx.Err()
	}
}

// atoi reads a major version of Node.js; 0 for anything else, which is older than any supported version.
func atoi(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

// read takes the child's lines. A line without the token was printed by a program that it started. Of a line over maxLine
// only the beginning and the end are kept; its call is answered with an error.
func (c *child) read(r io.ReadCloser, hello chan<- message) {
	defer r.Close()
	in := bufio.NewReaderSize(r, 64<<10)
	var line []byte
	var tail []byte // the last bytes of a line that is too long: host.mjs writes the token at the end
	long := false
	for {
		part, more, err := in.ReadLine()
		if err != nil {
			return
		}
		if long = long || len(line)+len(part) > maxLine; !long {
			line = append(line, part...)
		} else {
			tail = append(tail, part...)
			tail = tail[max(0, len(tail)-maxTail):]
		}
		if more || len(line) == 0 && !long {
			continue
		}
		var m message
		if !long && json.Unmarshal(line, &m) == nil && m.Token == c.token {
			c.take(m, hello)
		} else if !long {
			_, _ = c.stderr.Write(append(line, '\n'))
		} else if id, ours := c.longAnswer(line, tail); ours {
			c.take(message{ID: id, Error: &remoteError{Kind: "too_long", Message: fmt.Sprintf("the answer is longer than %d MiB", maxLine>>20)}}, hello)
		}
		line, tail, long = line[:0], nil, false
		// The memory of one long answer is given back; otherwise it stays for the process's life.
		if cap(line) > 1<<20 {
			line = nil
		}
	}
}

// longAnswer is the call that a line over maxLine answers, by its beginning and its end; false where no call waits for it.
// What a tool reports on its way is not an answer and may be lost; a question to the person must be answered.
func (c *child) longAnswer(line, tail []byte) (id int64, ours bool) {
	if !bytes.HasSuffix(tail, []byte(`"token":"`+c.token+`"}`)) {
		return 0, false
	}
	in := json.NewDecoder(bytes.NewReader(line[:min(len(line), maxTail)]))
	if _, err := in.Token(); err != nil { // the opening brace
		return 0, false
	}
	for in.More() {
		name, err := in.Token()
		if err != nil {
			return 0, false
		}
		switch name {
		case "id":
			err = in.Decode(&id)
		case "result", "loaded", "error", "ask":
			return id, id != 0
		default:
			return 0, false
		}
		if err != nil {
			return 0, false
		}
	}
	return 0, false
}

// take hands a message to who waits for it. It runs on the only reader, so it must not wait for long: answers have room (see
// begin), and what a plugin asks through its client is served by a goroutine.
func (c *child) take(m message, hello chan<- message) {
	if m.Hello != nil {
		select {
		case hello <- m:
		default:
		}
		return
	}
	c.mu.Lock()
	if m.Gone != "" {
		s := c.units[m.Unit]
		delete(c.units, m.Unit)
		c.mu.Unlock()
		if s != nil {
			s.markEnded(m.Gone)
		}
		return
	}
	if s := c.units[m.Unit]; m.Client != nil {
		c.mu.Unlock()
		if s != nil {
			s.host.closed.Go(func() { s.serve(*m.Client) })
		}
		return
	}
	if s := c.units[m.Unit]; m.ID == 0 && m.Error != nil && s != nil { // an event's hook: no call waits for its answer
		c.mu.Unlock()
		s.host.notice("warning", fmt.Sprintf("%s: event: %v", s.file.path, m.Error))
		return
	}
	to := c.waiting[m.ID]
	// Metadata and questions come before the answer, so the place stays until the answer itself.
	if m.Metadata == nil && m.Ask == nil {
		delete(c.waiting, m.ID)
	}
	c.mu.Unlock()
	if to != nil {
		to <- m
	}
}

// begin makes a place for the answers to a message and returns its id. forget must follow.
func (c *child) begin() (int64, chan message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	// Room for 64 messages lets a tool report progress while the call's goroutine is busy, without blocking every other
	// file's messages.
	to := make(chan message, 64)
	c.waiting[c.last] = to
	return c.last, to
}

// forget gives a place up; what comes for it is dropped.
func (c *child) forget(id int64) {
	c.mu.Lock()
	delete(c.waiting, id)
	c.mu.Unlock()
}

// send writes one message. It may block while the child does not read, and fails when the child has ended. Writing is
// serialized by its own lock, not mu: a child that does not read must not keep read from handing out answers.
func (c *child) send(m map[string]any) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	c.write.Lock()
	defer c.write.Unlock()
	_, err = c.stdin.Write(append(b, '\n'))
	return err
}

// dead reports whether the process has ended. Calls that are under way find out by their
// own channel.
func (c *child) dead() bool {
	select {
	case <-c.exited:
		return true
	default:
		return false
	}
}

// over records why the child has ended and tells all files that ran in it, once, after Wait. The reason is set before
// exited is closed, so whoever sees the channel closed may read why.
func (c *child) over(err error) {
	text := "it ended"
	if err != nil {
		text = err.Error()
	}
	if last := c.stderr.Last(); last != "" {
		text += ": " + last
	}
	c.mu.Lock()
	c.reason = text
	units := c.units
	c.units = map[string]*source{}
	c.mu.Unlock()
	close(c.exited)
	for _, s := range units {
		s.markEnded(text)
	}
}

// why is the reason for the end, for messages; empty while the child runs.
func (c *child) why() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reason
}

// stop ends it: first by closing its input, then by force. It returns after the process has ended, so callers may start
// another one. The input is closed without its lock: a send to a child that does not read holds the lock until then.
func (c *child) stop() {
	_ = c.stdin.Close()
	select {
	case <-c.exited:
	case <-time.After(stopGrace):
		guard.KillGroup(c.cmd)
		<-c.exited
	}
}
