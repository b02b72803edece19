package custom

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/pillion-dev/pillion/tools"
)

// The errors of Options.Client that a plugin can tell apart. ErrNoMethod means that Pillion does not offer this method of OpenCode's client,
// which a plugin may be able to do without. ErrNotFound means that a name or id does not exist.
var (
	ErrNoMethod = errors.New("no such method")
	ErrNotFound = errors.New("not found")
)

// The methods that this package serves itself; all others go to Options.Client.
const (
	clientLog   = "app.log"
	clientToast = "tui.showToast"
)

// clientLimit is how long a plugin's client call may take. It equals DefaultHookLimit, the limit of a hook that waits for the call.
const clientLimit = 10 * time.Second

// clientCall is a call of a plugin's client. N pairs the answer with the call in the plugin's worker.
type clientCall struct {
	N      int64           `json:"n"`
	Method string          `json:"method"` // session.get
	Args   json.RawMessage `json:"args"`
}

// Args are the arguments of a plugin's client call, from either form: {path: {id}, query, body}, or all in one flat object.
type Args struct {
	ID      string          // of a session
	Message string          // of a message in it
	Limit   int             // 0: all
	Body    json.RawMessage // the body; in the flat form the whole object
}

// readArgs reads the arguments of a plugin's client call. Versions of OpenCode's SDK put the same id in different places (path.id,
// sessionID), so all of them are tried, and the first that is not empty counts.
func readArgs(raw json.RawMessage) Args {
	var a struct {
		Path struct {
			ID, SessionID, MessageID string
		}
		Query             struct{ Limit int }
		Body              json.RawMessage
		SessionID         string
		ID                string
		MessageID         string
		Limit             int
		Directory, Search string // accepted and ignored: a plugin sees its own folder's sessions only
	}
	_ = json.Unmarshal(raw, &a) // a field of another type keeps its zero value
	out := Args{Body: a.Body, Limit: max(a.Query.Limit, a.Limit)}
	for _, id := range []string{a.Path.ID, a.Path.SessionID, a.SessionID, a.ID} {
		if out.ID == "" {
			out.ID = id
		}
	}
	for _, id := range []string{a.Path.MessageID, a.MessageID} {
		if out.Message == "" {
			out.Message = id
		}
	}
	if len(out.Body) == 0 {
		out.Body = raw
	}
	return out
}

// serve answers one client call of a plugin. It runs on a goroutine of its own, see child.take.
func (s *source) serve(c clientCall) {
	// The host's context and not that of a tool call: plugins call the client outside of hooks too.
	ctx, cancel := context.WithTimeout(s.host.ctx, clientLimit)
	defer cancel()
	reply := map[string]any{"op": "answer", "unit": s.unit, "n": c.N}
	result, known, err := s.accountCall(c.Method, c.Args)
	if !known {
		result, err = s.host.client(ctx, s.file.path, c.Method, readArgs(c.Args))
	}
	switch {
	case errors.Is(err, ErrNoMethod):
		reply["error"] = map[string]string{"kind": "unknown", "message": fmt.Sprintf("client.%s is not available: %v", c.Method, err)}
	case errors.Is(err, ErrNotFound):
		reply["error"] = map[string]string{"kind": "not_found", "name": "NotFoundError", "message": err.Error()}
	case err != nil:
		reply["error"] = map[string]string{"kind": "failed", "message": err.Error()}
	default:
		reply["result"] = result
	}
	_ = s.child.send(reply)
}

// client carries out a plugin's client call: logging and notices itself, any other method through Options.Client.
func (h *Host) client(ctx context.Context, file, method string, args Args) (any, error) {
	switch method {
	case clientLog:
		return true, h.log(file, args.Body)
	case clientToast:
		return true, h.toast(args.Body)
	}
	if h.o.Client == nil {
		return nil, fmt.Errorf("Pillion offers plugins %s, %s: %w", clientLog, clientToast, ErrNoMethod)
	}
	return h.o.Client(ctx, method, args)
}

// log writes a plugin's line to Pillion's log. Every text is cut, so that no single line fills the disk.
func (h *Host) log(file string, body json.RawMessage) error {
	var b struct {
		Service, Level, Message string
		Extra                   map[string]any
	}
	if err := json.Unmarshal(body, &b); err != nil || b.Message == "" {
		return errors.New("app.log wants {body: {service, level, message}}")
	}
	// An unknown level is info, the zero value of slog.Level.
	level := map[string]slog.Level{"debug": slog.LevelDebug, "warn": slog.LevelWarn, "error": slog.LevelError}[b.Level]
	attrs := []any{"plugin", file, "service", tools.Cut(b.Service, 100)}
	if len(b.Extra) > 0 {
		extra, _ := json.Marshal(b.Extra)
		attrs = append(attrs, "extra", tools.Cut(string(extra), 2<<10))
	}
	h.o.Log.Log(h.ctx, level, tools.Cut(b.Message, 2<<10), attrs...)
	return nil
}

// toast shows a plugin's text to the person. The variants other than warning and error, such as "success", become info. Unlike notice it
// shows equal texts each time: here the plugin decides when.
func (h *Host) toast(body json.RawMessage) error {
	var b struct{ Title, Message, Variant string }
	if err := json.Unmarshal(body, &b); err != nil || b.Message == "" {
		return errors.New("tui.showToast wants {body: {message, variant}}")
	}
	level := "info"
	if b.Variant == "warning" || b.Variant == "error" {
		level = b.Variant
	}
	text := b.Message
	if b.Title != "" {
		text = b.Title + ": " + text
	}
	if h.o.Notice != nil {
		h.o.Notice(level, tools.Cut(text, 500))
	}
	return nil
}
