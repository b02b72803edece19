package custom

import (
	"cmp"
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

// The limits of one file's code. The turn, and with it the person, waits for both.
const (
	loadLimit  = 30 * time.Second       // for a file's top level and a plugin's start
	abortGrace = 500 * time.Millisecond // for a cancelled call to return by itself; after that its file's worker is ended
)

// source is one version of a file, loaded in the child. When its code has ended or the file has changed, open makes another source; calls
// look up the present one with current.
type source struct {
	host   *Host
	file   file
	unit   string          // names the file's worker in messages; new for each version of the file
	child  *child          // the process that it runs in
	hooks  map[string]bool // the hooks that the file has; written before take publishes the source, read-only after that
	config json.RawMessage // the configuration as its config hook left it; written as hooks is
	// signIns are the file's sign-ins; written as hooks is.
	signIns []SignIn

	mu     sync.Mutex
	gone   chan struct{}  // closed when it has ended, under mu, so that it is closed once
	why    string         // guarded by mu; the reason for the end
	busy   int            // guarded by mu; the number of running calls
	stale  bool           // guarded by mu; a newer version has replaced it, and it ends after its last call
	slowed map[string]int // guarded by mu; by hook, how often it did not answer in time
	// accounts are what its loaders said; by provider.
	accounts map[string]Account // guarded by mu
}

// open bundles and loads a file and makes its tools. If that fails, the person gets one notice with file and line, and the unit has no
// source; the file is tried again only when it or one of its imports has changed.
func (h *Host) open(ctx context.Context, f file, running func() (*child, error)) unit {
	if f.kind == manifestFile {
		return h.openManifest(f)
	}
	u := unit{inputs: []string{f.path}}
	u.stamp = stampAll(u.inputs)
	fail := func(err error) unit {
		// A cancelled turn is not the file's fault. An empty stamp never equals the file's, so the next refresh tries again.
		if ctx.Err() != nil {
			u.stamp = ""
			return u
		}
		h.notice("error", fmt.Sprintf("%s was not loaded: %v", f.path, err))
		return u
	}
	// The folder may have lost its trust since it was scanned.
	if err := h.o.reason(f.path).Check(); err != nil {
		return fail(err)
	}
	files, err := h.files()
	if err != nil {
		return fail(err)
	}
	b, err := bundleKept(f.path, files, h.runsInBun())
	if err != nil {
		return fail(err)
	}
	if b.passing {
		defer os.Remove(b.code) // the runtime has read it when load returns
	}
	child, err := running()
	if err != nil {
		return fail(err)
	}
	// The time makes the name of each version unique, so that a late message of the old worker never reaches the new source.
	sum := sha256.Sum256([]byte(f.path))
	s := &source{host: h, file: f, child: child, gone: make(chan struct{}), unit: fmt.Sprintf("%s-%d", hex.EncodeToString(sum[:6]), time.Now().UnixNano())}
	// From here on a change of any import reloads the file, and the stamp is of the files as they went into the bundle.
	u.inputs, u.stamp = b.inputs, b.stamp
	l, err := s.load(ctx, b.code)
	if err != nil {
		s.unload("end")
		return fail(err)
	}
	u.source = s
	s.hooks = map[string]bool{}
	var unknown, without []string
	for _, name := range l.Hooks {
		s.hooks[name] = true
		if !slices.Contains(known, name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		without = append(without, "its hooks "+strings.Join(unknown, ", ")+" are never called")
	}
	s.signIns, s.config = l.SignIns, l.Config
	var vague []string
	why := ""
	for _, t := range l.Tools {
		if t.Problem != "" {
			vague = append(vague, t.Name)
			why = cmp.Or(why, t.Problem)
		}
		u.tools = append(u.tools, s.tool(toolID(t.Name), t.Name, t.Description, t.Schema))
	}
	if len(vague) > 0 {
		without = append(without, fmt.Sprintf("the arguments of %s cannot be described to the model in full (%s), and are checked when it calls", strings.Join(vague, ", "), why))
	}
	// One line for a plugin, however much of it has no counterpart.
	if len(without) > 0 {
		h.notice("warning", f.path+" works in part: "+strings.Join(without, "; "))
	}
	return u
}

// load makes the child run the bundle and returns the tools and hooks that it exports. It waits for at most loadLimit.
func (s *source) load(ctx context.Context, code string) (*loaded, error) {
	c := s.child
	id, answers := c.begin()
	defer c.forget(id)
	// Registered before the message is sent: a file may crash in its top level at once, and a report about an unknown unit is dropped; load
	// would then wait for its whole limit.
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
		return nil, fmt.Errorf("its top level did not end within %s", loadLimit)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// retire ends the file's worker as soon as its running calls have ended. The next version already takes new calls, so two workers of one
// file may run side by side.
func (s *source) retire() {
	s.mu.Lock()
	s.stale = true
	idle := s.busy == 0
	s.mu.Unlock()
	if idle {
		s.unload("dispose")
	}
}

// enter counts a call, so that retire does not end the worker under it. The caller must call leave exactly once; without that, a stale
// worker would never end.
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

// unload ends the file's worker. op is "dispose", which lets a plugin clean up first, or "end", which does not. If the send fails, the
// child has ended, and the worker with it.
func (s *source) unload(op string) {
	_ = s.child.send(map[string]any{"op": op, "unit": s.unit})
	s.markEnded("it was loaded anew")
}

// markEnded records that the file's code has ended, by itself or through unload. It may be called repeatedly; the first reason stays. It
// closes gone, so no call waits for a worker that has ended.
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

// loss is the reason for the end of the file's code. It is set once over is true.
func (s *source) loss() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.New(s.why)
}

// tool wraps one of the file's tools as a tools.Tool. The arguments are checked before the approval request, so that the person is not
// asked about a call that cannot run.
func (s *source) tool(id, name, description string, schema json.RawMessage) tools.Tool {
	return tools.Tool{
		ID: id, Permission: id, Kind: tools.KindOther, Parameters: schema, Description: strings.TrimSpace(description), OwnCheck: true,
		// The source is looked up again after the approval request: it may stay open for hours, and the file may be saved meanwhile.
		Run: func(ctx context.Context, input json.RawMessage, call *tools.Call) (tools.Result, error) {
			now, err := s.current(ctx)
			if err != nil {
				return tools.Result{}, err
			}
			if _, err := now.exchange(ctx, "check", name, input, call); err != nil {
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

// current is the running version of the file: s, or after its end the source that has replaced it. The error is a *tools.Error of kind
// "unavailable".
func (s *source) current(ctx context.Context) (*source, error) {
	if !s.over() {
		return s, nil
	}
	if now := s.host.again(ctx, s.file.path); now != nil {
		return now, nil
	}
	return nil, &tools.Error{Kind: "unavailable", Message: fmt.Sprintf("%s can no longer be loaded (%v). Tell the user.", s.file.path, s.loss())}
}

// again reloads a file whose code has ended. It returns nil if the file cannot be loaded or does not exist any more.
func (h *Host) again(ctx context.Context, path string) *source {
	h.mu.Lock()
	// An empty stamp makes refresh load the file. Only an ended source gets one: of two calls that notice the same crash, the second must
	// not load the file a second time.
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

// allow asks for permission to call a custom tool or program. Its effects are unknown, so the approval request names its file. Added makes
// the gate ignore an allow of the default rules, which is meant for Pillion's own tools.
func allow(ctx context.Context, call *tools.Call, id, path string, input json.RawMessage) error {
	_, err := call.Ask(ctx, permission.Request{
		Permission: id, Patterns: []string{"*"}, Always: []string{"*"}, Added: true, Title: strings.TrimSpace(id + " " + tools.Cut(string(input), 160)),
		Why: "It is a custom tool (" + path + "), which may do anything you may.", Metadata: map[string]any{"file": path, "input": input},
	})
	return err
}

// exchange sends a call to the worker and returns its answer. op is "check", which only validates the arguments, or "call". Meanwhile it
// forwards the tool's progress reports and approval requests. It returns when the tool answers, its code ends, or ctx ends.
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
				go s.ask(ctx, id, m, call) // the tool may report progress while the person decides
			case m.Error != nil:
				return nil, toolError(s.file.path, m.Error)
			default:
				return m.Result, nil
			}
		case <-s.gone:
			return nil, &tools.Error{Kind: "crashed", Message: fmt.Sprintf("The tool's code (%s) ended during the call: %v. It is loaded again at the next call.", s.file.path, s.loss())}
		case <-ctx.Done():
			s.abort(id, answers)
			return nil, ctx.Err()
		}
	}
}

// abort asks a call to end. If it has not answered after abortGrace, its file's worker is ended, and the next call loads the file again.
// The grace is short because the person has cancelled and waits for the turn to end.
func (s *source) abort(id int64, answers <-chan message) {
	if s.child.send(map[string]any{"op": "abort", "id": id, "unit": s.unit}) != nil {
		return
	}
	timer := time.NewTimer(abortGrace)
	defer timer.Stop()
	for {
		select {
		case m := <-answers:
			// The call's answer: the code has ended the call by itself, so its worker can serve further calls.
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

// ask forwards a tool's approval request to the gate and returns the decision to the tool; a rejection reaches the tool as an error. It
// runs on a goroutine of its own, because the decision may take hours. If the child has ended by then, the reply is dropped.
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

// toolError converts an exception of a tool's code. Invalid arguments are the model's mistake, so the message tells it to rewrite the call;
// any other exception is of kind "custom". A tool's message may have any length, so it is cut at 8 KiB.
func toolError(path string, e *remoteError) error {
	if e.Kind == "invalid" {
		return &tools.Error{Kind: "invalid", Message: "The arguments do not fit:\n" + e.Message + "\nRewrite the call so that they do."}
	}
	return &tools.Error{Kind: "custom", Message: tools.Cut(e.Error(), 8<<10), Err: e}
}

// result decodes the answer of a tool or program; attachments are base64 in JSON. The error is for the model.
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
		return tools.Result{}, &tools.Error{Kind: "custom", Message: "The tool's answer has a form that cannot be read: " + err.Error()}
	}
	out := tools.Result{Title: r.Title, Output: r.Output, Metadata: r.Metadata}
	for _, a := range r.Attachments {
		out.Attachments = append(out.Attachments, tools.Attachment{Mime: a.Mime, Name: a.Name, Data: a.Data})
	}
	return out, nil
}

// toolID is a name reduced to the characters that providers allow in a tool's name, and to 64 of them, a length that every provider
// accepts.
func toolID(name string) string {
	name = tools.Name(name)
	return name[:min(len(name), 64)]
}
