// Package terminal is the terminal as an editor: it prints a session's events as they come, shows every proposed
// change as a coloured diff headed by what it does to the problems, and asks per hunk. It writes no file itself.
//
//	t := terminal.New(terminal.Options{Out: os.Stdout, Color: true, Keys: keys})
//	stop := session.Subscribe(0, t.Event)
package terminal

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/permission"
)

// Approve says how approval requests are answered. The values are those of the option --approve.
type Approve string

// Ask asks the person, or rejects where no user can answer; All approves, None rejects. IfClean approves changes of files whose verdict
// is fresh and introduces no error, and rejects everything else.
const (
	Ask     Approve = "ask"
	All     Approve = "all"
	None    Approve = "none"
	IfClean Approve = "clean"
)

// For is how a request is answered: where a managed rule asks, as Ask, unless everything is rejected. --approve would be a way around what
// was decided for everybody.
func (a Approve) For(r permission.Request) Approve {
	if r.Managed != "" && a != None {
		return Ask
	}
	return a
}

// Options are what a Terminal is made of.
type Options struct {
	Out     io.Writer
	Cwd     string // paths are shown relative to it
	Color   bool
	Live    bool // Out is a terminal that can move its cursor: a status line may come and go
	Approve Approve
	Keys    Keys // nil: no user can answer
	// Prompt is the prompt that stays open below what is shown, and the source of the answers; nil: lines are written to Out.
	Prompt *Composer
	// Markdown has answers rendered; otherwise they are shown as the model wrote them.
	Markdown bool
	Editor   []string // $EDITOR, for e
	Stop     func()   // ends the running turn, for q in the middle of a change set
	// Check gives the verdict on a change of a session; nil: the hunks of a proposal are shown without what each does.
	// It is called while a question is open and must end with its context.
	Check func(ctx context.Context, session string, set *change.Set) *change.Verdict
	Width int // columns; 0: 80
	Now   func() time.Time
}

// Terminal shows a session and asks its user. Its methods are safe for concurrent use.
type Terminal struct {
	page *sheet
	turn *tally
	log  *transcript
	asks *approvals
}

// New makes a Terminal; Close ends its status line.
func New(o Options) *Terminal {
	if o.Width <= 0 {
		o.Width = 80
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	page := &sheet{cwd: o.Cwd, color: o.Color, fits: o.Live, now: o.Now}
	if o.Prompt != nil {
		// The composer reads the keyboard; a second reader would take keys away from it.
		page.screen, o.Keys = o.Prompt.screen, o.Prompt.screen
	} else {
		page.screen = newLineScreen(o)
	}
	turn := newTally()
	t := &Terminal{page: page, turn: turn}
	t.log = &transcript{sheet: page, tally: turn, stop: o.Stop, states: map[string]agent.ToolStatus{}, echo: o.Prompt != nil}
	if o.Markdown {
		t.log.answer = &markdownStream{}
	}
	t.asks = &approvals{sheet: page, tally: turn, keys: o.Keys, approve: o.Approve, editor: o.Editor, check: o.Check}
	return t
}

// Close removes the status line.
func (t *Terminal) Close() { t.page.close() }

// Begin prepares for another turn: the summary is of one.
func (t *Terminal) Begin() {
	t.page.mu.Lock()
	defer t.page.mu.Unlock()
	t.turn.begin()
}

// Summary is what has been seen of the turn so far.
func (t *Terminal) Summary() Summary {
	t.page.mu.Lock()
	defer t.page.mu.Unlock()
	return t.turn.Summary()
}

// Event shows one event of the session. It is the sink of agent's Subscribe and so never waits for the person:
// AskPermission runs elsewhere, without the lock.
func (t *Terminal) Event(e agent.Event) {
	t.page.mu.Lock()
	defer t.page.mu.Unlock()
	t.log.event(e)
	t.page.askAgain()
}

// Result shows the last lines of a turn.
func (t *Terminal) Result(s Summary) {
	t.page.mu.Lock()
	defer t.page.mu.Unlock()
	t.log.flush()
	t.page.result(s, t.asks.keys == nil && t.asks.approve == Ask)
}

// Say shows text of Pillion's own, which is Markdown. It does not interrupt a line.
func (t *Terminal) Say(text string) {
	t.page.mu.Lock()
	defer t.page.mu.Unlock()
	t.log.flush()
	t.log.say(text)
}

// Write shows notices, whole lines; it makes a Terminal the io.Writer of what else a program has to say. It cleans
// its text, since the program may pass on what others have said.
func (t *Terminal) Write(b []byte) (int, error) {
	t.page.mu.Lock()
	defer t.page.mu.Unlock()
	t.log.flush()
	t.page.line(Clean(strings.TrimRight(string(b), "\n")))
	t.page.askAgain()
	return len(b), nil
}

// Echo shows a prompt that was typed, before the session takes it; its event, which has that message id, is not shown again. Without a
// Composer the terminal has shown what was typed.
func (t *Terminal) Echo(message, text string) {
	t.page.mu.Lock()
	defer t.page.mu.Unlock()
	t.log.flush()
	t.log.echoed = message
	if !t.log.echo {
		return
	}
	t.log.prompt([]provider.Part{{Type: provider.PartText, Text: text}})
}

// ReadLine asks for a line, without a Composer; no other question is asked meanwhile. At an empty one the questions that wait are
// asked first. io.EOF: the user is done.
func (t *Terminal) ReadLine(ctx context.Context, question string) (string, error) {
	release := t.asks.waiting.hold()
	t.page.screen.ask(question)
	text, err := t.asks.keys.Line(ctx)
	t.page.screen.answered(text, true)
	release()
	if text = strings.TrimSpace(text); text != "" || err != nil {
		return text, err
	}
	// An empty line is how the person lets a waiting question have the terminal.
	if done := t.asks.waiting.answered(); done != nil {
		select {
		case <-done:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	return "", nil
}

// AskPermission shows the request and asks for a decision.
func (t *Terminal) AskPermission(ctx context.Context, r permission.Request) (permission.Reply, error) {
	return t.asks.AskPermission(ctx, r)
}

// AskQuestions asks the question tool's questions, one after the other.
func (t *Terminal) AskQuestions(ctx context.Context, call *tools.Call, qs []tools.Question) ([][]string, error) {
	return t.asks.AskQuestions(ctx, call, qs)
}

// sheet is a screen in the terms of a project: paths relative to its folder, colours where they are wanted.
type sheet struct {
	screen
	cwd   string
	color bool
	fits  bool // lines are cut to the screen's width; a file or a pipe gets them whole
	now   func() time.Time

	// mu is held while something is written that belongs together, and guards the tally and the transcript.
	mu      sync.Mutex
	pending activity // what is waited for; questions hide it
}

// resume shows again what was waited for before a question: the call that was allowed may run for long. The time since the question
// came, at asked, is not the call's.
func (t *sheet) resume(asked time.Time) {
	if t.pending.what != "" {
		t.pending.since = t.pending.since.Add(t.now().Sub(asked))
	}
	t.waitFor(t.pending)
}

// paint is a text in a style, or as it is where no colours are wanted.
func (t *sheet) paint(style, s string) string { return paint(t.color, style, s) }

// line writes a line of its own; a line that is open is ended first.
func (t *sheet) line(s string) {
	t.endLine()
	t.print(s + "\n")
}

// rel is a path as it is shown: relative below the project's folder, else as it is.
func (t *sheet) rel(path string) string {
	if t.cwd != "" && filepath.IsAbs(path) {
		if r, err := filepath.Rel(t.cwd, path); err == nil && !strings.HasPrefix(r, "..") {
			return r
		}
	}
	return path
}
