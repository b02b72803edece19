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

// The limits of the child and its messages.
const (
	maxLine    = 64 << 20                // bytes of one message; a longer one is answered with an error
	startLimit = 20 * time.Second        // until the runtime's first message
	endGrace   = 300 * time.Millisecond  // for pipes that a program's own children keep open after its end
	stopGrace  = 1500 * time.Millisecond // for the child's end; longer than the second that host.mjs gives plugins to clean up (DISPOSE)
	oldestNode = 20                      // major version of Node.js, the one that ErrNoRuntime names
	maxTail    = 4 << 10                 // bytes examined at the beginning and at the end of a message that is too long
)

// child is the process that runs JavaScript. A Host has at most one running child. A child that has ended is not restarted: the method
// running starts another.
type child struct {
	cmd     *exec.Cmd
	stdin   io.WriteCloser // written to with write held
	token   string         // in each message of the child: tools may print to the same standard output, and must not forge messages
	files   string         // folder of the host's own files and of bundles
	stderr  *guard.Tail    // what the child wrote last, for error messages
	exited  chan struct{}  // closed when the process has ended and reason is set
	runtime string         // name and version, for people

	write sync.Mutex // one line at a time

	mu      sync.Mutex
	waiting map[int64]chan message // guarded by mu; where answers go, by id
	units   map[string]*source     // guarded by mu; the files loaded in the child, by unit
	last    int64                  // guarded by mu; the latest id
	reason  string                 // guarded by mu; why the child ended
}

// message is a line from the child, a JSON object as host.mjs and worker.mjs write it. At most one of the fields after Unit is set.
type message struct {
	Token string `json:"token"`
	ID    int64  `json:"id"`   // of the request that it answers; 0: none
	Unit  string `json:"unit"` // the file whose code sent it
	Gone  string `json:"gone"` // why the file's worker has ended
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
	Head   *struct {
		Status  int         `json:"status"`
		Headers [][2]string `json:"headers"`
	} `json:"head"` // of the answer to a request that a plugin's fetch makes
	Chunk  []byte `json:"chunk"`  // a piece of its body
	Notice string `json:"notice"` // a failure that concerns no call
	Ask    *struct {
		N          int            `json:"n"`
		Permission string         `json:"permission"`
		Patterns   []string       `json:"patterns"`
		Always     []string       `json:"always"`
		Metadata   map[string]any `json:"metadata"`
	} `json:"ask"`
}

// loaded is what a file contains: the tools and hooks that it exports.
type loaded struct {
	Tools []struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Schema      json.RawMessage `json:"schema"`
		Problem     string          `json:"problem"`
	} `json:"tools"`
	Hooks   []string        `json:"hooks"`
	SignIns []SignIn        `json:"signIns"` // of its auth hooks
	Config  json.RawMessage `json:"config"`  // the configuration as the config hook left it; absent: it changed nothing
}

// remoteError is an error in the person's code. At is its place there, as a file URL with line and column.
type remoteError struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
	At      string `json:"at"`
	Name    string `json:"name"`
}

// Error is the message with the place in the person's own file: the runtime maps it back from the bundle through the source map.
func (e *remoteError) Error() string {
	if e.At != "" {
		return e.Message + " (" + strings.TrimPrefix(e.At, "file://") + ")"
	}
	return e.Message
}

// ErrNoRuntime means that no program to run JavaScript was found, or only a Node.js older than oldestNode.
var ErrNoRuntime = errors.New("custom tools and plugins in JavaScript need Node.js 20 or newer, Bun or Deno on PATH; install one, or set js_runtime in the configuration (\"bun@1.4.4\" has npm install Bun)")

// running returns the running child, or starts one. Host.load is held, by the caller or by the refresh that waits for it, so only one child
// is started. If ctx ends during the start, no child is left behind.
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

// findRuntime returns the program that runs JavaScript and its arguments before the script. Deno gets all permissions, as it would ask for
// them at a terminal: the person's own tools have the person's rights in every runtime. For Node, --enable-source-maps makes errors name
// the lines of the person's TypeScript and not of the bundle.
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

// startChild starts the child and waits up to startLimit for its first message. Its standard output is a pipe made here: one made by
// cmd.StdoutPipe would be closed by Wait before the last lines are read.
func (h *Host) startChild(ctx context.Context) (*child, error) {
	if h.ctx.Err() != nil {
		return nil, errors.New("this host was closed")
	}
	program, args, err := h.found(ctx)
	if err != nil {
		return nil, err
	}
	files, err := h.files()
	if err != nil {
		return nil, err
	}
	// The token is passed in the environment. host.mjs deletes the variable before the person's code runs, which could otherwise forge
	// messages.
	c := &child{token: rand.Text(), files: files, stderr: &guard.Tail{}, exited: make(chan struct{}), waiting: map[int64]chan message{}, units: map[string]*source{}}
	reason := h.o.Reason
	reason.Who = guard.Tool
	c.cmd = guard.CommandFor(context.Background(), reason, slices.Concat([]string{program}, args, []string{filepath.Join(files, "host.mjs")})...)
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
	// With a process group of its own, KillGroup also ends the processes that tools have started.
	guard.OwnGroup(c.cmd)
	start := h.o.Start
	if start == nil {
		start = (*exec.Cmd).Start
	}
	err = start(c.cmd)
	// With a copy of the write end open in this process, read would never see the end of the pipe.
	_ = w.Close()
	if err != nil {
		_ = r.Close()
		return nil, fmt.Errorf("starting %s: %w", program, err)
	}
	hello := make(chan message, 1)
	h.closed.Go(func() { c.read(r, hello) })
	h.closed.Go(func() {
		err := c.cmd.Wait()
		// Before over: once callers know of the end they may start another child, which must not meet processes of this one.
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

// read reads the child's lines until the pipe is closed. A line without the token was printed by a tool or a program that it started,
// and goes to the same tail as standard error. Of a line longer than maxLine only the beginning and the end are kept, and its call fails.
func (c *child) read(r io.ReadCloser, hello chan<- message) {
	defer r.Close()
	in := bufio.NewReaderSize(r, 64<<10)
	var line []byte
	var tail []byte // the last maxTail bytes of a line that is too long: host.mjs writes the token at the end
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
		// Frees the buffer of a long message, which would otherwise stay allocated as long as the child runs.
		if cap(line) > 1<<20 {
			line = nil
		}
	}
}

// longAnswer finds the id of the call that a line longer than maxLine belongs to, from the line's beginning (id and kind) and end (token).
// ours is false if the token is missing or no call waits: a progress report may be lost, but an answer or an approval request must fail
// the call, which would otherwise wait forever.
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

// take delivers a message to the call that waits for it. It runs on the only reading goroutine, so it must not block: channels for answers
// are buffered (see begin), and a plugin's client calls are served by goroutines of their own.
func (c *child) take(m message, hello chan<- message) {
	// hello has room for one message, the first; a second one must not block the reader.
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
	if s := c.units[m.Unit]; m.Notice != "" {
		c.mu.Unlock()
		if s != nil {
			s.host.notice("warning", s.file.path+": "+m.Notice)
		}
		return
	}
	if s := c.units[m.Unit]; m.ID == 0 && m.Error != nil && s != nil { // the hook of an event failed; no call waits for it, see Event
		c.mu.Unlock()
		s.host.notice("warning", fmt.Sprintf("%s: event: %v", s.file.path, m.Error))
		return
	}
	to := c.waiting[m.ID]
	// Progress reports and approval requests precede the answer, so the call stays registered until the answer itself.
	if m.Metadata == nil && m.Ask == nil && m.Head == nil && m.Chunk == nil {
		delete(c.waiting, m.ID)
	}
	c.mu.Unlock()
	if to != nil {
		to <- m
	}
}

// begin registers a request and returns its id and the channel for its answers. The caller must call forget when it waits no longer.
func (c *child) begin() (int64, chan message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	// A buffer of 64 messages lets a tool report progress while the call's goroutine is busy. When it is full, take blocks, and with it the
	// messages of all files.
	to := make(chan message, 64)
	c.waiting[c.last] = to
	return c.last, to
}

// forget removes a request; messages that still arrive for it are dropped.
func (c *child) forget(id int64) {
	c.mu.Lock()
	delete(c.waiting, id)
	c.mu.Unlock()
}

// send writes one message. It blocks while the child does not read, and fails when the child has ended. Writes are serialized by the lock
// write and not by mu: read needs mu to deliver answers, also while the child does not read.
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

// dead reports whether the process has ended. Running calls notice it by source.gone.
func (c *child) dead() bool {
	select {
	case <-c.exited:
		return true
	default:
		return false
	}
}

// over records why the child has ended and marks all its files as ended. It is called once, after Wait. The reason is set before exited is
// closed, so whoever sees the channel closed may call why.
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

// why is the reason for the child's end, for messages; empty while it runs.
func (c *child) why() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reason
}

// stop ends the child: it closes the child's standard input and kills the process group after stopGrace. It returns when the process has
// ended, so callers may start another. The input is closed without the lock write, which a send to a child that does not read holds.
func (c *child) stop() {
	_ = c.stdin.Close()
	select {
	case <-c.exited:
	case <-time.After(stopGrace):
		guard.KillGroup(c.cmd)
		<-c.exited
	}
}
