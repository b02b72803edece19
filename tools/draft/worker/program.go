package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/tools/guard"
	"github.com/pillion-dev/pillion/tools/shell/sandbox"
)

// ProgramSpec is a program that runs in the view for longer than a call, such as an external agent. The worker starts it, because only
// its children share its mounts: with a second mount of the same layer the behaviour would be undefined (overlayfs.rst).
type ProgramSpec struct {
	Argv []string
	Dir  string   // the path in the view
	Env  []string // NAME=value; the whole environment
	// Writable are places outside the project that it may write to, where the system has a sandbox. The network is open.
	Writable []string
}

// Program is a running ProgramSpec, with its standard streams in the host.
type Program struct {
	c   *Client
	key int64

	out    *stream
	errors io.Writer
	exited chan struct{} // closed when the program or the worker has ended
	once   sync.Once
	how    error // read after exited
}

// The messages about programs. Data is base64 in JSON; an agent's messages are small.
type programParams struct {
	Key  int64
	Spec ProgramSpec `json:",omitzero"`
}

type programData struct {
	Key  int64
	Err  bool   // standard error
	Data []byte // empty: the end of the input
}

type programEnd struct {
	Key int64
	Why string // empty: it ended with success
}

const (
	methodProgram = "program" // host to worker: start
	methodInput   = "input"   // host to worker: notification, programData
	methodKill    = "kill"    // host to worker: notification, programParams
	methodOutput  = "output"  // worker to host: notification, programData
	methodExited  = "exited"  // worker to host: notification, programEnd
)

// StartProgram starts a program in the view. stderr gets what it writes to standard error.
func (c *Client) StartProgram(ctx context.Context, spec ProgramSpec, stderr io.Writer) (*Program, error) {
	p := &Program{c: c, out: newStream(), errors: stderr, exited: make(chan struct{})}
	c.mu.Lock()
	c.last++
	p.key = c.last
	if c.programs == nil {
		c.programs = map[int64]*Program{}
	}
	c.programs[p.key] = p
	c.mu.Unlock()
	if err := c.peer.Call(ctx, methodProgram, programParams{p.key, spec}, nil); err != nil {
		p.end(err)
		return nil, err
	}
	go func() { // the program ends with the worker
		select {
		case <-c.ended:
			p.end(errors.New("the draft it worked in was closed"))
		case <-p.exited:
		}
	}()
	return p, nil
}

// Write sends bytes to the program's standard input. It does not wait until they are read.
func (p *Program) Write(b []byte) (int, error) {
	select {
	case <-p.exited:
		return 0, io.ErrClosedPipe
	default:
	}
	if err := p.c.peer.Notify(context.Background(), methodInput, programData{Key: p.key, Data: b}); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Close ends the program's standard input.
func (p *Program) Close() error {
	return p.c.peer.Notify(context.Background(), methodInput, programData{Key: p.key})
}

// Output is the program's standard output. Closing it drops what was not read.
func (p *Program) Output() io.ReadCloser { return p.out }

// Exited is closed when the program has ended.
func (p *Program) Exited() <-chan struct{} { return p.exited }

// Err says how the program ended, once Exited is closed; nil: with success.
func (p *Program) Err() error { return p.how }

// Kill ends the program. It does not wait for its end.
func (p *Program) Kill() {
	_ = p.c.peer.Notify(context.Background(), methodKill, programParams{Key: p.key})
}

// end notes how the program ended, once.
func (p *Program) end(err error) {
	p.once.Do(func() {
		p.c.mu.Lock()
		delete(p.c.programs, p.key)
		p.c.mu.Unlock()
		p.how = err
		p.out.end()
		close(p.exited)
	})
}

// programMessage handles the worker's messages about programs; ok is false for other methods. It must not wait, or a slow reader of one
// program's output would delay all messages of the worker; so output is kept until it is read.
func (c *Client) programMessage(r *rpc.Request) (ok bool, err error) {
	var d programData
	var e programEnd
	switch r.Method {
	case methodOutput:
		err = json.Unmarshal(r.Params, &d)
	case methodExited:
		err = json.Unmarshal(r.Params, &e)
	default:
		return false, nil
	}
	if err != nil {
		return true, err
	}
	c.mu.Lock()
	p := c.programs[max(d.Key, e.Key)]
	c.mu.Unlock()
	switch {
	case p == nil: // it has ended
	case r.Method == methodExited && e.Why != "":
		p.end(errors.New(e.Why))
	case r.Method == methodExited:
		p.end(nil)
	case d.Err:
		_, _ = p.errors.Write(d.Data)
	default:
		p.out.put(d.Data)
	}
	return true, nil
}

// stream is a pipe with an unlimited buffer, so that a writer never waits.
type stream struct {
	mu   sync.Mutex
	more *sync.Cond
	b    bytes.Buffer // guarded by mu
	over bool         // guarded by mu: nothing comes any more
}

func newStream() *stream {
	s := &stream{}
	s.more = sync.NewCond(&s.mu)
	return s
}

func (s *stream) put(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.b.Write(b)
	}
	s.more.Broadcast()
}

func (s *stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	s.more.Broadcast()
}

// Read implements io.Reader. It waits for bytes or the end.
func (s *stream) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.b.Len() == 0 {
		if s.over {
			return 0, io.EOF
		}
		s.more.Wait()
	}
	return s.b.Read(p)
}

// Close implements io.Closer.
func (s *stream) Close() error {
	s.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.b.Reset()
	return nil
}

// running is a program in the worker.
type running struct {
	cmd *exec.Cmd
	in  *stream // input that it has not read yet; a program that does not read must not delay the worker's other messages
}

// startProgram is methodProgram in the worker.
func (s *server) startProgram(p programParams) error {
	argv, env := p.Spec.Argv, p.Spec.Env
	if len(argv) == 0 {
		return rpc.InvalidParams("no program was named")
	}
	var box *sandbox.Box
	var helper *os.File
	if sandbox.Probe().Usable() {
		// It may write in the draft and to its own state. An external agent needs the network for its maker's service.
		box = sandbox.New(sandbox.Options{Root: s.env.Root, Dir: p.Spec.Dir, Extra: []string{s.env.Cwd}, Home: s.env.Home, Writable: p.Spec.Writable, Network: true})
		helper = box.ForHelper()
		defer helper.Close() // of nil too
		program, args, err := box.Argv(argv[0], argv[1:])
		if err != nil {
			return err
		}
		argv, env = append([]string{program}, args...), box.Environ(env)
	}
	cmd := guard.Command(guard.Agent, argv...)
	cmd.Dir, cmd.Env = p.Spec.Dir, env
	if helper != nil {
		cmd.ExtraFiles = []*os.File{helper}
	}
	guard.OwnGroup(cmd)
	if cmd.SysProcAttr == nil { // Windows has no groups
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	if box != nil {
		box.Attributes(cmd.SysProcAttr)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = notified{s.peer, p.Key, false}, notified{s.peer, p.Key, true}
	cmd.WaitDelay = programGrace
	err = guard.Start(cmd)
	if box != nil {
		box.Supervise() // also after a failed start: it ends then
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	if s.programs == nil {
		s.programs = map[int64]*running{}
	}
	input := newStream()
	s.programs[p.Key] = &running{cmd, input}
	s.mu.Unlock()
	go func() {
		_, _ = io.Copy(in, input) // ends with the input, or when the program has ended
		_ = in.Close()
	}()
	go func() {
		err := cmd.Wait() // after the last output was sent
		guard.KillGroup(cmd)
		input.end()
		box.Release(cmd.Process.Pid) // of nil too
		s.mu.Lock()
		delete(s.programs, p.Key)
		s.mu.Unlock()
		end := programEnd{Key: p.Key}
		if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
			end.Why = err.Error()
		}
		_ = s.peer.Notify(context.Background(), methodExited, end)
	}()
	return nil
}

// programGrace is how long the worker waits for output of a program's children after the program has ended.
const programGrace = 3 * time.Second

// notified sends what is written to it to the host.
type notified struct {
	peer *rpc.Peer
	key  int64
	err  bool
}

func (n notified) Write(b []byte) (int, error) {
	if err := n.peer.Notify(context.Background(), methodOutput, programData{Key: n.key, Err: n.err, Data: b}); err != nil {
		return 0, err
	}
	return len(b), nil
}

// toProgram is methodInput and methodKill in the worker. A program that has ended gets nothing.
func (s *server) toProgram(key int64, f func(*running)) {
	s.mu.Lock()
	p := s.programs[key]
	s.mu.Unlock()
	if p != nil {
		f(p)
	}
}
