package agent

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/agent/store"
	"github.com/pillion-dev/pillion/tools"
)

// waits is an answer that says when it has begun and ends when it may.
func waits(begun, end chan struct{}, then answerFunc) answerFunc {
	return func(ctx context.Context, req *provider.Request, emit func(provider.Event) error) error {
		close(begun)
		select {
		case <-end:
		case <-ctx.Done():
			return ctx.Err()
		}
		return then(ctx, req, emit)
	}
}

// said are the texts of a request's user messages.
func said(r provider.Request) string {
	var out []string
	for _, m := range r.Messages {
		if m.Role == provider.RoleUser {
			for _, p := range m.Parts {
				out = append(out, p.Text)
			}
		}
	}
	return strings.Join(out, "|")
}

func queued(s *Session) string {
	items, held := s.Queue()
	var out []string
	for _, i := range items {
		text := i.Parts[0].Text
		if i.Steer {
			text = ">" + text
		}
		out = append(out, text)
	}
	if held {
		out = append(out, "(held)")
	}
	return strings.Join(out, " ")
}

// free waits until nothing runs.
func free(t *testing.T, s *Session) {
	t.Helper()
	again := make(chan struct{}, 1)
	stop := s.Watch(func() {
		select {
		case again <- struct{}{}:
		default:
		}
	})
	defer stop()
	for {
		items, held := s.Queue()
		if !s.State().Busy && (held || len(items) == 0) {
			return
		}
		<-again
	}
}

func TestR25SteeredWordsAreReadBeforeTheNextStep(t *testing.T) {
	h := newHarness(t, calls(`read {"text":"slow"}`), says("Yes."))
	s := h.session()
	h.special["slow"] = func(context.Context, *tools.Call, string) error {
		injected, err := s.Steer(context.Background(), words("in Go, please"))
		if !injected || err != nil {
			t.Errorf("%v, %v", injected, err)
		}
		return nil
	}
	h.prompt(s, "write it")
	seen := h.model.seen()
	if got := said(seen[1]); got != "write it|in Go, please" {
		t.Errorf("the model read %q", got)
	}
	var order []EventType
	for _, e := range h.events(s) {
		if e.Type == EventStep || e.Type == EventSteer {
			order = append(order, e.Type)
		}
	}
	if len(order) != 3 || order[1] != EventSteer {
		t.Errorf("order %v", order)
	}
	if q := queued(s); q != "" {
		t.Errorf("still queued: %s", q)
	}
	h.consistent(s)
}

func TestR25WordsThatComeAtTheEndKeepTheTurnGoing(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	h := newHarness(t, waits(begun, end, says("Done.")), says("Also that."))
	s := h.session()
	var wg sync.WaitGroup
	wg.Go(func() { h.prompt(s, "go") })
	<-begun
	if injected, err := s.Steer(t.Context(), words("and that")); !injected || err != nil {
		t.Fatal(injected, err)
	}
	close(end)
	wg.Wait()
	if got := said(h.model.seen()[1]); got != "go|and that" {
		t.Errorf("the model read %q", got)
	}
	if turns := ofType[TurnData](h.events(s), EventTurn); len(turns) != 1 || turns[0].Steps != 2 {
		t.Errorf("turns %+v", turns)
	}
	h.consistent(s)
}

func TestSteeringWithoutATurnChangesNothing(t *testing.T) {
	h := newHarness(t)
	s := h.session()
	before := len(h.events(s))
	if injected, err := s.Steer(t.Context(), words("hello?")); injected || err != nil {
		t.Errorf("%v, %v", injected, err)
	}
	if n := len(h.events(s)); n != before {
		t.Errorf("%d events came", n-before)
	}
}

func TestR25SteeredWordsOutliveACancelAndACrash(t *testing.T) {
	begun := make(chan struct{})
	h := newHarness(t, waits(begun, nil, nil), says("first"), says("then"))
	s := h.session()
	var wg sync.WaitGroup
	wg.Go(func() { h.prompt(s, "go") })
	<-begun
	if _, err := s.Steer(t.Context(), words("not lost")); err != nil {
		t.Fatal(err)
	}
	// What a crash at this moment would leave: the events as they are stored now.
	var events []Event
	if err := s.Events(t.Context(), 0, func(e Event) error { events = append(events, e); return nil }); err != nil {
		t.Fatal(err)
	}
	head, err := h.st.Session(t.Context(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	s.Cancel()
	wg.Wait()
	if q := queued(s); q != "not lost (held)" {
		t.Errorf("after the cancel: %q", q)
	}
	h.prompt(s, "something else")
	free(t, s)
	if got := said(h.model.seen()[2]); got != "go|something else|not lost" {
		t.Errorf("the model read %q", got)
	}
	h.consistent(s)

	crashed := newHarness(t, says("first"), says("then"))
	crashed.st.PutSession(head)
	for _, e := range events {
		crashed.st.Append(head.ID, store.Event{Seq: e.Seq, Time: e.Time, Type: string(e.Type), Data: e.Data})
	}
	s = crashed.load(head.ID)
	if q := queued(s); q != "not lost (held)" {
		t.Errorf("after the crash: %q", q)
	}
	crashed.prompt(s, "where were we?")
	free(t, s)
	if got := said(crashed.model.seen()[1]); got != "go|where were we?|not lost" {
		t.Errorf("the model read %q", got)
	}
	crashed.consistent(s)
}

func TestTheQueueRunsInItsOrder(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	h := newHarness(t, waits(begun, end, says("ok")))
	h.model.def = says("ok")
	s := h.session()
	var wg sync.WaitGroup
	wg.Go(func() { h.prompt(s, "0") })
	<-begun
	ids := map[string]string{}
	for _, text := range []string{"a", "b", "c", "d"} {
		i, err := s.Enqueue(words(text))
		if err != nil {
			t.Fatal(err)
		}
		ids[text] = i.ID
	}
	if err := s.MoveQueued(ids["d"], ids["a"]); err != nil {
		t.Error(err)
	}
	if err := s.MoveQueued(ids["a"], ""); err != nil {
		t.Error(err)
	}
	if err := s.EditQueued(ids["b"], words("B").Parts); err != nil {
		t.Error(err)
	}
	if err := s.Unqueue(ids["c"], ids["c"]); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"edit": s.EditQueued(ids["c"], words("x").Parts), "move": s.MoveQueued(ids["c"], ""), "before": s.MoveQueued(ids["a"], ids["c"]),
		"remove": s.Unqueue("nobody"),
	} {
		if !errors.Is(err, ErrNotQueued) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if q := queued(s); q != "d B a" {
		t.Errorf("queue %q", q)
	}
	close(end)
	wg.Wait()
	free(t, s)
	if got := said(h.model.seen()[3]); got != "0|d|B|a" {
		t.Errorf("the model read %q", got)
	}
	prompts := ofType[PromptData](h.events(s), EventPrompt)
	if prompts[1].MessageID != ids["d"] {
		t.Errorf("the prompt is %s, the item was %s", prompts[1].MessageID, ids["d"])
	}
	h.consistent(s)
}

func TestR25AQueueOutlivesARestartAndWaitsForThePerson(t *testing.T) {
	begun := make(chan struct{})
	h := newHarness(t, waits(begun, nil, nil))
	h.model.def = says("ok")
	s := h.session()
	var wg sync.WaitGroup
	wg.Go(func() { h.prompt(s, "go") })
	<-begun
	for _, text := range []string{"a", "b", "c"} {
		if _, err := s.Enqueue(words(text)); err != nil {
			t.Fatal(err)
		}
	}
	h.restart()
	wg.Wait()
	s = h.load(s.ID())
	if q := queued(s); q != "a b c (held)" {
		t.Fatalf("after the restart: %q", q)
	}
	items, _ := s.Queue()
	if injected, err := s.SteerQueued(items[1].ID); injected || err != nil { // without a turn: run it now
		t.Error(injected, err)
	}
	free(t, s)
	seen := h.model.seen()
	if got := said(seen[len(seen)-1]); got != "go|b|a|c" {
		t.Errorf("the model read %q", got)
	}
	h.restart()
	if q := queued(h.load(s.ID())); q != "" {
		t.Errorf("what has run is queued again: %q", q)
	}
}

func TestCancelHoldsWhatWasAddedAndAnswersWhoWaits(t *testing.T) {
	begun := make(chan struct{})
	h := newHarness(t, waits(begun, nil, nil))
	h.model.def = says("ok")
	s := h.session()
	var wg sync.WaitGroup
	wg.Go(func() { h.prompt(s, "go") })
	<-begun
	if _, err := s.Enqueue(words("added")); err != nil {
		t.Fatal(err)
	}
	wait, err := s.Submit(t.Context(), words("asked"))
	if err != nil {
		t.Fatal(err)
	}
	if q := queued(s); q != "added asked" {
		t.Errorf("queue %q", q)
	}
	s.Cancel()
	if end, err := wait(); end.Stop != TurnCancelled || err != nil {
		t.Errorf("%+v, %v", end, err)
	}
	wg.Wait()
	free(t, s)
	if q := queued(s); q != "added (held)" {
		t.Errorf("queue %q", q)
	}
	s.Resume()
	free(t, s)
	if got := said(h.model.seen()[1]); got != "go|added" {
		t.Errorf("the model read %q", got)
	}
	h.consistent(s)
}

func TestAFailedTurnHoldsTheQueue(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	h := newHarness(t, waits(begun, end, fails(provider.ErrInvalid, "no")))
	s := h.session()
	var wg sync.WaitGroup
	wg.Go(func() { h.prompt(s, "go") })
	<-begun
	if _, err := s.Enqueue(words("next")); err != nil {
		t.Fatal(err)
	}
	close(end)
	wg.Wait()
	free(t, s)
	if q := queued(s); q != "next (held)" {
		t.Errorf("queue %q", q)
	}
}

func TestAWaitingPromptThatIsSteeredEndsWithTheTurn(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	h := newHarness(t, waits(begun, end, says("one")), says("two"))
	s := h.session()
	var wg sync.WaitGroup
	wg.Go(func() { h.prompt(s, "go") })
	<-begun
	wait, err := s.Submit(t.Context(), Prompt{MessageID: "mine", Parts: words("also").Parts})
	if err != nil {
		t.Fatal(err)
	}
	if injected, err := s.SteerQueued("mine"); !injected || err != nil {
		t.Error(injected, err)
	}
	if q := queued(s); q != ">also" {
		t.Errorf("queue %q", q)
	}
	close(end)
	wg.Wait()
	if got, err := wait(); got.Stop != TurnEnd || got.Steps != 2 || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	h.consistent(s)
}

func TestAnItemThatAnotherProcessRanIsNotRunAgain(t *testing.T) {
	begun := make(chan struct{})
	h := newHarness(t, waits(begun, nil, nil))
	h.model.def = says("ok")
	s := h.session()
	var wg sync.WaitGroup
	wg.Go(func() { h.prompt(s, "go") })
	<-begun
	if _, err := s.Enqueue(words("added")); err != nil {
		t.Fatal(err)
	}
	s.Cancel()
	wg.Wait()
	free(t, s)

	other := &harness{t: t, model: h.model, person: h.person, with: h.with, dir: h.dir, path: h.path, special: h.special}
	other.start()
	defer other.stop()
	theirs := other.load(s.ID())
	theirs.Resume()
	free(t, theirs)
	if q := queued(theirs); q != "" {
		t.Fatalf("the other process still has %q", q)
	}
	h.prompt(s, "and here")
	free(t, s)
	if q := queued(s); q != "" {
		t.Errorf("queue %q", q)
	}
	seen := h.model.seen()
	if got := said(seen[len(seen)-1]); got != "go|added|and here" {
		t.Errorf("the model read %q", got)
	}
	h.consistent(s)
}

// A queued prompt that ran and was undone stays undone: it is not queued again, where the next queued prompt would run it. Undoing the undo
// does not queue it either, and neither does a restart.
func TestAQueuedPromptThatWasUndoneIsNotQueuedAgain(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	h := newHarness(t, waits(begun, end, says("ok")))
	h.model.def = says("ok")
	s := h.session()
	var wg sync.WaitGroup
	wg.Go(func() { h.prompt(s, "go") })
	<-begun
	first, err := s.Enqueue(words("first"))
	if err != nil {
		t.Fatal(err)
	}
	close(end)
	wg.Wait()
	free(t, s)

	restore := func(d RestoreData) {
		t.Helper()
		d.Conversation = true
		if err := s.Restore(t.Context(), d, func(context.Context, *RestoreData) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if q := queued(s); q != "" {
			t.Errorf("after %s: %q", d.ID, q)
		}
	}
	restore(RestoreData{ID: "undo", Checkpoint: first.ID, MessageID: first.ID})
	restore(RestoreData{ID: "redo", Checkpoint: "undo", Undoes: "undo", Was: first.ID})
	restore(RestoreData{ID: "undo again", Checkpoint: first.ID, MessageID: first.ID})
	h.restart()
	s = h.load(s.ID())
	if q := queued(s); q != "" {
		t.Errorf("after a restart: %q", q)
	}
	if _, err := s.Enqueue(words("second")); err != nil {
		t.Fatal(err)
	}
	free(t, s)
	seen := h.model.seen()
	if got := said(seen[len(seen)-1]); got != "go|second" {
		t.Errorf("the model read %q", got)
	}
}
