// Package terminal is the terminal as an editor: it prints a session's events as they come, shows every proposed
// change as a coloured diff headed by what it does to the problems, and asks per hunk. It writes no file itself.
//
//	t := terminal.New(terminal.Options{Out: os.Stdout, Color: true, Keys: keys})
//	stop := session.Subscribe(0, t.Event)
package terminal

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// Approve says what happens to what would be asked.
type Approve string

const maxError = 600 // characters shown of a call's error

// Ask asks (or refuses where nobody can answer), All says yes, None says no. IfClean says yes to changes of files whose
// verdict is fresh and introduces no error, and no to everything else.
const (
	Ask     Approve = "ask"
	All     Approve = "all"
	None    Approve = "none"
	IfClean Approve = "clean"
)

// Options are what a Terminal is made of.
type Options struct {
	Out     io.Writer
	Cwd     string // paths are shown relative to it
	Color   bool
	Live    bool // Out is a terminal: a status line may come and go
	Approve Approve
	Keys    Keys     // nil: nobody can answer
	Editor  []string // $EDITOR, for e
	Stop    func()   // ends the running turn, for q
	// Check gives the verdict on a change of a session; nil: the hunks of a proposal are shown without what each does.
	Check func(ctx context.Context, session string, set *change.Set) *change.Verdict
	Width int // columns; 0: 80
	Now   func() time.Time
}

// Terminal prints and asks. Its methods are safe for concurrent use; one thing is on the screen at a time.
type Terminal struct {
	Options
	asking sync.Mutex // one question or prompt at a time; taken before mu
	turns  patience

	mu       sync.Mutex    // guards what follows and the screen
	typing   bool          // a prompt is being typed: the screen is the composer's
	later    []agent.Event // came meanwhile
	midLine  bool          // the cursor is not at the start of a line
	thinking bool
	status   bool   // a status line is on the screen
	prompt   string // the question on the screen, "" when there is none
	waiting  string
	since    time.Time
	until    time.Time                   // when what is waited for comes, if that is known
	tools    map[string]agent.ToolStatus // last status printed by call
	shown    map[string]bool             // change sets whose diff was printed
	quit     bool                        // the person answered a question with q
	stopping string                      // call after which the turn is to end
	asked    map[string]time.Duration    // by call: what the person took to answer
	changes  []outcome                   // in the order they came
	summary  Summary                     // of what was last told about the turn; Summary adds the rest
	text     strings.Builder             // the answer after the last tool call
	done     chan struct{}
}

// Summary is what a turn did, for its last lines and for --json.
type Summary struct {
	Stop       agent.StopReason `json:"stop"`
	Error      string           `json:"error,omitempty"`
	Undone     bool             `json:"undone,omitempty"` // the model itself says that it could do nothing of what was asked
	Text       string           `json:"text"`
	Changes    []Change         `json:"changes"`
	Fixed      int              `json:"fixed"`
	Introduced int              `json:"introduced"`
	Checked    int              `json:"checked"`   // applied changes whose effect on the problems is known
	Unchecked  int              `json:"unchecked"` // applied changes no language server could judge
	Left       []change.Problem `json:"left"`
	LeftKnown  bool             `json:"leftKnown"` // false: no language server could say
	Usage      any              `json:"usage,omitempty"`
	Cost       float64          `json:"cost,omitempty"`
	Steps      int              `json:"steps"`
	SessionID  string           `json:"sessionID"`
}

// Change is one file a turn touched or wanted to.
type Change struct {
	Path      string `json:"path"`
	State     string `json:"state"` // applied, rejected, failed
	Additions int    `json:"additions"`
	Deletions int    `json:"deletions"`
}

// New makes a Terminal; Close ends its status line.
func New(o Options) *Terminal {
	if o.Width <= 0 {
		o.Width = 80
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	t := &Terminal{Options: o, tools: map[string]agent.ToolStatus{}, shown: map[string]bool{}, asked: map[string]time.Duration{}, done: make(chan struct{})}
	if o.Live {
		go t.tick()
	}
	return t
}

// Close takes the status line away.
func (t *Terminal) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clear()
	select {
	case <-t.done:
	default:
		close(t.done)
	}
}

// Begin makes ready for another turn: the summary is of one.
func (t *Terminal) Begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.quit, t.stopping, t.changes, t.summary = false, "", nil, Summary{}
	t.text.Reset()
}

// Summary is what has been seen of the turn so far.
func (t *Terminal) Summary() Summary {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.summary
	if t.quit && s.Stop == agent.TurnEnd { // a rejection ends a turn like any other; the person meant to stop
		s.Stop = agent.TurnCancelled
	}
	s.Text = t.text.String()
	s.Changes, s.Left = []Change{}, []change.Problem{} // lists, never null, for those who read JSON
	for _, o := range t.changes {
		o.count(&s)
	}
	return s
}

// decode takes an event's data as T, whether it is fresh or stored.
func decode[T any](e agent.Event) (out T, ok bool) {
	switch v := e.Value.(type) {
	case T:
		return v, true
	case *T:
		return *v, true
	}
	return out, json.Unmarshal(e.Data, &out) == nil
}

// Event prints one event, while a prompt is typed: after it.
func (t *Terminal) Event(e agent.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.typing {
		t.later = append(t.later, e)
		return
	}
	t.event(e)
}

func (t *Terminal) event(e agent.Event) {
	defer t.again()
	switch e.Type {
	case agent.EventPrompt, agent.EventMessage:
		t.clear()
		t.newline() // what one message says does not run into the next
		t.wait("thinking")
		if e.Type == agent.EventMessage {
			t.text.Reset()
		}
	case agent.EventText:
		if d, ok := decode[agent.TextData](e); ok {
			t.clear()
			if t.thinking {
				t.newline()
				t.thinking = false
			}
			t.text.WriteString(d.Text)
			t.print(Clean(d.Text))
			t.wait("")
		}
	case agent.EventThinking:
		if d, ok := decode[agent.TextData](e); ok {
			t.clear()
			if !t.thinking {
				t.newline()
				t.thinking = true
			}
			t.print(t.paint(dim, Clean(d.Text)))
		}
	case agent.EventTool:
		if d, ok := decode[agent.ToolData](e); ok {
			t.tool(d)
		}
	case agent.EventChange:
		if d, ok := decode[agent.ChangeData](e); ok {
			t.change(d)
		}
	case agent.EventPlan:
		if d, ok := decode[agent.PlanData](e); ok {
			t.plan(d)
		}
	case agent.EventCompaction:
		if d, ok := decode[agent.CompactionData](e); ok {
			t.clear()
			t.newline()
			t.line(t.paint(dim, "! "+Clean(d.Words())))
			if d.State == agent.CompactionBegun {
				t.wait("compacting")
			} else {
				t.wait("")
			}
		}
	case agent.EventNotice:
		if d, ok := decode[agent.NoticeData](e); ok && !(t.quit && d.Level == "info") { // who quits is not told how to go on
			t.newline()
			color := dim
			if d.Level != "info" {
				color = yellow
			}
			t.line(t.paint(color, "! "+Clean(d.Text)))
			if d.Until.After(t.Now()) {
				t.wait("waiting to try again")
				t.until = d.Until
			}
		}
	case agent.EventTurn:
		if d, ok := decode[agent.TurnData](e); ok {
			t.wait("")
			t.clear()
			t.newline()
			t.summary.Stop, t.summary.Error, t.summary.Usage, t.summary.Cost, t.summary.Steps, t.summary.Undone = d.Stop, d.Error, d.Usage, d.Cost, d.Steps, d.Undone
		}
	}
}

// tool prints a line when a call ends (and its title while it runs, as the status).
func (t *Terminal) tool(d agent.ToolData) {
	title := d.Title
	if title == "" {
		title = inputTitle(d.Input)
	}
	switch d.Status {
	case agent.ToolPending, agent.ToolRunning:
		if t.prompt == "" {
			t.newline() // what it says next is the status, which never follows half a line
		}
		t.wait(strings.TrimSpace(d.Tool + " " + title))
	case agent.ToolCompleted, agent.ToolError:
		if t.tools[d.CallID] == d.Status {
			return
		}
		t.newline()
		mark, color := "✓", green
		if d.Status == agent.ToolError {
			mark, color = "✗", red
		}
		took := ""
		if s := d.Ended.Sub(d.Started) - t.asked[d.CallID]; s >= time.Second {
			took = t.paint(dim, fmt.Sprintf("  %.1fs", s.Seconds()))
		}
		t.line(t.paint(color, mark) + " " + t.paint(bold, d.Tool) + " " + cut(Clean(t.rel(title)), t.Width-len(d.Tool)-12) + took)
		if d.Status == agent.ToolError {
			text := textutil.FirstLine(d.Error)
			if d.ErrorKind == "rejected" {
				text = "not applied" // the rest is for the model; the person has just said it
			}
			t.line(t.paint(dim, "  "+cut(Clean(text), maxError))) // whole: its end says what to do
		}
		t.wait("thinking")
		if t.stopping == d.CallID && t.Stop != nil {
			t.stopping = ""
			go t.Stop() // not under mu: it may send events
		}
	}
	t.tools[d.CallID] = d.Status
}

func (t *Terminal) change(d agent.ChangeData) {
	set := d.Whole()
	if set == nil || d.State == change.Proposed || d.State == change.Writing {
		return // AskPermission shows it, or it is applied at once
	}
	if !t.shown[set.ID] {
		t.shown[set.ID] = true
		t.set(set)
	}
	// A change is told again when its problems are known: the last word counts.
	now := outcome{d.State, set}
	if i := slices.IndexFunc(t.changes, func(o outcome) bool { return o.set.ID == set.ID }); i >= 0 {
		t.changes[i] = now
	} else {
		t.changes = append(t.changes, now)
	}
}

func (t *Terminal) plan(d agent.PlanData) {
	t.newline()
	for _, todo := range d.Todos {
		box := map[string]string{"completed": t.paint(green, "☑"), "in_progress": t.paint(yellow, "▶"), "cancelled": "☒"}[todo.Status]
		if box == "" {
			box = "☐"
		}
		t.line("  " + box + " " + Clean(todo.Content))
	}
}

func (t *Terminal) rel(path string) string {
	if t.Cwd != "" && filepath.IsAbs(path) {
		if r, err := filepath.Rel(t.Cwd, path); err == nil && !strings.HasPrefix(r, "..") {
			return r
		}
	}
	return path
}

// inputTitle picks the telling argument of a call that has no title yet.
func inputTitle(input json.RawMessage) string {
	var m map[string]any
	if json.Unmarshal(input, &m) != nil {
		return ""
	}
	for _, k := range []string{"filePath", "command", "pattern", "path", "url", "query", "description", "operation"} {
		if s, ok := m[k].(string); ok && s != "" {
			return textutil.FirstLine(s)
		}
	}
	return ""
}
