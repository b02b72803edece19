package terminal

import (
	"context"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/pillion-dev/pillion/tools/permission"
)

// watched is what a person sees; it tells when something is on it.
type watched struct {
	mu      sync.Mutex
	text    strings.Builder
	changed chan struct{}
}

func (s *watched) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(b)
	close(s.changed)
	s.changed = make(chan struct{})
	return len(b), nil
}

// until waits until a text has been written so many times.
func (s *watched) until(t *testing.T, want string, times int) {
	t.Helper()
	limit := time.After(2 * time.Minute)
	for {
		s.mu.Lock()
		text, changed := s.text.String(), s.changed
		s.mu.Unlock()
		if strings.Count(text, want) >= times {
			return
		}
		select {
		case <-changed:
		case <-limit:
			t.Fatalf("no %q (%d times) in %q", want, times, text)
		}
	}
}

// What is typed before a question, or while it appears, answers nothing, and neither do pastes and arrow keys. Who was typing answers with a key
// and Enter; so does who goes on typing.
func TestTypingAheadApprovesNothing(t *testing.T) {
	const (
		keys  = "Allow [y,n,A,P,E,q,?]? "
		enter = keys + "(then enter) "
	)
	once, no := permission.Reply{Kind: permission.Once, Asked: true}, permission.Reply{Kind: permission.Reject, Asked: true}
	for name, c := range map[string]struct {
		ahead string
		shown string   // is on the screen before what follows is typed
		typed []string // each with a pause after it
		want  permission.Reply
	}{
		"a sentence that goes on with pauses":  {"Please do not run commands. ", enter, []string{"y", "P", "y", "\r", "q", "\r"}, no},
		"the first letter of a sentence":       {"y", enter, []string{"\r", "q", "\r"}, no},
		"lines":                                {"y\nP\ny\n", enter, []string{"y", "\r"}, once},
		"corrected":                            {"\n", enter, []string{"n", "\x7f", "y", "\r"}, once},
		"a word that is corrected to a key":    {"\n", enter, []string{"y", "e", "s", "\x7f", "\x7f", "\r", "q", "\r"}, no},
		"a paste of lines":                     {"\n", enter, []string{"say\ry\r", "q", "\r"}, no},
		"the arrow that ends in A, and F1":     {"", keys, []string{"\x1b[A", "\x1bOP", "y"}, once},
		"a paste, and a key":                   {"", keys, []string{"yes, please", "y", "\r", "q", "\r"}, no},
		"a letter of two bytes":                {"", keys, []string{"ý", "q"}, no},
		"ctrl-c counts at once, whatever else": {"", keys, []string{"y\x03"}, no},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			person, tty, err := pty.Open()
			if err != nil {
				t.Fatal(err)
			}
			defer person.Close()
			defer tty.Close()
			go func() { _, _ = io.Copy(io.Discard, person) }() // the echo
			seen := &watched{changed: make(chan struct{})}
			term := New(Options{Out: seen, Approve: Ask, Keys: TTY{tty}})
			defer term.Close()
			if _, err := io.WriteString(person, c.ahead); err != nil {
				t.Fatal(err)
			}
			done := make(chan permission.Reply, 1)
			go func() {
				r, err := term.AskPermission(context.Background(), permission.Request{Permission: "bash", Title: "touch x", Always: []string{"touch *"}})
				if err != nil {
					t.Error(err)
				}
				done <- r
			}()
			seen.until(t, c.shown, 1)
			for _, k := range c.typed {
				typeAlone(t, person, k)
			}
			if got := <-done; got != c.want {
				t.Errorf("%+v in %q", got, seen.text.String())
			}
		})
	}
}

// A sentence whose author pauses before its first letter or looks up at its end answers nothing, at any speed of typing within its words. Enter
// answers at once.
func TestASentenceAnswersNothing(t *testing.T) {
	for name, c := range map[string]struct {
		sentence string
		gap      time.Duration
		want     permission.ReplyKind
	}{
		"yes at the start":  {"yes, but", 2 * burst, permission.Reject},
		"yes at the end":    {"so I say y", 2 * burst, permission.Reject},
		"fast":              {"yPAEy", 2 * burst, permission.Reject},
		"y, then enter":     {"y\r", 2 * burst, permission.Once},
		"a word with enter": {"ay\r", 2 * burst, permission.Reject},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 5 {
				got, slowest := answerTo(t, c.sentence, c.gap, c.want == permission.Reject)
				if got.Kind == c.want {
					return
				}
				// A busy machine may have typed too slowly to be a person who types a word.
				if slowest < lone*3/4 {
					t.Fatalf("%+v", got)
				}
			}
			t.Fatal("this machine is too busy to type")
		})
	}
}

// answerTo types a sentence at a question, with a pause between its letters, and then q if that is wanted. slowest is the longest pause.
func answerTo(t *testing.T, sentence string, gap time.Duration, quit bool) (got permission.Reply, slowest time.Duration) {
	t.Helper()
	person, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer person.Close()
	defer tty.Close()
	go func() { _, _ = io.Copy(io.Discard, person) }()
	seen := &watched{changed: make(chan struct{})}
	term := New(Options{Out: seen, Approve: Ask, Keys: TTY{tty}})
	defer term.Close()
	done := make(chan permission.Reply, 1)
	go func() {
		r, _ := term.AskPermission(context.Background(), permission.Request{Permission: "bash", Title: "touch x", Always: []string{"touch *"}})
		done <- r
	}()
	seen.until(t, "Allow [y,n,A,P,E,q,?]? ", 1)
	for i := range len(sentence) {
		before := time.Now()
		if _, err := io.WriteString(person, sentence[i:i+1]); err != nil {
			t.Fatal(err)
		}
		<-time.NewTimer(gap).C
		slowest = max(slowest, time.Since(before))
	}
	rest := time.NewTimer(quiet + lone)
	defer rest.Stop()
	<-rest.C
	if quit {
		for _, key := range []string{"\r", "q", "\r"} {
			typeAlone(t, person, key)
		}
	}
	return <-done, slowest
}

// typeAlone types something and waits for longer than a moment of quiet lasts, so that what is typed next comes by itself.
func typeAlone(t *testing.T, person *os.File, text string) {
	t.Helper()
	if _, err := io.WriteString(person, text); err != nil {
		t.Fatal(err)
	}
	rest := time.NewTimer(quiet + 4*burst)
	defer rest.Stop()
	<-rest.C
}

func TestALongerPermissionNeedsASecondKey(t *testing.T) {
	person, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer person.Close()
	defer tty.Close()
	go func() { _, _ = io.Copy(io.Discard, person) }()
	seen := &watched{changed: make(chan struct{})}
	term := New(Options{Out: seen, Approve: Ask, Keys: TTY{tty}})
	defer term.Close()
	done := make(chan permission.Reply, 1)
	go func() {
		r, _ := term.AskPermission(context.Background(), permission.Request{Permission: "bash", Title: "touch x", Always: []string{"touch *"}})
		done <- r
	}()
	const question, second = "Allow [y,n,A,P,E,q,?]? ", "Allow bash touch * in this project from now on [y,n]? "
	seen.until(t, question, 1)
	typeAlone(t, person, "P")
	seen.until(t, second, 1)
	typeAlone(t, person, "n")
	seen.until(t, question, 2)
	typeAlone(t, person, "P")
	seen.until(t, second, 2)
	typeAlone(t, person, "y")
	if got := <-done; got.Kind != permission.Always || got.Scope != permission.ScopeProject {
		t.Errorf("%+v", got)
	}
}
