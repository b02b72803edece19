//go:build unix

package terminal

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/creack/pty"
)

// desk is a composer on a real terminal, with somebody who types.
type desk struct {
	t    *testing.T
	keys *os.File
	seen chan string // what the terminal shows, as it comes
	all  strings.Builder
	read chan result
}

type result struct {
	text string
	err  error
}

func sit(t *testing.T, c *Composer) *desk {
	t.Helper()
	master, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := pty.Setsize(master, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() { // the test's context has ended, and so has the reading
		<-ended
		master.Close()
		tty.Close()
	})
	d := &desk{t: t, keys: master, seen: make(chan string, 1000), read: make(chan result, 1)}
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
	c.In, c.Out = tty, tty
	go func() {
		text, err := c.Read(t.Context())
		d.read <- result{text, err}
		close(ended)
	}()
	d.shows("›")
	return d
}

// shows waits until s has been drawn. Only what changes is drawn, so s is one sign, or stands where nothing was.
func (d *desk) shows(s string) {
	d.t.Helper()
	for !strings.Contains(d.all.String(), s) {
		select {
		case more := <-d.seen:
			d.all.WriteString(more)
		case r := <-d.read:
			d.t.Fatalf("it ended with %q, %v before it showed %q: %q", r.text, r.err, s, d.all.String())
		case <-time.After(20 * time.Second):
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

func (d *desk) gets(want string) {
	d.t.Helper()
	for {
		select {
		case <-d.seen:
		case r := <-d.read:
			if r.err != nil || r.text != want {
				d.t.Errorf("got %q, %v, want %q", r.text, r.err, want)
			}
			return
		case <-time.After(20 * time.Second):
			d.t.Fatal("the prompt never came")
		}
	}
}

func TestAPromptOfSeveralLines(t *testing.T) {
	d := sit(t, &Composer{})
	d.types("one\x0atwo\\\rthree\r") // ctrl-j, and a backslash before enter
	d.gets("one\ntwo\nthree")
}

func TestAPasteIsNotSentLineByLine(t *testing.T) {
	d := sit(t, &Composer{})
	d.types("\x1b[200~func main() {\n\tprintln(\"ä\")\n}\x1b[201~\r")
	d.gets("func main() {\n    println(\"ä\")\n}") // the text area writes tabs as spaces
}

func TestEarlierPromptsComeBack(t *testing.T) {
	const up, down = "\x1b[A", "\x1b[B"
	for keys, want := range map[string]string{"draft" + up + up + down + down: "draft", "draft" + up: "second", up + up + up: "first", up + up + down + "!": "second!"} {
		c := &Composer{Earlier: []string{"first", "second"}}
		d := sit(t, c)
		d.types(keys + "\r")
		d.gets(want)
		if n := len(c.Earlier); c.Earlier[n-1] != want || want == "second" && n != 2 {
			t.Errorf("kept %q", c.Earlier)
		}
	}
}

func TestWhatWasBeforeIsLookedUpWhenSomebodyLooksBack(t *testing.T) {
	const up = "\x1b[A"
	looked := 0
	c := &Composer{Before: func(context.Context) []string { looked++; return []string{"old", "first"} }}
	for _, prompt := range []struct {
		keys, want string
		looked     int
	}{{"first", "first", 0}, {up + up, "old", 1}, {up + up, "first", 1}} { // "first" is in the store by now, and stands once
		d := sit(t, c)
		d.types(prompt.keys + "\r")
		d.gets(prompt.want)
		if looked != prompt.looked {
			t.Errorf("looked up %d times after %q, want %d", looked, prompt.want, prompt.looked)
		}
	}
}

func TestTabTakesWhatIsOffered(t *testing.T) {
	complete := func(_ context.Context, text string) (int, []Completion) {
		if at := strings.LastIndex(text, "@"); at >= 0 && !strings.Contains(text[at:], " ") {
			return at, []Completion{{Text: "@shop/basket.go ", Note: "file"}, {Text: "@shop/money.go ", Note: "file"}}
		}
		return 0, nil
	}
	d := sit(t, &Composer{Complete: complete})
	d.types("read ä @sh")
	d.shows("▸")
	d.types("\x1b[B\tnow\r")
	d.gets("read ä @shop/money.go now")
}

func TestTheEndOfAConversation(t *testing.T) {
	for name, keys := range map[string]string{"ctrl-d": "\x04", "ctrl-c twice": "\x03\x03"} {
		t.Run(name, func(t *testing.T) {
			d := sit(t, &Composer{})
			d.types("some words\x03") // takes them away
			d.types("x\x7f" + keys)   // any key, and the next Ctrl-C is the first one again
			for {
				select {
				case <-d.seen:
					continue
				case r := <-d.read:
					if !errors.Is(r.err, io.EOF) {
						t.Errorf("%q, %v", r.text, r.err)
					}
				}
				return
			}
		})
	}
}

func TestAQuestionInTheBackgroundIsSeenAndAnswered(t *testing.T) {
	var n atomic.Int32
	d := sit(t, &Composer{waiting: func() int { return int(n.Load()) }})
	n.Store(1)
	d.shows("question")
	d.types("\r")
	d.gets("")
}
