package terminal

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"
	"github.com/pillion-dev/pillion/tools/guard"
	"github.com/pillion-dev/pillion/tools/textutil"
)

const (
	composeRows = 12 // lines of a prompt that are seen at once
	offered     = 8  // completions that are seen at once
)

// Composer is where a person types prompts: several lines, earlier prompts by the arrow keys, completion by tab, $EDITOR
// by Ctrl-G. Between prompts the terminal is in its ordinary mode.
type Composer struct {
	In      *os.File // a terminal
	Out     io.Writer
	Color   bool
	Editor  []string
	Earlier []string // prompts of this conversation, oldest first; Read adds to them
	// Before are the prompts of before this conversation, oldest first: asked for once, when somebody first looks back.
	Before func(context.Context) []string
	Status func() string
	// Complete offers what the end of text may become, best first, and the byte from which it would stand there instead.
	// It runs beside the typing.
	Complete func(ctx context.Context, text string) (from int, list []Completion)
	Next     func() // shift-tab: the next mode; nil: there is one

	waiting func() int // questions that wait for an empty prompt; nil: none ever
}

// Completion is one thing that tab may write.
type Completion struct{ Text, Note string }

// Read waits for a prompt. It returns io.EOF when the person is done, and the context's error when that ends.
// The prompt is empty only where a question waits.
func (c *Composer) Read(ctx context.Context) (string, error) {
	within, cancel := context.WithCancel(ctx) // ends completions that still run
	defer cancel()
	m := &composing{Composer: c, ctx: within, text: textarea.New(), at: len(c.Earlier), width: 80}
	m.text.Prompt = ""
	m.text.SetPromptFunc(2, func(p textarea.PromptInfo) string {
		if p.LineNumber == 0 {
			return m.paint(bold, "› ")
		}
		return "  "
	})
	m.text.ShowLineNumbers = false
	m.text.EndOfBufferCharacter = ' '
	m.text.DynamicHeight, m.text.MinHeight, m.text.MaxHeight, m.text.MaxContentHeight, m.text.CharLimit = true, 1, composeRows, 1<<20, 0
	m.text.KeyMap.Paste.SetEnabled(false) // the terminal's own paste works over SSH too
	m.text.SetStyles(textarea.Styles{})
	m.text.SetVirtualCursor(false)
	m.text.SetWidth(m.width)
	m.text.Focus()
	_, err := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(c.In), tea.WithOutput(c.Out), tea.WithoutSignalHandler()).Run()
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		return "", err
	case m.over:
		return "", io.EOF
	}
	prompt := strings.TrimSpace(m.text.Value())
	if n := len(c.Earlier); prompt != "" && (n == 0 || c.Earlier[n-1] != prompt) {
		c.Earlier = append(c.Earlier, prompt)
	}
	return prompt, nil
}

// composing is one prompt in the making.
type composing struct {
	*Composer
	ctx   context.Context
	text  textarea.Model
	width int
	sent  bool
	over  bool
	note  string // said below until the next key

	at    int    // which of Earlier is shown; len(Earlier): what is being written
	draft string // that, while an earlier one is shown

	asked int // completions asked for; an older answer does not count
	from  int
	list  []Completion
	pick  int
}

type completed struct {
	asked, from int
	list        []Completion
}

type edited struct {
	text string
	err  error
}

// look makes the line below the text current.
type look struct{}

func (m *composing) Init() tea.Cmd {
	return tea.Tick(time.Second, func(time.Time) tea.Msg { return look{} })
}

func (m *composing) asks() int {
	if m.waiting == nil {
		return 0
	}
	return m.waiting()
}

func (m *composing) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width = msg.Width
		m.text.SetWidth(msg.Width)
		return m, nil
	case look:
		return m, m.Init()
	case completed:
		if msg.asked == m.asked {
			m.from, m.list, m.pick = msg.from, msg.list, 0
		}
		return m, nil
	case edited:
		if msg.err != nil {
			m.note = msg.err.Error()
		} else {
			m.text.SetValue(strings.TrimRight(msg.text, "\n"))
		}
		return m, nil
	case tea.KeyPressMsg:
		key, note := msg.String(), m.note
		m.note = ""
		if cmd, done := m.key(key, note); done {
			return m, cmd
		}
	}
	before := m.text.Value()
	var cmd tea.Cmd
	m.text, cmd = m.text.Update(msg)
	if m.text.Value() != before {
		m.at = len(m.Earlier)
		return m, tea.Batch(cmd, m.complete())
	}
	return m, cmd
}

const onceMore = "press ctrl-c again to exit"

// pause gives the terminal back to the shell.
type pause struct{}

func (pause) Run() error          { stop(); return nil }
func (pause) SetStdin(io.Reader)  {}
func (pause) SetStdout(io.Writer) {}
func (pause) SetStderr(io.Writer) {}

// key is what we do about a key that does not simply edit; note is what was said before it came.
func (m *composing) key(key, note string) (cmd tea.Cmd, done bool) {
	switch key {
	case "ctrl+c":
		if m.text.Value() == "" && note == onceMore {
			m.over = true
			return tea.Quit, true
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
		if v := m.before(); strings.HasSuffix(v, `\`) {
			m.text, _ = m.text.Update(tea.KeyPressMsg{Code: tea.KeyBackspace})
			m.text.InsertRune('\n')
			return nil, true
		}
		if strings.TrimSpace(m.text.Value()) == "" && m.asks() == 0 {
			return nil, true
		}
		m.sent, m.list = true, nil
		return tea.Quit, true
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
		m.shut()
	case "up", "ctrl+p":
		if len(m.list) > 0 {
			m.pick = (m.pick + len(m.list) - 1) % len(m.list)
			return nil, true
		}
		if m.text.Line() > 0 || m.text.LineInfo().RowOffset > 0 {
			return nil, false
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
	case "ctrl+g":
		return m.edit(), true
	case "ctrl+z":
		return tea.Exec(pause{}, nil), true
	default:
		return nil, false
	}
	return nil, true
}

// recall shows the next earlier (-1) or later (+1) prompt; past the last one it is what was being written.
func (m *composing) recall(step int) {
	if m.Before != nil {
		before := slices.DeleteFunc(m.Before(m.ctx), func(text string) bool { return slices.Contains(m.Earlier, text) })
		m.Before, m.Earlier, m.at = nil, append(before, m.Earlier...), m.at+len(before)
	}
	if m.at == len(m.Earlier) {
		m.draft = m.text.Value()
	}
	switch at := m.at + step; {
	case at < 0 || at > len(m.Earlier):
		return
	case at == len(m.Earlier):
		m.at = at
		m.put(m.draft)
	default:
		m.at = at
		m.put(m.Earlier[at])
	}
}

func (m *composing) put(text string) {
	m.text.SetValue(text)
	m.shut()
}

// shut takes the completions away; one still under way comes too late.
func (m *composing) shut() {
	m.asked++
	m.list = nil
}

// before is the text up to the cursor.
func (m *composing) before() string {
	lines := strings.Split(m.text.Value(), "\n")
	row := min(m.text.Line(), len(lines)-1)
	line := []rune(lines[row])
	return strings.Join(append(lines[:row:row], string(line[:min(m.text.Column(), len(line))])), "\n")
}

func (m *composing) complete() tea.Cmd {
	m.shut()
	if m.Complete == nil {
		return nil
	}
	asked, text := m.asked, m.before()
	return func() tea.Msg {
		from, list := m.Complete(m.ctx, text)
		return completed{asked, from, list[:min(len(list), offered)]}
	}
}

func (m *composing) accept(c Completion) {
	before := m.before()
	for range []rune(before[m.from:]) {
		m.text, _ = m.text.Update(tea.KeyPressMsg{Code: tea.KeyBackspace})
	}
	m.text.InsertString(c.Text)
}

// edit opens what is written in the person's editor.
func (m *composing) edit() tea.Cmd {
	if len(m.Editor) == 0 {
		m.note = "set $EDITOR to edit the prompt there"
		return nil
	}
	f, err := os.CreateTemp("", "pillion-prompt-*.md")
	if err == nil {
		_, err = f.WriteString(m.text.Value())
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		m.note = err.Error()
		return nil
	}
	c := guard.Command(guard.Person, append(m.Editor[:len(m.Editor):len(m.Editor)], f.Name())...)
	return tea.ExecProcess(c, func(err error) tea.Msg {
		defer os.Remove(f.Name())
		b, readErr := os.ReadFile(f.Name())
		return edited{string(b), errors.Join(err, readErr)}
	})
}

func (m *composing) View() tea.View {
	if m.over || m.sent && strings.TrimSpace(m.text.Value()) == "" {
		return tea.NewView("")
	}
	if m.sent { // what stays on the screen
		return tea.NewView(m.paint(bold, "› ") + strings.ReplaceAll(Clean(strings.TrimSpace(m.text.Value())), "\n", "\n  ") + "\n")
	}
	var b strings.Builder
	b.WriteString(m.text.View())
	for i, c := range m.list {
		mark, style := "  ", ""
		if i == m.pick {
			mark, style = "▸ ", bold
		}
		text := cut(Clean(c.Text), m.width-4)
		b.WriteString("\n" + m.paint(style, mark+text))
		if room := m.width - len([]rune(text)) - 6; c.Note != "" && room > 10 {
			b.WriteString("  " + m.paint(dim, cut(Clean(textutil.FirstLine(c.Note)), room)))
		}
	}
	foot := m.note
	if n := m.asks(); foot == "" && n > 0 {
		foot = textutil.Plural(n, "question") + " of an agent in the background: enter, with nothing typed, shows it"
	}
	if foot == "" && len(m.list) > 0 {
		foot = "tab takes it · ↑↓ choose · esc closes"
	}
	if foot == "" && m.Status != nil {
		foot = m.Status()
	}
	b.WriteString("\n" + m.paint(dim, "  "+cut(foot, m.width-3)))
	v := tea.NewView(b.String())
	v.Cursor = m.text.Cursor()
	return v
}

func (c *Composer) paint(style, s string) string { return paint(c.Color, style, s) }
