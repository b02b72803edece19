package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/tools/guard"
	"github.com/pillion-dev/pillion/tools/textutil"
)

const (
	// All of this is drawn again with every key, and must leave room for the answer above it.
	composeRows = 12 // lines of a prompt that are seen at once
	offered     = 8  // completions that are seen at once
	queueShown  = 3  // prompts that wait and are seen at once

	// The text of a fold is kept and sent whole: only the prompt on the screen is short.
	foldLines = 10   // a paste of more lines is shown as its number of lines
	foldBytes = 1000 // likewise, for few long lines

	broughtLines = 2000     // an earlier prompt of more lines is shown as its number of lines
	broughtBytes = 64 << 10 // likewise, for few long lines
)

// Prompt is what a user sends.
type Prompt struct {
	Text     string
	Pictures []provider.File // that were pasted; Text says where each belongs
	Steer    bool            // the running turn is to read it before its next step; otherwise it waits for the turn's end
}

// ComposerOptions are what a Composer is made of. Its functions are called on the program's goroutine unless it says otherwise, and
// must return at once. In is a terminal.
type ComposerOptions struct {
	// In is a file and not an io.Reader because the program sets the mode of the terminal.
	In     *os.File
	Out    io.Writer
	Color  bool
	Editor []string // $EDITOR and its arguments, for Ctrl-G

	// Submit gets each prompt, in the order in which they were sent.
	Submit func(Prompt)
	Stop   func()        // ends the running turn
	Busy   func() bool   // a turn runs
	Status func() string // the line below the prompt
	Next   func()        // shift-tab: the next agent; nil: there is one
	// Queued are the prompts that wait, first to run first.
	Queued func() []string
	// Unqueue takes the last prompt out of the queue again, to be changed; false when none waits.
	Unqueue func() (text string, ok bool)
	// Earlier are the prompts of earlier conversations, oldest first. It is called once, when the user first looks back.
	Earlier func(context.Context) []string
	// Complete offers what the end of text may become, best first, and the byte from which it would replace the text. It runs
	// beside the typing.
	Complete func(ctx context.Context, text string) (from int, list []Completion)
	// Picture reads an image from the clipboard. It runs beside the typing.
	Picture func(context.Context) (provider.File, error)
	// PictureFile reads an image whose path was pasted or dropped; false when the text is not such a path.
	PictureFile func(text string) (provider.File, bool)
}

// Completion is one thing that tab may write. Text may come from file names and servers; it is cleaned when it is
// drawn and inserted as it is.
type Completion struct{ Text, Note string }

// Composer is the prompt that stays open at the foot of the terminal while the session is shown above it: several lines, earlier
// prompts by the arrow keys and Ctrl-R, completion by tab, $EDITOR by Ctrl-G. Enter sends; while a turn runs, it queues and Ctrl-S steers.
// The terminal's own scroll-back keeps everything above the prompt: no alternate screen is used.
type Composer struct {
	ComposerOptions
	screen *liveScreen
}

// NewComposer makes a Composer. Give it to New as Options.Prompt, then call Run.
func NewComposer(o ComposerOptions) *Composer {
	return &Composer{o, newLiveScreen(o.Color, time.Now)}
}

// Run shows the prompt until the user ends the conversation (nil) or ctx ends (its error). What was printed before appears first.
func (c *Composer) Run(ctx context.Context) error {
	within, cancel := context.WithCancel(ctx) // ends completions that still run
	defer cancel()
	m := newComposing(within, c)
	if err := m.frame.start(); err != nil {
		return err
	}
	defer m.frame.stop()
	m.resize()
	// Key, Line and Suspend wait for this channel too: otherwise a question that is open when the conversation ends
	// would wait for ever.
	defer close(c.screen.over)
	// The frame draws, see there why; Bubble Tea reads the keys and runs the messages.
	program := tea.NewProgram(m, tea.WithInput(c.In), tea.WithOutput(c.Out), tea.WithoutRenderer(), tea.WithoutSignalHandler())
	// Not tea.WithContext: a program whose context ends does not wait for its reader, which then reads from a
	// descriptor that has been closed, and may by then be another file's.
	defer context.AfterFunc(ctx, program.Quit)()
	_, err := program.Run()
	m.frame.stop()
	// Lines that came after the last drawing belong to the conversation, and the terminal is free for them now.
	rest := c.screen.take(m.width)
	lines := append(m.left, rest.lines...)
	// The end of an answer that was cut off stays readable too.
	if rest.tail != "" {
		lines = append(lines, strings.Split(strings.TrimRight(rest.tail, "\n"), "\n")...)
	}
	for _, l := range lines {
		_, _ = io.WriteString(c.Out, l+"\n")
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// Close ends Run, as the user does with Ctrl-D.
func (c *Composer) Close() { c.screen.change(func() { c.screen.ended = true }) }

// composing is the program behind a Composer: what is being typed, and who gets the keys. Only the program's goroutine uses it.
type composing struct {
	*Composer
	ctx    context.Context
	text   textarea.Model
	width  int
	height int
	frame  *frame
	spin   int      // which sign of the spinner is drawn
	over   bool     // the conversation has ended: nothing is drawn any more
	left   []string // lines that came with the end
	note   string   // shown below until the next key

	// shown is what draw took from the liveScreen last; View draws it.
	shown picture
	focus focus

	history history
	search  *search // Ctrl-R; nil: no search

	asked int // completions asked for; an older answer does not count
	// from is the byte of the text at which a completion begins, list what is offered, pick the chosen one.
	from int
	list []Completion
	pick int

	folded []fold
	// pictures are in the order of their marks; one whose mark was deleted stays until the prompt is sent, so that
	// the numbers stay.
	pictures []provider.File
}

// fold is a long paste and what stands for it in the prompt. The mark may be deleted like any text, and the paste
// with it.
type fold struct{ mark, text string }

// newComposing makes the program with an empty prompt. 80 by 24 holds until the terminal has reported its size.
func newComposing(ctx context.Context, c *Composer) *composing {
	m := &composing{Composer: c, ctx: ctx, text: textarea.New(), width: 80, height: 24, frame: newFrame(c.In, c.Out), history: history{before: c.Earlier}}
	m.text.Prompt = ""
	m.text.SetPromptFunc(2, func(p textarea.PromptInfo) string {
		switch {
		case p.LineNumber > 0:
			return "  "
		case m.search != nil:
			return m.paint(dim, "? ")
		case m.focus.typing():
			return m.paint(bold, "» ")
		}
		return m.paint(bold, "› ")
	})
	m.text.ShowLineNumbers = false
	m.text.EndOfBufferCharacter = ' '
	// The prompt grows with its text up to composeRows. 1<<20 is the limit of its lines; CharLimit 0 is not a limit.
	m.text.DynamicHeight, m.text.MinHeight, m.text.MaxHeight, m.text.MaxContentHeight, m.text.CharLimit = true, 1, composeRows, 1<<20, 0
	m.text.KeyMap.Paste.SetEnabled(false) // the terminal's own paste works over SSH too
	m.text.SetStyles(textarea.Styles{})
	// View places the terminal's own cursor instead: input methods follow that one.
	m.text.SetVirtualCursor(false)
	m.text.SetWidth(m.width)
	m.text.Focus()
	return m
}

// Messages to the program.
type (
	look      struct{} // time has passed: the spinner and the clocks are drawn again
	redraw    struct{} // the liveScreen has changed
	completed struct {
		asked, from int
		list        []Completion
	}
	edited struct {
		text string
		err  error
	}
	pictured struct {
		file provider.File
		err  error
	}
)

const (
	// lookEvery is how often the spinner and the clocks are drawn again.
	lookEvery = 200 * time.Millisecond
	drawEvery = 25 * time.Millisecond // as often as an eye notices
)

// Init implements tea.Model.
func (m *composing) Init() tea.Cmd { return tea.Batch(m.look(), m.await()) }

// look asks for the next turn of the spinner.
func (m *composing) look() tea.Cmd {
	return tea.Tick(lookEvery, func(time.Time) tea.Msg { return look{} })
}

// await waits until there is something to draw.
func (m *composing) await() tea.Cmd {
	return func() tea.Msg {
		select {
		case <-m.screen.changed:
			time.Sleep(drawEvery) // what comes meanwhile is drawn together
			return redraw{}
		case <-m.ctx.Done():
			return nil
		}
	}
}

// Update implements tea.Model. All state changes and all drawing happen here, on the program's goroutine; what takes time runs as a
// tea.Cmd and comes back as a message.
func (m *composing) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	cmd := m.update(msg)
	m.draw(nil)
	return m, cmd
}

// update is Update without the drawing.
func (m *composing) update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case look:
		m.spin++
		return m.look()
	case redraw:
		return m.take()
	case rested:
		return m.focusAfter(m.focus.rested(msg, m.text.Value() == ""))
	case alone:
		m.focus.answer(msg)
		return nil
	case completed:
		// The person has typed on since an older request was made; its completions would replace the wrong bytes.
		if msg.asked == m.asked {
			m.from, m.list, m.pick = msg.from, msg.list, 0
		}
		return nil
	case edited:
		if msg.err != nil {
			m.note = msg.err.Error()
		} else {
			m.bring(strings.TrimRight(msg.text, "\n"))
		}
		return nil
	case pictured:
		if m.note = ""; msg.err != nil {
			m.note = msg.err.Error()
		} else {
			m.attach(msg.file)
		}
		return nil
	case tea.PasteMsg:
		m.note = ""
		return m.paste(msg.Content)
	case tea.KeyPressMsg:
		if msg.String() == "esc" && m.answer("") { // dismissed
			return nil
		}
		if msg.String() == "enter" && m.focus.enters(m.text.Value()) {
			m.focus.give(m.text.Value()[0])
			m.put("")
			return nil
		}
		// The focus sees every key first: it must know of each one to tell a single key from a burst.
		rest, back, done := m.focus.press(msg.String(), msg.Text, prompting{m.text.Value() == "", m.pick < len(m.list), m.busy()})
		if done {
			return rest
		}
		m.text.InsertString(back)
		return tea.Batch(rest, m.press(msg))
	}
	return m.change(msg)
}

// press is a key that no question took. A note lasts until the next key, or paste.
func (m *composing) press(msg tea.KeyPressMsg) tea.Cmd {
	note := m.note
	m.note = ""
	if m.search != nil && m.searchKey(msg.String(), msg.Text) {
		return nil
	}
	if cmd, done := m.key(msg.String(), note); done {
		return cmd
	}
	return m.change(msg)
}

// change has the text area edit the text. Only a change of the text asks for completions: moving the cursor does not.
func (m *composing) change(msg tea.Msg) (cmd tea.Cmd) {
	before := m.text.Value()
	m.text, cmd = m.text.Update(msg)
	if m.text.Value() != before {
		m.history.leave()
		return tea.Batch(cmd, m.complete())
	}
	return cmd
}

// take takes what the liveScreen has: complete lines go above the prompt, the rest is drawn with it.
func (m *composing) take() tea.Cmd {
	m.resize()
	m.shown = m.screen.take(m.width)
	// Run writes the lines that come with the end, when the prompt is gone.
	if m.shown.ended {
		m.over, m.left = true, m.shown.lines
		return tea.Quit
	}
	var above []string
	for _, l := range m.shown.lines {
		above = append(above, strings.Split(ansi.Wrap(l, max(m.width, 10), ""), "\n")...)
	}
	again := m.await()
	if o := m.shown.outside; o != nil {
		m.draw(above)
		return tea.Batch(again, tea.Exec(m.lend(o.run), func(err error) tea.Msg {
			o.done <- err
			return nil
		}))
	}
	// The question of this picture gets the focus before it is drawn: the foot says where the keys go.
	cmd := m.focusAfter(m.focus.show(m.shown.awaited, m.text.Value() == ""))
	m.draw(above)
	return tea.Batch(again, cmd)
}

// resize follows the size of the terminal. It is asked for at each drawing, which is at least as often as the spinner turns, so no
// signal is needed; a signal may also come later than the lines that are printed for the new size.
func (m *composing) resize() {
	if w, h, ok := m.frame.size(); ok && (w != m.width || h != m.height) {
		m.width, m.height = w, h
		m.text.SetWidth(w)
		m.screen.resized(w)
	}
}

// draw prints lines above the prompt for good and draws the prompt and what belongs to it.
func (m *composing) draw(above []string) {
	m.resize()
	if m.over {
		return
	}
	rows, at := m.view()
	m.frame.draw(above, rows, at)
}

// focusAfter does what a change of the focus needs: a question that takes a line gets an empty prompt, and when it has gone what was in
// the prompt comes back. What was typed for a question that was withdrawn stays, unless something comes back.
func (m *composing) focusAfter(cmd tea.Cmd, moved bool) tea.Cmd {
	if !moved {
		return cmd
	}
	before := m.focus.draft
	m.focus.draft = ""
	switch {
	case m.focus.typing():
		m.focus.draft = m.text.Value()
		m.put("")
	case before != "":
		m.put(before)
	}
	return cmd
}

// lend is run with the terminal for itself, as a command of the program.
func (m *composing) lend(run func() error) tea.ExecCommand {
	return program(func() error { return m.frame.lend(run) })
}

// program implements tea.ExecCommand. The function has its own files, so the setters do nothing.
type program func() error

func (p program) Run() error        { return p() }
func (program) SetStdin(io.Reader)  {}
func (program) SetStdout(io.Writer) {}
func (program) SetStderr(io.Writer) {}

// One Ctrl-C clears the prompt or stops the turn; only the second one in a row ends the conversation.
const onceMore = "press ctrl-c again to exit"

// key is what a key does that does not simply edit; note is what was shown before it came.
func (m *composing) key(key, note string) (cmd tea.Cmd, done bool) {
	switch key {
	case "ctrl+c":
		// The note was on the screen when the key came, so the person knows what it does.
		if m.text.Value() == "" && note == onceMore {
			m.over = true
			return tea.Quit, true
		}
		if m.text.Value() == "" && m.busy() {
			m.Stop()
		}
		m.put("")
		m.note = onceMore
	case "ctrl+d":
		if m.text.Value() != "" {
			return nil, false
		}
		m.over = true
		return tea.Quit, true
	case "enter":
		// A backslash before Enter continues the line, for terminals that send the same code for Enter and
		// shift-Enter.
		if v := m.before(); strings.HasSuffix(v, `\`) {
			m.text, _ = m.text.Update(tea.KeyPressMsg{Code: tea.KeyBackspace})
			m.text.InsertRune('\n')
			return nil, true
		}
		m.send(false)
	case "ctrl+s":
		m.send(true)
	case "alt+enter", "shift+enter", "ctrl+j":
		m.text.InsertRune('\n')
		m.shut()
	case "tab":
		if m.pick < len(m.list) {
			m.accept(m.list[m.pick])
			return m.complete(), true
		}
	case "shift+tab":
		if m.Next != nil {
			m.Next()
		}
	case "esc":
		switch {
		case len(m.list) > 0:
			m.shut()
		case m.busy():
			m.Stop()
		}
	case "up", "ctrl+p":
		if len(m.list) > 0 {
			m.pick = (m.pick + len(m.list) - 1) % len(m.list)
			return nil, true
		}
		// The arrow keys move in the text first; at its first row they go through earlier prompts.
		if m.text.Line() > 0 || m.text.LineInfo().RowOffset > 0 {
			return nil, false
		}
		if m.text.Value() == "" && m.Unqueue != nil {
			// A prompt that still waits is taken back to be changed before older ones are offered.
			if text, ok := m.Unqueue(); ok {
				m.bring(text)
				return nil, true
			}
		}
		m.recall(-1)
	case "down", "ctrl+n":
		if len(m.list) > 0 {
			m.pick = (m.pick + 1) % len(m.list)
			return nil, true
		}
		if i := m.text.LineInfo(); m.text.Line() < m.text.LineCount()-1 || i.RowOffset < i.Height-1 {
			return nil, false
		}
		m.recall(+1)
	case "ctrl+r":
		m.shut()
		m.search = &search{draft: m.text.Value(), list: m.history.all(m.ctx)}
		m.search.at = len(m.search.list)
		m.find(0)
	case "ctrl+g":
		return m.edit(), true
	case "ctrl+v":
		if m.Picture == nil {
			return nil, true
		}
		m.note = "reading the clipboard …"
		return func() tea.Msg {
			f, err := m.Picture(m.ctx)
			return pictured{f, err}
		}, true
	case "ctrl+l":
		m.frame.wipe()
	case "ctrl+z":
		return tea.Exec(m.lend(func() error { stop(); return nil }), nil), true
	default:
		return nil, false
	}
	return nil, true
}

// busy reports whether a turn runs, which Esc and Ctrl-C stop.
func (m *composing) busy() bool { return m.Busy != nil && m.Busy() }

// send gives the text to the question that waits for a line, else to Submit as a prompt.
func (m *composing) send(steer bool) {
	// The answer to a question is not a prompt: it is not queued and not remembered.
	if m.answer(strings.TrimSpace(m.text.Value())) {
		return
	}
	typed := strings.TrimSpace(m.text.Value())
	if typed == "" {
		return
	}
	p := Prompt{Text: m.unfolded(typed), Steer: steer}
	for i, f := range m.pictures {
		// Deleting the mark of a picture takes the picture out of the prompt.
		if strings.Contains(typed, pictureMark(i, f)) {
			p.Pictures = append(p.Pictures, f)
		}
	}
	m.history.add(p.Text)
	m.put("")
	m.folded, m.pictures = nil, nil
	m.Submit(p)
}

// answer gives a line to the question that waits for one, and the prompt its text back; false when there is none.
func (m *composing) answer(line string) bool {
	if !m.focus.line(line) {
		return false
	}
	m.put(m.focus.draft) // not the answer: the next question would begin with it
	m.focus.draft = ""
	return true
}

// recall shows the next earlier (-1) or later (+1) prompt.
func (m *composing) recall(step int) {
	if text, ok := m.history.step(m.ctx, step, m.text.Value()); ok {
		m.bring(text)
	}
}

// bring is put for a text that comes back: an earlier prompt, a queued one, what the editor left. A very long one is folded as a paste is,
// since the text area keeps 10,000 lines only and draws all of them at each key.
func (m *composing) bring(text string) {
	n := strings.Count(text, "\n") + 1
	if n <= broughtLines && len(text) <= broughtBytes {
		m.put(text)
		return
	}
	i := slices.IndexFunc(m.folded, func(f fold) bool { return f.text == text })
	if i < 0 {
		i = len(m.folded)
		m.folded = append(m.folded, fold{fmt.Sprintf("[paste %d: %s]", i+1, textutil.Plural(n, "line")), text})
	}
	m.put(m.folded[i].mark)
}

// put replaces the whole text and closes the completions, which were about the text before.
func (m *composing) put(text string) {
	m.text.SetValue(text)
	m.text, _ = m.text.Update(nil) // shows the rows around the cursor, which is at the end
	m.shut()
}

// shut takes the completions away; one still under way comes too late.
func (m *composing) shut() {
	m.asked++
	m.list = nil
}

// before is the text up to the cursor. The text area counts the cursor's column in characters, not in bytes.
func (m *composing) before() string {
	lines := strings.Split(m.text.Value(), "\n")
	row := min(m.text.Line(), len(lines)-1)
	line := []rune(lines[row])
	return strings.Join(append(lines[:row:row], string(line[:min(m.text.Column(), len(line))])), "\n")
}

// complete asks for completions of the text before the cursor, in the background. An answer to a question gets none.
func (m *composing) complete() tea.Cmd {
	m.shut()
	if m.Complete == nil || m.focus.typing() {
		return nil
	}
	asked, text := m.asked, m.before()
	return func() tea.Msg {
		from, list := m.Complete(m.ctx, text)
		return completed{asked, from, list[:min(len(list), offered)]}
	}
}

// accept writes a completion in place of the text from m.from to the cursor. That text is deleted with backspaces,
// one for each of its characters.
func (m *composing) accept(c Completion) {
	before := m.before()
	for range []rune(before[m.from:]) {
		m.text, _ = m.text.Update(tea.KeyPressMsg{Code: tea.KeyBackspace})
	}
	m.text.InsertString(c.Text)
}

// edit opens what is written in the user's editor. Folded pastes are unfolded, since the editor shows the text whole;
// the file ends in .md for its syntax.
func (m *composing) edit() tea.Cmd {
	if len(m.Editor) == 0 {
		m.note = "set $EDITOR to edit the prompt there"
		return nil
	}
	f, err := os.CreateTemp("", "pillion-prompt-*.md")
	if err == nil {
		_, err = f.WriteString(m.unfolded(m.text.Value()))
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		m.note = err.Error()
		return nil
	}
	c := guard.Command(guard.Person, append(m.Editor[:len(m.Editor):len(m.Editor)], f.Name())...)
	c.Stdin, c.Stdout, c.Stderr = m.In, m.Out, os.Stderr
	return tea.Exec(m.lend(c.Run), func(err error) tea.Msg {
		defer os.Remove(f.Name())
		b, readErr := os.ReadFile(f.Name())
		if err = errors.Join(err, readErr); err != nil {
			err = fmt.Errorf("%s: %w; the prompt is as it was", m.Editor[0], err)
		}
		return edited{string(b), err}
	})
}

func (m *composing) paint(style, s string) string { return paint(m.Color, style, s) }

// View implements tea.Model; draw draws.
func (m *composing) View() tea.View { return tea.View{} }

// view is what is below the lines that are complete: the end of the answer, what runs, the question, what waits, the prompt and its
// completions; and the place of the cursor. It has fewer rows than the screen: rows that have scrolled away cannot be drawn again.
func (m *composing) view() ([]string, cursor) {
	above := []string{""}                                    // sets the prompt off from what is above it
	if w := m.working(); w != "" && m.shown.question == "" { // at a question the work waits too
		above = append(above, w)
	}
	if q := m.shown.question; q != "" {
		above = append(above, strings.Split(ansi.Wrap(q, max(m.width, 10), ""), "\n")...)
	}
	above = append(above, m.waiting()...)
	text := strings.Split(m.text.View(), "\n")
	below := append(m.completions(), m.paint(dim, "  "+cut(m.foot(), m.width-3)))
	if tail := m.shown.tail; tail != "" {
		rows := strings.Split(strings.TrimRight(ansi.Wrap(tail, max(m.width, 10), ""), "\n"), "\n")
		// The end of an answer that may still change takes half of the screen at most: a window that is made lower pushes rows
		// into the scroll-back, and those of the frame would stay there. What is not shown is seen when it is complete.
		room := max(m.height/2-len(above)-len(text)-len(below), 1)
		above = append(rows[max(0, len(rows)-room):], above...)
	}
	at := cursor{row: len(above)}
	if c := m.text.Cursor(); c != nil {
		at = cursor{len(above) + c.Y, c.X}
	}
	rows := append(append(above, text...), below...)
	if over := len(rows) - max(m.height-1, 1); over > 0 {
		// The prompt is kept, with what fits above it and below it.
		cut := min(over, at.row)
		rows, at.row = rows[cut:], at.row-cut
		rows = rows[:min(len(rows), max(m.height-1, 1))]
	}
	return rows, at
}

// working is the line about what runs: what, for how long, the turn's tokens and cost.
func (m *composing) working() string {
	a := m.shown.working
	if a.what == "" {
		return ""
	}
	now := m.screen.now()
	parts := []string{a.clock(now)}
	// The clock of the turn is shown only where it differs from that of the step by a second or more.
	if !a.turn.IsZero() && now.Sub(a.turn)-now.Sub(a.since) >= time.Second {
		parts = append(parts, "turn "+elapsed(now.Sub(a.turn)))
	}
	if m.shown.spent != "" {
		parts = append(parts, m.shown.spent)
	}
	end := "  " + strings.Join(append(parts, "esc stops"), " · ")
	return m.paint(dim, string(spinner[m.spin%len(spinner)])+" "+cut(a.what, max(m.width-len([]rune(end))-3, 8))+end)
}

// waiting are the prompts in the queue.
func (m *composing) waiting() (out []string) {
	if m.Queued == nil {
		return nil
	}
	list := m.Queued()
	for i, text := range list {
		if i == queueShown {
			out = append(out, m.paint(dim, "  … and "+textutil.Plural(len(list)-i, "more prompt")))
			break
		}
		out = append(out, m.paint(dim, "  queued: "+cut(Clean(textutil.FirstLine(text)), m.width-12)))
	}
	return out
}

// completions are the lines of the offered completions; the chosen one is marked, in colour or not.
func (m *composing) completions() (out []string) {
	for i, c := range m.list {
		mark, style := "  ", ""
		if i == m.pick {
			mark, style = "▸ ", bold
		}
		text := cut(Clean(c.Text), m.width-4)
		line := m.paint(style, mark+text)
		if room := m.width - len([]rune(text)) - 6; c.Note != "" && room > 10 {
			line += "  " + m.paint(dim, cut(Clean(textutil.FirstLine(c.Note)), room))
		}
		out = append(out, line)
	}
	return out
}

// foot is the line below the prompt.
func (m *composing) foot() string {
	switch {
	case m.search != nil:
		return "search: " + m.search.query + "▏ ctrl-r older · enter takes it · esc goes back"
	case m.shown.awaited != nil: // where the keys go matters more than a note about the last one
		return m.focus.hint(m.text.Value())
	case m.note != "":
		return m.note
	case len(m.list) > 0:
		return "tab takes it · ↑↓ choose · esc closes"
	case m.busy() && m.text.Value() != "":
		return "enter queues it · ctrl-s gives it to the running turn · esc stops the turn"
	case m.Status != nil:
		return m.Status()
	}
	return ""
}
