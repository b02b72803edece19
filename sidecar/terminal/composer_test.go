//go:build unix

package terminal

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/pillion-dev/pillion/agent/provider"
)

// desk is a composer on a real terminal, with somebody who types.
type desk struct {
	t    *testing.T
	c    *Composer
	keys *os.File
	tty  *os.File    // what the program writes to
	seen chan string // what the terminal shows, as it comes
	all  strings.Builder
	sent chan Prompt
	over chan error
}

// sit opens a prompt in a terminal of 24 rows and 80 columns, or as many as are given.
func sit(t *testing.T, o ComposerOptions, columns ...uint16) *desk {
	t.Helper()
	master, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := pty.Setsize(master, &pty.Winsize{Rows: 24, Cols: append(columns, 80)[0]}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() { // the test's context has ended, and so has the program
		<-ended
		master.Close()
		tty.Close()
	})
	d := &desk{t: t, keys: master, tty: tty, seen: make(chan string, 1000), sent: make(chan Prompt, 10), over: make(chan error, 1)}
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			if err != nil {
				return
			}
			d.seen <- string(buf[:n])
		}
	}()
	o.In, o.Out, o.Submit = tty, tty, func(p Prompt) { d.sent <- p }
	d.c = NewComposer(o)
	go func() {
		d.over <- d.c.Run(t.Context())
		close(ended)
	}()
	d.shows("›")
	return d
}

// shows waits until s has been drawn. Only what changes is drawn, so s is one sign, or is where nothing was.
func (d *desk) shows(s string) {
	d.t.Helper()
	for !strings.Contains(d.all.String(), s) {
		select {
		case more := <-d.seen:
			d.all.WriteString(more)
		case err := <-d.over:
			d.t.Fatalf("it ended with %v before it showed %q: %q", err, s, d.all.String())
		case <-time.After(2 * time.Minute):
			d.t.Fatalf("never showed %q: %q", s, d.all.String())
		}
	}
	_, rest, _ := strings.Cut(d.all.String(), s)
	d.all.Reset()
	d.all.WriteString(rest)
}

func (d *desk) types(keys string) {
	d.t.Helper()
	if _, err := io.WriteString(d.keys, keys); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) gets(want string) Prompt {
	d.t.Helper()
	for {
		select {
		case <-d.seen:
		case p := <-d.sent:
			if p.Text != want {
				d.t.Errorf("got %q, want %q", p.Text, want)
			}
			return p
		case <-time.After(2 * time.Minute):
			d.t.Fatal("the prompt never came")
		}
	}
}

// ends waits for the end of the conversation.
func (d *desk) ends() {
	d.t.Helper()
	for {
		select {
		case more := <-d.seen:
			d.all.WriteString(more)
		case err := <-d.over:
			if err != nil {
				d.t.Error(err)
			}
			const last = "\x00" // comes behind all that was written before the end, which is read later
			if _, err := io.WriteString(d.tty, last); err != nil {
				d.t.Fatal(err)
			}
			for {
				more, end, found := strings.Cut(<-d.seen, last)
				if d.all.WriteString(more + end); found {
					return
				}
			}
		case <-time.After(2 * time.Minute):
			d.t.Fatal("the conversation never ended")
		}
	}
}

func TestAPromptOfSeveralLines(t *testing.T) {
	d := sit(t, ComposerOptions{})
	d.types("one\x0atwo\\\rthree\r") // ctrl-j, and a backslash before enter
	d.gets("one\ntwo\nthree")
}

func TestAPasteIsNotSentLineByLine(t *testing.T) {
	d := sit(t, ComposerOptions{})
	d.types("\x1b[200~func main() {\n\tprintln(\"ä\")\n}\x1b[201~\r")
	d.gets("func main() {\n    println(\"ä\")\n}") // the text area writes tabs as spaces
}

func TestEarlierPromptsComeBack(t *testing.T) {
	const up, down = "\x1b[A", "\x1b[B"
	looked := 0
	before := func(context.Context) []string { looked++; return []string{"old", "first"} }
	d := sit(t, ComposerOptions{Earlier: before})
	d.types("first\r")
	d.gets("first")
	d.types("second\r")
	d.gets("second")
	if looked != 0 {
		t.Errorf("looked up %d times before anybody looked back", looked)
	}
	for _, c := range []struct{ keys, want string }{
		{"draft" + up + up + down + down, "draft"},
		{up + up, "second"},                       // the draft was sent, and is the last one now
		{up + up + up + up + up + up + up, "old"}, // "first" is in the store too, and is shown once
		{up + up + down + "!", "old!"},
	} {
		d.types(c.keys + "\r")
		d.gets(c.want)
	}
	if looked != 1 {
		t.Errorf("looked up %d times", looked)
	}
}

func TestSearchBackwards(t *testing.T) {
	d := sit(t, ComposerOptions{Earlier: func(context.Context) []string { return []string{"run the tests", "read a.go", "run the linter"} }})
	d.types("\x12RUN\x12")
	d.shows("older")
	d.types("\r\r") // takes it, then sends it
	d.gets("run the tests")
	d.types("draft\x12read")
	d.shows("a.go")
	d.types("\x1b") // an escape is one by itself when nothing follows
	d.shows("draft")
	d.types("\r")
	d.gets("draft")
}

func TestTabTakesWhatIsOffered(t *testing.T) {
	complete := func(_ context.Context, text string) (int, []Completion) {
		if before, ok := strings.CutSuffix(text, "@sh"); ok { // what is offered for less would go with the next letter
			return len(before), []Completion{{Text: "@shop/basket.go ", Note: "file"}, {Text: "@shop/money.go ", Note: "file"}}
		}
		return 0, nil
	}
	d := sit(t, ComposerOptions{Complete: complete})
	d.types("read ä @sh")
	d.shows("▸")
	d.types("\x1b[B\tnow\r")
	d.gets("read ä @shop/money.go now")
}

func TestTheEndOfAConversation(t *testing.T) {
	for name, keys := range map[string]string{"ctrl-d": "\x04", "ctrl-c twice": "\x03\x03"} {
		t.Run(name, func(t *testing.T) {
			d := sit(t, ComposerOptions{})
			d.types("some words\x03") // clears the prompt
			d.types("x\x7f" + keys)   // any key, and the next Ctrl-C is the first one again
			d.ends()
		})
	}
}

// An editor that fails leaves the prompt, and is named; the word about the clipboard goes when the picture is there.
func TestWhatFailsBesideThePromptIsSaid(t *testing.T) {
	d := sit(t, ComposerOptions{Editor: []string{"false"}, Status: func() string { return "the status" },
		Picture: func(context.Context) (provider.File, error) {
			return provider.File{Mime: "image/png", Name: "c.png"}, nil
		}})
	d.types("a draft\x07")
	d.shows("false: exit status 1; the prompt is as it was")
	d.types(" \x16")
	d.shows("reading the clipboard")
	d.shows("the status")
	d.types("\r")
	d.gets("a draft [picture 1: c.png]")
	d.types("\x03")
	d.shows(onceMore)
	d.types("\x1b[200~pasted\x1b[201~")
	d.shows("the status") // no longer the note
	d.types("\r")
	d.gets("pasted")
}
