package custom

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/permission"
)

// The limits of one file's code. A person waits for both, and the turn with them.
const (
	loadLimit  = 30 * time.Second       // a file's top level, and a plugin's start
	abortGrace = 500 * time.Millisecond // a call that was aborted ends by itself, or its file is ended
)

// source is one loaded file in the child. A source never comes back to life: after its end, or after a change of the
// file, open makes another one, and calls look it up again (see current).
type source struct {
	host  *Host
	file  file
	unit  string          // names the file's worker in messages; new for each version of the file
	child *child          // in which it runs; a later child loads the file as another source
	hooks map[string]bool // the hooks that the file has; written before the source is published

	mu     sync.Mutex
	gone   chan struct{}  // closed when it has ended, under mu, so that it is closed once
	why    string         // guarded by mu
	busy   int            // guarded by mu: calls under way
	stale  bool           // guarded by mu: another version took its place; it ends with its last call
	slowed map[string]int // guarded by mu: by hook, how often it was cut off
}

// open bundles and loads a file and makes its tools. The person is told once, with file and line, of a file that cannot be
// loaded; it is not tried again before it or one of its imports changes.
func (h *Host) open(ctx context.Context, f file, running func() (*child, error)) unit {
	if f.kind == manifestFile {
		return h.openManifest(f)
	}
	u := unit{inputs: []string{f.path}}
	u.stamp = stampAll(u.inputs)
	fail := func(err error) unit {
		// An empty stamp never equals the file's, so the next look tries again.
		if ctx.Err() != nil {
			u.stamp = "" // not the file's fault: try again
			return u
		}
		h.notice("error", fmt.Sprintf("%s was not loaded: %v", f.path, err))
		return u
	}
	files, err := h.files()
	if err != nil {
		return fail(err)
	}
	b, err := bundleKept(f.path, files)
	if err != nil {
		return fail(err)
	}
	if b.passing {
		defer os.Remove(b.code) // it is read when it is loaded
	}
	child, err := running()
	if err != nil {
		return fail(err)
	}
	// The time makes the name another one for each version, so that a late message of the old worker never reaches the
	// new source.
	sum := sha256.Sum256([]byte(f.path))
	s := &source{host: h, file: f, child: child, gone: make(chan struct{}), unit: fmt.Sprintf("%s-%d", hex.EncodeToString(sum[:6]), time.Now().UnixNano())}
	// From here on a change of any import counts as well, and the stamp is of what went into the bundle, not of the
	// present files.
	u.inputs, u.stamp = b.inputs, b.stamp
	l, err := s.load(ctx, b.code)
	if err != nil {
		s.unload("end")
		return fail(err)
	}
	u.source = s
	s.hooks = map[string]bool{}
	for _, name := range l.Hooks {
		s.hooks[name] = true
		if !slices.Contains(known, name) {
			h.notice("warning", fmt.Sprintf("%s: the hook %s is not known here and is never called", f.path, name))
		}
	}
	// OpenCode lets a config hook change the configuration; here the person's file must say what counts.
	if l.Reconfigured {
		h.notice("warning", f.path+" changed the configuration in its config hook; that is not taken over. Put it into pillion.jsonc")
	}
	for _, t := range l.Tools {
		if t.Problem != "" {
			h.notice("warning", fmt.Sprintf("%s: the arguments of %s cannot be described to the model in full (%s); they are checked when it is called", f.path, t.Name, t.Problem))
		}
		u.tools = append(u.tools, s.tool(toolID(t.Name), t.Name, t.Description, t.Schema))
	}
	return u
}

// load has the child run the bundle and waits for what it holds. The unit is registered before the message is sent: a file
// whose top level crashes is reported as gone at once.
func (s *source) load(ctx context.Context, code string) (*loaded, error) {
	c := s.child
	id, answers := c.begin()
	defer c.forget(id)
	// See the doc comment: a crash between send and registration would be a message for an unknown unit, and load would
	// wait for its whole limit.
	c.mu.Lock()
	c.units[s.unit] = s
	c.mu.Unlock()
	kind := "tool"
	if s.file.kind == pluginFile {
		kind = "plugin"
	}
	stem := strings.TrimSuffix(filepath.Base(s.file.path), filepath.Ext(s.file.path))
	err := c.send(map[string]any{"op": "load", "id": id, "unit": s.unit, "kind": kind, "code": fileURL(code), "name": filepath.Base(s.file.path), "stem": stem,
		"directory": s.host.o.Directory, "worktree": s.host.o.Worktree, "options": s.file.options, "config": s.host.o.Config})
	if err != nil {
		return nil, err
	}
	timer := time.NewTimer(loadLimit)
	defer timer.Stop()
	select {
	case m := <-answers:
		if m.Error != nil {
			return nil, m.Error
		}
		if m.Loaded == nil {
			return nil, errors.New("an answer that cannot be read")
		}
		return m.Loaded, nil
	case <-s.gone:
		return nil, s.loss()
	case <-timer.C:
		return nil, fmt.Errorf("its top level did not come to an end within %s", loadLimit)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// retire ends the file's worker, once the calls under way have ended: they began with this version. The next version
// takes new calls meanwhile, so two workers of one file may run side by side.
func (s *source) retire() {
	s.mu.Lock()
	s.stale = true
	idle := s.busy == 0
	s.mu.Unlock()
	if idle {
		s.unload("dispose")
	}
}

// enter keeps the worker for a call; leave lets go of it. Callers must call leave exactly once; a missing call would keep
// a stale worker for good.
func (s *source) enter() (leave func()) {
	s.mu.Lock()
	s.busy++
	s.mu.Unlock()
	return func() {
		s.mu.Lock()
		s.busy--
		last := s.stale && s.busy == 0
		s.mu.Unlock()
		if last {
			s.unload("dispose")
		}
	}
}

// unload ends the file's worker: dispose lets a plugin clean up first, end does not. A send that fails means that the
// child has ended, and the worker with it.
func (s *source) unload(op string) {
	_ = s.child.send(map[string]any{"op": op, "unit": s.unit})
	s.markEnded("it was loaded anew")
}

// markEnded records that the file's code has ended, by itself or by us; the first reason stays. Everybody who waits for the
// file's code sees gone closed, so a call never hangs on a worker that has ended.
func (s *source) markEnded(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.gone:
	default:
		s.why = why
		close(s.gone)
	}
}

// over reports whether the file's code has ended.
func (s *source) over() bool {
	select {
	case <-s.gone:
		return true
	default:
		return false
	}
}

// loss is why the code has ended, after over.
func (s *source) loss() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.New(s.why)
}

// tool makes one of the file's tools ours. Arguments are checked before the person is asked, so that nobody decides about
// a call that cannot run; the code may be reloaded while the person decides, so it is looked up again after that.
func (s *source) tool(id, name, description string, schema json.RawMessage) tools.Tool {
	return tools.Tool{
		ID: id, Permission: id, Kind: tools.KindOther, Parameters: schema, Description: strings.TrimSpace(description), OwnCheck: true,
		// The order is look up, check, ask, look up, run: the question may stay open for hours, and the file may be saved
		// meanwhile.
		Run: func(ctx context.Context, input json.RawMessage, call *tools.Call) (tools.Result, error) {
			now, err := s.current(ctx)
			if err != nil {
				return tools.Result{}, err
			}
			if _, err := now.exchange(ctx, "check", name, input, call); err != nil { // before the person is asked
				return tools.Result{}, err
			}
			if err := allow(ctx, call, id, s.file.path, input); err != nil {
				return tools.Result{}, err
			}
			if now, err = now.current(ctx); err != nil {
				return tools.Result{}, err
			}
			raw, err := now.exchange(ctx, "call", name, input, call)
			if err != nil {
				return tools.Result{}, err
			}
			return result(raw)
		},
	}
}

// current is the file's code as it runs now: it may have crashed, or been saved, since the tools were made. The error is
// a *tools.Error of kind "unavailable".
func (s *source) current(ctx context.Context) (*source, error) {
	if !s.over() {
		return s, nil
	}
	if now := s.host.again(ctx, s.file.path); now != nil {
		return now, nil
	}
	return nil, &tools.Error{Kind: "unavailable", Message: fmt.Sprintf("%s cannot be loaded any more (%v). Tell the user.", s.file.path, s.loss())}
}

// again loads a file whose code has ended. It returns nil where the file cannot be loaded or is gone.
func (h *Host) again(ctx context.Context, path string) *source {
	h.mu.Lock()
	// Only an ended source gets an empty stamp: of two calls that notice the same crash, the second must not load the
	// file a second time.
	u := h.units[path]
	if u.source != nil && u.source.over() {
		u.stamp = ""
		h.units[path] = u
	}
	h.mu.Unlock()
	h.refresh(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.units[path].source
}

// allow asks for permission to call a custom tool or program. What it does cannot be known, so the question names its file.
// Added has the gate ignore the default rules' allow, which is meant for Pillion's own tools.
func allow(ctx context.Context, call *tools.Call, id, path string, input json.RawMessage) error {
	_, err := call.Ask(ctx, permission.Request{
		Permission: id, Patterns: []string{"*"}, Always: []string{"*"}, Added: true, Title: strings.TrimSpace(id + " " + tools.Cut(string(input), 160)),
		Why: "It is a custom tool (" + path + "), which may do anything you may.", Metadata: map[string]any{"file": path, "input": input},
	})
	return err
}

// exchange checks a call's arguments or runs it, shows what the tool tells of itself, and asks in its name. op is "check"
// or "call". It returns when the tool answers, when its code ends, or when ctx ends, whichever comes first.
func (s *source) exchange(ctx context.Context, op, name string, input json.RawMessage, call *tools.Call) (json.RawMessage, error) {
	c := s.child
	defer s.enter()()
	id, answers := c.begin()
	defer c.forget(id)
	err := c.send(map[string]any{"op": op, "id": id, "unit": s.unit, "name": name, "args": input, "context": map[string]any{
		"sessionID": call.SessionID, "messageID": call.MessageID, "callID": call.CallID, "agent": call.Agent}})
	if err != nil {
		return nil, &tools.Error{Kind: "unavailable", Message: "The process that runs custom tools has ended: " + err.Error() + ". Call again; it is started anew."}
	}
	for {
		select {
		case m := <-answers:
			switch {
			case m.Metadata != nil:
				call.Report(tools.Update{Title: m.Metadata.Title, Metadata: m.Metadata.Metadata})
			case m.Ask != nil:
				go s.ask(ctx, id, m, call) // a person takes their time; the tool may tell more meanwhile
			case m.Error != nil:
				return nil, toolError(s.file.path, m.Error)
			default:
				return m.Result, nil
			}
		case <-s.gone:
			return nil, &tools.Error{Kind: "crashed", Message: fmt.Sprintf("The tool's code (%s) ended during the call: %v. It is loaded anew at the next call.", s.file.path, s.loss())}
		case <-ctx.Done():
			s.abort(id, answers)
			return nil, ctx.Err()
		}
	}
}

// abort tells a call to end; one that does not is ended with its file, which is loaded anew when it is needed. The wait
// is short because the person has cancelled and looks at a turn that should be over.
func (s *source) abort(id int64, answers <-chan message) {
	if s.child.send(map[string]any{"op": "abort", "id": id, "unit": s.unit}) != nil {
		return
	}
	timer := time.NewTimer(abortGrace)
	defer timer.Stop()
	for {
		select {
		case m := <-answers:
			// Anything else is the call's answer: the code gave up by itself and may go on serving calls.
			if m.Metadata == nil && m.Ask == nil {
				return
			}
		case <-s.gone:
			return
		case <-timer.C:
			s.unload("end")
			return
		}
	}
}

// ask passes a permission request of a tool on to the gate and the answer back. Refusals reach the tool as an error. It
// runs on a goroutine of its own, because the answer may take hours. A child that has ended meanwhile is no error here.
func (s *source) ask(ctx context.Context, id int64, m message, call *tools.Call) {
	q := m.Ask
	_, err := call.Ask(ctx, permission.Request{Permission: q.Permission, Patterns: q.Patterns, Always: q.Always, Added: true, Metadata: q.Metadata,
		Title: q.Permission + " " + strings.Join(q.Patterns, ", "), Why: "The custom tool " + call.Tool + " asks (" + s.file.path + ")."})
	reply := map[string]any{"op": "reply", "id": id, "unit": s.unit, "n": q.N}
	if err != nil {
		reply["error"] = err.Error()
	}
	_ = s.child.send(reply)
}

// toolError is an exception of a tool's code as a tool error. Invalid arguments are the
// model's mistake and say what to rewrite; other exceptions are the tool's. The message is the tool's and may be of any
// length, so it is cut at 8 KiB.
func toolError(path string, e *remoteError) error {
	if e.Kind == "invalid" {
		return &tools.Error{Kind: "invalid", Message: "The arguments do not fit:\n" + e.Message + "\nRewrite the call so that they do."}
	}
	return &tools.Error{Kind: "custom", Message: tools.Cut(e.Error(), 8<<10), Err: e}
}

// result reads a call's answer; the error is for the model.
func result(raw json.RawMessage) (tools.Result, error) {
	var r struct {
		Title       string         `json:"title"`
		Output      string         `json:"output"`
		Metadata    map[string]any `json:"metadata"`
		Attachments []struct {
			Mime string `json:"mime"`
			Name string `json:"name"`
			Data []byte `json:"data"`
		} `json:"attachments"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return tools.Result{}, &tools.Error{Kind: "custom", Message: "The tool's answer has no shape that can be read: " + err.Error()}
	}
	out := tools.Result{Title: r.Title, Output: r.Output, Metadata: r.Metadata}
	for _, a := range r.Attachments {
		out.Attachments = append(out.Attachments, tools.Attachment{Mime: a.Mime, Name: a.Name, Data: a.Data})
	}
	return out, nil
}

// toolID is a name as providers take it. 64 characters is what every provider takes for a tool's name.
func toolID(name string) string {
	name = tools.Name(name)
	return name[:min(len(name), 64)]
}
