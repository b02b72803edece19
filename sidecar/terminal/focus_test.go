//go:build unix

package terminal

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/permission"
)

// asked is a desk at which a question about a command is open.
func asked(t *testing.T, o ComposerOptions, before string) (d *desk, replies chan permission.Reply) {
	t.Helper()
	d = sit(t, o)
	if before != "" {
		d.types(before)
		d.shows(before[len(before)-3:])
	}
	term := New(Options{Prompt: d.c, Approve: Ask})
	replies = make(chan permission.Reply, 1)
	go func() {
		r, _ := term.AskPermission(t.Context(), permission.Request{Permission: "bash", Title: "touch x", Always: []string{"touch *"}})
		replies <- r
	}()
	d.shows("Allow")
	return d, replies
}

func (d *desk) reply(replies chan permission.Reply) permission.Reply {
	d.t.Helper()
	for {
		select {
		case <-d.seen:
		case r := <-replies:
			return r
		case <-time.After(2 * time.Minute):
			d.t.Fatalf("no answer: %q", d.all.String())
		}
	}
}

const choices = "[y,n,A,P,E,q,?]?"

// With nothing typed the question gets the keys once the keyboard is quiet.
func TestAKeyAnswersAQuestionAboveThePrompt(t *testing.T) {
	d, replies := asked(t, ComposerOptions{}, "")
	d.shows(choices)
	d.types("y")
	if r := d.reply(replies); r.Kind != permission.Once {
		t.Errorf("%+v", r)
	}
}

// A draft keeps the keys, however long its author thinks; tab goes to the question, and a quiet moment later a key answers.
func TestADraftKeepsTheKeys(t *testing.T) {
	d, replies := asked(t, ComposerOptions{}, "Please do")
	rest := time.NewTimer(2 * quiet) // longer than an empty prompt would keep them
	defer rest.Stop()
	<-rest.C
	d.types(" Py\r")
	d.gets("Please do Py")
	d.shows(choices) // the prompt is empty now
	if len(replies) > 0 {
		t.Fatalf("answered: %+v", <-replies)
	}
	d.types("\ta draft\t") // to the prompt, and back with something in it
	d.shows("y yes · n no · A session · P project · E everywhere · q stop · tab prompt")
	d.types("n")
	d.shows("why")
	d.types("\t") // this question is a new one, and the draft still keeps the keys
	d.shows("enter answers")
	d.types("not now\r")
	if r := d.reply(replies); r.Kind != permission.Reject || r.Message != "not now" {
		t.Errorf("%+v", r)
	}
	d.shows("a draft") // the question gave the prompt back
}

// A letter that was in the prompt before the question is a prompt, with enter too.
func TestALetterBeforeTheQuestionIsNoAnswer(t *testing.T) {
	d := sit(t, ComposerOptions{Busy: func() bool { return true }})
	d.types("y")
	d.shows("y")
	term := New(Options{Prompt: d.c, Approve: Ask})
	replies := make(chan permission.Reply, 1)
	go func() {
		r, _ := term.AskPermission(t.Context(), permission.Request{Permission: "bash", Title: "touch x", Always: []string{"touch *"}})
		replies <- r
	}()
	d.shows("Allow")
	rest := time.NewTimer(notice + quiet)
	defer rest.Stop()
	<-rest.C
	d.types("\r")
	d.gets("y")
	if len(replies) > 0 {
		t.Fatalf("answered: %+v", <-replies)
	}
	d.types("\x03")
	d.reply(replies)
}

// A sentence typed while a question appears, and a paste, with or without brackets, answer nothing.
func TestABurstAnswersNothing(t *testing.T) {
	d, replies := asked(t, ComposerOptions{}, "")
	d.shows(choices)
	d.types("yyy")                 // a paste of a terminal that does not mark it
	d.types("\x1b[200~y\x1b[201~") // of one that does
	d.types("\x1b[A\x1bOP")        // keys whose sequences end in letters that mean something
	rest := time.NewTimer(10 * burst)
	defer rest.Stop()
	<-rest.C
	if len(replies) > 0 {
		t.Fatalf("answered: %+v", <-replies)
	}
	d.types("\x03") // Ctrl-C says no
	if r := d.reply(replies); r.Kind != permission.Reject {
		t.Errorf("%+v", r)
	}
}

// The end of the conversation is not a yes.
func TestAQuestionEndsWithTheConversation(t *testing.T) {
	d, replies := asked(t, ComposerOptions{}, "")
	d.c.Close()
	if r := d.reply(replies); r.Kind != permission.Reject {
		t.Errorf("%+v", r)
	}
	d.ends()
}

func TestAQuestionInWords(t *testing.T) {
	d := sit(t, ComposerOptions{})
	term := New(Options{Prompt: d.c, Approve: Ask})
	answers := make(chan [][]string, 1)
	go func() {
		got, _ := term.AskQuestions(context.Background(), nil, []tools.Question{{Question: "Which one?", Options: []tools.Option{{Label: "Red"}, {Label: "Blue"}}}})
		answers <- got
	}()
	d.shows("Which one?")
	d.shows("enter answers")
	d.types("2\r")
	select {
	case got := <-answers:
		if len(got) != 1 || len(got[0]) != 1 || got[0][0] != "Blue" {
			t.Error(got)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("no answer")
	}
}

// An answer is gone when it was given: neither the next question nor the prompt begins with it.
func TestAnswersDoNotRunIntoEachOther(t *testing.T) {
	d := sit(t, ComposerOptions{})
	term := New(Options{Prompt: d.c, Approve: Ask})
	answers := make(chan [][]string, 1)
	go func() {
		got, _ := term.AskQuestions(context.Background(), nil, []tools.Question{{Question: "Which one?", Options: []tools.Option{{Label: "Red"}, {Label: "Blue"}}}, {Question: "And why?"}})
		answers <- got
	}()
	d.shows("enter answers")
	d.types("2\r")
	d.shows("And why?")
	d.shows("enter answers")
	d.types("so\r")
	for got := [][]string(nil); got == nil; {
		select {
		case <-d.seen:
		case got = <-answers:
			if len(got) != 2 || got[0][0] != "Blue" || got[1][0] != "so" {
				t.Fatal(got)
			}
		case <-time.After(2 * time.Minute):
			t.Fatal("no answer")
		}
	}
	d.types("a prompt\r")
	d.gets("a prompt")
}

// The first words of an answer are wrapped for the terminal as it is, and a prompt keeps its indent where it is wrapped.
func TestTheFirstWordsFitTheTerminal(t *testing.T) {
	d := sit(t, ComposerOptions{}, 40)
	term := New(Options{Prompt: d.c, Approve: Ask, Markdown: true})
	term.Echo("", strings.Repeat("word ", 12))
	term.Event(agent.Event{Type: agent.EventText, Value: agent.TextData{Text: "- " + strings.Repeat("word ", 12)}})
	term.Result(Summary{})
	d.shows("› word word word word word word word\r\n  word word")
	d.shows("• word word word word word word word\r\n  word word")
}

func TestALongPasteIsFolded(t *testing.T) {
	d := sit(t, ComposerOptions{})
	long := strings.Repeat("line\r", 999) + "last"
	d.types("read \x1b[200~" + long + "\x1b[201~")
	d.shows("[paste 1: 1000 lines]")
	d.types("please\r")
	d.gets("read " + strings.ReplaceAll(long, "\r", "\n") + "please")
}

// An earlier prompt that is very long comes back whole: it is folded, as its paste was.
func TestALongPromptComesBackFolded(t *testing.T) {
	long := strings.Repeat("line\n", 99_999) + "last"
	d := sit(t, ComposerOptions{Earlier: func(context.Context) []string { return []string{"short", long} }})
	d.types("\x1b[A")
	d.shows("[paste 1: 100000 lines]")
	d.types(" and more\r")
	d.gets(long + " and more")
	d.types("\x12LINE") // the same fold for each letter of the search
	d.shows("[paste 1: 100000 lines]")
	d.types("\r\r")
	d.gets(long + " and more")
}

func TestAPastedPictureIsAttached(t *testing.T) {
	png := provider.File{Mime: "image/png", Name: "a.png", Data: []byte("x")}
	d := sit(t, ComposerOptions{PictureFile: func(text string) (provider.File, bool) { return png, text == "/tmp/a.png" }})
	d.types("see \x1b[200~/tmp/a.png\x1b[201~")
	d.shows("[picture 1: a.png]")
	d.types("and \x1b[200~/tmp/b.png\x1b[201~\r")
	if p := d.gets("see [picture 1: a.png] and /tmp/b.png"); len(p.Pictures) != 1 || p.Pictures[0].Name != "a.png" {
		t.Errorf("%+v", p.Pictures)
	}
}

// While a turn runs Enter queues and Ctrl-S steers, Esc stops; what waits is shown, and can be taken back.
func TestQueueAndSteer(t *testing.T) {
	stopped := make(chan bool, 1)
	var waits atomic.Pointer[[]string]
	waits.Store(new([]string))
	d := sit(t, ComposerOptions{Busy: func() bool { return true }, Stop: func() { stopped <- true }, Queued: func() []string { return *waits.Load() },
		Unqueue: func() (string, bool) { return "taken back", true }})
	waits.Store(&[]string{"first"})
	d.shows("queued: first")
	d.types("one\r")
	if p := d.gets("one"); p.Steer {
		t.Error("steers")
	}
	d.types("two\x13")
	if p := d.gets("two"); !p.Steer {
		t.Error("does not steer")
	}
	d.types("\x1b[A!\r")
	d.gets("taken back!")
	d.types("\x1b")
	select {
	case <-stopped:
	case <-time.After(2 * time.Minute):
		t.Error("not stopped")
	}
}

// What comes while one types is above the prompt, in order, and nothing is lost at the end.
func TestOutputStaysAboveThePrompt(t *testing.T) {
	d := sit(t, ComposerOptions{})
	term := New(Options{Prompt: d.c, Markdown: true})
	d.types("a draft")
	d.shows("ft")
	for _, e := range []agent.Event{
		{Type: agent.EventText, Value: agent.TextData{Text: "An **answer** that goes"}},
		{Type: agent.EventText, Value: agent.TextData{Text: " on.\n\nAnd ends."}},
		{Type: agent.EventTool, Value: agent.ToolData{CallID: "1", Tool: "read", Title: "a.go", Status: agent.ToolCompleted}},
	} {
		term.Event(e)
	}
	d.shows("An answer that goes on.")
	d.shows("And ends.")
	d.shows("a.go")
	term.Say("the last word")
	d.c.Close()
	if d.ends(); !strings.Contains(d.all.String(), "the last word") {
		t.Errorf("lost at the end: %q", d.all.String())
	}
}

// The first letter of a sentence does not answer, and neither does its last one: it is a prompt. A key alone in the prompt answers with enter.
func TestASentenceAboveThePromptAnswersNothing(t *testing.T) {
	pause := func(d time.Duration) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		<-timer.C
	}
	d, replies := asked(t, ComposerOptions{}, "")
	d.shows(choices)
	begun := time.Now()
	for _, letter := range []string{"y", "e", "s", " ", "y"} {
		d.types(letter)
		pause(2 * burst)
	}
	slow := time.Since(begun) > 5*lone // then a letter may have stood alone
	pause(quiet + lone)
	if len(replies) > 0 && !slow {
		t.Fatalf("answered: %+v", <-replies)
	}
	d.types("\r")
	if !slow {
		d.gets("yes y")
	}
	d.types("y")
	pause(2 * burst)
	d.types("\r")
	if r := d.reply(replies); r.Kind != permission.Once {
		t.Errorf("%+v", r)
	}
}
