package agent

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/agent/store"
	"github.com/pillion-dev/pillion/tools"
)

func TestASessionGoesOnAfterARestart(t *testing.T) {
	h := newHarness(t, calls(`read {"text":"a"}`), says("one"), says("two"))
	s := h.session()
	h.prompt(s, "first")
	if err := s.SetTitle("mine"); err != nil {
		t.Fatal(err)
	}
	if err := s.SetAgent("plan"); err != nil {
		t.Fatal(err)
	}
	h.restart()
	s = h.load(s.ID())
	if info := s.Info(); info.Title != "mine" || info.Agent != "plan" || info.Model != "fake/m" {
		t.Errorf("info %+v", info)
	}
	if again := h.load(s.ID()); again != s {
		t.Error("a live session was loaded twice")
	}
	h.prompt(s, "second")
	if got := len(h.model.seen()[2].Messages); got != 5 {
		t.Errorf("%d messages", got)
	}
	h.consistent(s)
	all, err := h.rt.List(t.Context(), h.dir)
	if err != nil || len(all) != 1 || all[0].ID != s.ID() || all[0].Title != "mine" {
		t.Errorf("list %+v, %v", all, err)
	}
	if err := h.rt.Delete(t.Context(), s.ID()); err != nil {
		t.Fatal(err)
	}
	if _, err := h.rt.LoadSession(t.Context(), s.ID()); !errors.Is(err, ErrNoSession) {
		t.Errorf("after delete: %v", err)
	}
	if err := h.rt.Delete(t.Context(), s.ID()); !errors.Is(err, ErrNoSession) {
		t.Errorf("second delete: %v", err)
	}
}

// TestAReaderSeesASessionWhileItIsRead: an editor shows the first messages before the last were read.
func TestAReaderSeesASessionWhileItIsRead(t *testing.T) {
	h := newHarness(t, calls(`read {"text":"a"}`, `read {"text":"b"}`), says("one"), calls(`todowrite {"todos":[{"content":"x","status":"pending","priority":"high"}]}`), says("two"))
	s := h.session()
	h.prompt(s, "first")
	h.prompt(s, "second")
	want := h.events(s)
	h.restart()

	refused := errors.New("not here")
	if _, err := h.rt.ReadSession(t.Context(), s.ID(), &Reader{Begin: func(*Session) error { return refused }}); !errors.Is(err, refused) {
		t.Errorf("the reader's error became %v", err)
	}
	var seen []Event
	reader := &Reader{
		Begin: func(begun *Session) error {
			if begun.ID() != s.ID() || begun.Info().Cwd != h.dir {
				t.Errorf("began with %+v", begun.Info())
			}
			return nil
		},
		Event: func(e Event, hidden bool) {
			if _, live := h.rt.Session(s.ID()); live || hidden {
				t.Errorf("event %d: live %v, hidden %v", e.Seq, live, hidden)
			}
			seen = append(seen, e)
		},
	}
	read, err := h.rt.ReadSession(t.Context(), s.ID(), reader)
	if err != nil {
		t.Fatal(err)
	}
	same := func(a, b Event) bool { return a.Seq == b.Seq && a.Type == b.Type && string(a.Data) == string(b.Data) }
	if !slices.EqualFunc(seen, want, same) {
		t.Errorf("seen %+v\nof %+v", seen, want)
	}
	h.consistent(read)
	if again, err := h.rt.ReadSession(t.Context(), s.ID(), reader); again != read || err != nil || len(seen) != len(want) {
		t.Errorf("a live session was read again: %v, %d events", err, len(seen))
	}
	with := read.hist
	h.restart()
	if without := h.load(s.ID()).hist; !reflect.DeepEqual(with, without) {
		t.Errorf("the reader changed what was read:\n%+v\n%+v", with, without)
	}
}

// TestATurnCutAtEveryEvent: a process may die behind any event. Loading closes the turn: every call has a result,
// text is kept, and the next prompt works.
func TestATurnCutAtEveryEvent(t *testing.T) {
	h := newHarness(t, calls("Thinking about it.", `read {"text":"a"}`, `write {"text":"b"}`, `read {"text":"c"}`), calls(`nope {}`), says("Done."))
	s := h.session()
	h.prompt(s, "go")
	if _, err := s.Tool(t.Context(), "write", []byte(`{"text":"by hand"}`)); err != nil {
		t.Fatal(err)
	}
	whole := h.events(s)
	head, err := h.st.Session(t.Context(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= len(whole); n++ {
		t.Run(fmt.Sprintf("after %d %s", n, whole[n-1].Type), func(t *testing.T) {
			h := newHarness(t, says("Where was I?"))
			h.st.PutSession(head)
			for _, e := range whole[:n] {
				h.st.Append(head.ID, store.Event{Seq: e.Seq, Time: e.Time, Type: string(e.Type), Data: e.Data})
			}
			s := h.load(head.ID)
			h.consistent(s)
			var text strings.Builder
			for _, d := range ofType[TextData](whole[:n], EventText) {
				text.WriteString(d.Text)
			}
			var kept strings.Builder
			for _, m := range s.hist.messages {
				for _, p := range m.Parts {
					if m.Role == provider.RoleAssistant && p.Type == provider.PartText {
						kept.WriteString(p.Text)
					}
				}
			}
			if kept.String() != text.String() {
				t.Errorf("text %q, history %q", text.String(), kept.String())
			}
			if end := h.prompt(s, "go on"); end.Stop != TurnEnd {
				t.Errorf("end %+v", end)
			}
			h.consistent(s)
		})
	}
}

func TestSubscribersSeeEveryEventOnce(t *testing.T) {
	h := newHarness(t)
	h.model.def = func(ctx context.Context, req *provider.Request, emit func(provider.Event) error) error {
		for range 200 {
			if err := emit(provider.Event{Type: provider.EventText, Text: "x"}); err != nil {
				return err
			}
		}
		return emit(provider.Event{Type: provider.EventStop, Stop: provider.StopEnd})
	}
	s := h.session()
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 20 {
			h.prompt(s, "go")
		}
	})
	type reader struct {
		from int64
		got  []int64
	}
	readers := make([]*reader, 30)
	var stops []func()
	for i := range readers {
		r := &reader{from: int64(i % 5)}
		readers[i] = r
		stops = append(stops, s.Subscribe(r.from, func(e Event) { r.got = append(r.got, e.Seq) }))
	}
	wg.Wait()
	for _, stop := range stops {
		stop()
	}
	total := int64(len(h.events(s)))
	for i, r := range readers {
		for j, seq := range r.got {
			if seq != r.from+int64(j)+1 {
				t.Fatalf("reader %d: event %d has number %d", i, j, seq)
			}
		}
		if r.from+int64(len(r.got)) != total {
			t.Errorf("reader %d from %d saw %d of %d", i, r.from, len(r.got), total)
		}
	}
	h.consistent(s)
}

func TestTwoProcessesOnOneSession(t *testing.T) {
	h := newHarness(t, says("from one"), says("from two"), calls(`read {"text":"wait"}`), says("late"))
	s := h.session()
	h.prompt(s, "first")
	if err := h.st.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	st2 := store.New(h.path)
	other := New(Options{Store: st2, Models: h.model, Toolbox: h.with, Project: h.with, Asker: h.person})
	defer func() {
		if err := errors.Join(other.Close(context.Background()), st2.Close()); err != nil {
			t.Error(err)
		}
	}()
	s2, err := other.LoadSession(t.Context(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	var seen []Event
	defer s.Subscribe(0, func(e Event) { seen = append(seen, e) })()
	if _, err := s2.Prompt(t.Context(), words("second")); err != nil {
		t.Fatal(err)
	}
	// While one is at work the other is told so, and sees afterwards what was done.
	waiting, goOn := make(chan struct{}), make(chan struct{})
	h.special["wait"] = func(context.Context, *tools.Call, string) error { close(waiting); <-goOn; return nil }
	var wg sync.WaitGroup
	wg.Go(func() { h.prompt(s, "third") })
	<-waiting
	var locked *store.LockedError
	if _, err := s2.Prompt(t.Context(), words("me too")); !errors.As(err, &locked) || locked.PID != os.Getpid() {
		t.Errorf("got %v", err)
	}
	close(goOn)
	wg.Wait()
	if got := len(h.model.seen()[2].Messages); got != 5 {
		t.Errorf("the third turn was sent %d messages", got)
	}
	h.consistent(s)
	for i, e := range seen {
		if e.Seq != int64(i+1) {
			t.Fatalf("subscriber: event %d has number %d", i, e.Seq)
		}
	}
	if len(ofType[PromptData](seen, EventPrompt)) != 3 {
		t.Error("the subscriber missed the other process's turn")
	}
}

func TestAFullDiskIsToldAndTheTurnGoesOn(t *testing.T) {
	h := newHarness(t, says("Hello."))
	s := h.session()
	h.rt.storeProblem(&store.Problem{Kind: store.ProblemFull, Message: "the disk is full"})
	if end := h.prompt(s, "go"); end.Stop != TurnEnd {
		t.Fatalf("end %+v", end)
	}
	h.rt.storeProblem(nil)
	s.flush()
	notices := ofType[NoticeData](h.events(s), EventNotice)
	if len(notices) != 2 || !strings.Contains(notices[0].Text, "the disk is full") || notices[1].Level != "info" {
		t.Errorf("notices %+v", notices)
	}
}

func TestABrokenStoreIsNoReasonNotToWork(t *testing.T) {
	h := newHarness(t, says("Hello."))
	h.stop()
	if err := os.WriteFile(h.path, []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		os.Remove(h.path + suffix)
	}
	h.start()
	s := h.session()
	if end := h.prompt(s, "go"); end.Stop != TurnEnd {
		t.Fatalf("end %+v", end)
	}
	told := make(chan struct{})
	var once sync.Once
	stop := s.Subscribe(0, func(e Event) { // the store finds out on its own time
		if e.Type == EventNotice && strings.Contains(string(e.Data), "damaged") {
			once.Do(func() { close(told) })
		}
	})
	select {
	case <-told:
	case <-time.After(2 * time.Minute):
		t.Error("no notice of the damaged store")
	}
	stop()
	h.consistent(s)
	if err := h.rt.Close(t.Context()); err == nil {
		t.Error("Close did not say that the session is lost")
	}
	h.st.Close()
	os.Remove(h.path)
	h.start() // for the clean-up
}

// TestKillInMidTurn kills a real process in the middle of a turn.
func TestKillInMidTurn(t *testing.T) {
	if path := os.Getenv("PILLION_AGENT_CHILD"); path != "" {
		killedChild(t, path)
		return
	}
	h := newHarness(t, says("Still here."))
	cmd := exec.Command(os.Args[0], "-test.run=^TestKillInMidTurn$")
	cmd.Env = append(os.Environ(), "PILLION_AGENT_CHILD="+h.path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	id, err := bufio.NewReader(out).ReadString('\n')
	cmd.Process.Kill()
	cmd.Wait()
	if err != nil {
		t.Fatal(err)
	}
	s := h.load(strings.TrimSpace(id))
	h.consistent(s)
	d := final(h.events(s))
	if len(d) != 1 || d[0].ErrorKind != "interrupted" || !strings.Contains(string(d[0].Input), "hang") {
		t.Errorf("calls %+v", d)
	}
	if got := s.hist.messages[1].Parts[0].Text; got != "On it." {
		t.Errorf("text %q", got)
	}
	if end := h.prompt(s, "and now?"); end.Stop != TurnEnd {
		t.Errorf("end %+v", end)
	}
	h.consistent(s)
}

func killedChild(t *testing.T, path string) {
	h := &harness{t: t, model: &model{script: []answerFunc{calls("On it.", `write {"text":"hang"}`)}}, person: &person{}, dir: os.TempDir(), path: path, special: map[string]func(context.Context, *tools.Call, string) error{}}
	h.start()
	s := h.session()
	h.special["hang"] = func(ctx context.Context, _ *tools.Call, _ string) error {
		s.flush()
		if err := h.st.Sync(ctx); err != nil {
			return err
		}
		fmt.Println(s.ID())
		select {}
	}
	h.prompt(s, "go")
}

// FuzzStoredEvents: whatever a damaged or foreign store holds, loading neither panics nor leaves a turn open.
func FuzzStoredEvents(f *testing.F) {
	f.Add("prompt", `{"parts":[{"type":"text"}]}`, "message", `{"messageID":"m"}`, "tool", `{"messageID":"m","callID":"c","status":"running"}`)
	f.Add("prompt", `{}`, "step", `{"message":{"parts":[{"type":"tool_call"}]},"results":{}}`, "prune", `{"callIDs":["c"]}`)
	f.Add("tool", `{"callID":"c"}`, "plan", `{"todos":[{}]}`, "session", `null`)
	f.Fuzz(func(t *testing.T, t1, d1, t2, d2, t3, d3 string) {
		rt := New(Options{})
		rt.st.Close() // what is emitted goes nowhere: SQLite under the fuzzer's instrumentation takes seconds
		s := rt.newSession(SessionInfo{ID: "s", Cwd: "/"}, 0, lineage{})
		for i, e := range []Event{{Type: EventType(t1), Data: []byte(d1)}, {Type: EventType(t2), Data: []byte(d2)}, {Type: EventType(t3), Data: []byte(d3)}} {
			e.Seq = int64(i + 1)
			s.hist.apply(e)
		}
		s.recovery().run()
		s.flush()
		if s.hist.open() {
			t.Error("it stands open")
		}
	})
}
