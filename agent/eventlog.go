package agent

import (
	"context"
	"encoding/json"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pillion-dev/pillion/agent/store"
)

const (
	maxWeight   = 1 << 20 // bytes that wait for the subscribers before a stream waits too
	entryWeight = 256     // bytes of an event besides its text, about
	spareMost   = 1 << 10 // entries; a batch with a larger capacity is given to the garbage collector
)

// EventLog numbers a session's events, stores them and hands them to the subscribers, in one order for all. Emitting does not
// wait for any of that: a goroutine, the pump, does it, and runs only while events wait. Pieces of text that wait for the pump
// become one event; no event is delayed to make that happen. Only a stream that runs far ahead of its subscribers waits, in
// room.
//
// Locks: deliver before mu. mu is held for moments only, so emit may be called under any other lock; deliver is held while
// subscribers run.
type EventLog struct {
	session string
	st      *store.Store
	heard   func(Event) // called with every event while deliver is held; may be nil

	mu      sync.Mutex
	waiting []entry    // guarded by mu: emitted, not yet numbered
	in, out int64      // guarded by mu: entries emitted, delivered
	weight  int        // guarded by mu: bytes of what is not yet delivered, about
	pumping bool       // guarded by mu
	moved   *sync.Cond // on mu: out has grown

	deliver sync.Mutex      // held while events are numbered and handed out
	seq     int64           // guarded by deliver
	subs    []*subscription // guarded by mu; replaced, never changed in place
}

// entry is an event before it has a number.
type entry struct {
	time  time.Time
	typ   EventType
	value any    // nil for text
	data  []byte // value as JSON, when it had to be written down at once
	msg   string // text: the message
	text  []byte // text: what is joined
	call  string // running tool updates: the call, so that the newest replaces the one that waits
}

type subscription struct {
	next    int64 // guarded by deliver: numbers up to next were delivered
	sink    func(Event)
	stopped atomic.Bool
}

func newEventLog(session string, st *store.Store, last int64) *EventLog {
	l := &EventLog{session: session, st: st, seq: last}
	l.moved = sync.NewCond(&l.mu)
	return l
}

// now is the present time as the store keeps it, in UTC and whole microseconds: an event must be equal before and after it was
// stored.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// emit adds an event. It keeps value and encodes it later, so value must not be changed afterwards; see emitNow.
func (l *EventLog) emit(typ EventType, value any) {
	l.add(entry{time: now(), typ: typ, value: value})
}

// emitNow is emit for a value that others may change later: it is written down before emitNow returns.
func (l *EventLog) emitNow(typ EventType, value any) { l.add(l.frozen(typ, value, value)) }

// update is emitNow for a running tool call. What goes to the store may be smaller than what is shown.
func (l *EventLog) update(shown, stored ToolData) {
	e := l.frozen(EventTool, shown, stored)
	e.call = shown.CallID
	l.add(e)
}

// frozen is an entry whose JSON exists already. stored may be a shorter version of shown; see update.
func (l *EventLog) frozen(typ EventType, shown, stored any) entry {
	return entry{time: now(), typ: typ, value: shown, data: l.encode(stored)}
}

// encode is nil for a store that keeps no events; subscribers then have the value only.
func (l *EventLog) encode(v any) []byte {
	if !l.st.KeepsEvents() {
		return nil
	}
	return encode(v)
}

// text adds a piece of an answer. It joins the newest event when that is text of the same message and still waits: a fast model
// sends hundreds of pieces a second, and a slow editor gets them in larger ones.
func (l *EventLog) text(typ EventType, message, text string) {
	l.mu.Lock()
	if n := len(l.waiting); n > 0 {
		if last := &l.waiting[n-1]; last.typ == typ && last.msg == message {
			last.text = append(last.text, text...)
			l.weight += len(text)
			l.mu.Unlock()
			return
		}
	}
	l.mu.Unlock()
	l.add(entry{time: now(), typ: typ, msg: message, text: []byte(text)})
}

// add queues an entry and starts the pump when it does not run. An update of a running call replaces the one before it when that
// still waits, because only the newest state counts.
func (l *EventLog) add(e entry) {
	l.mu.Lock()
	if n := len(l.waiting); e.call != "" && n > 0 && l.waiting[n-1].call == e.call {
		l.waiting[n-1] = e
	} else {
		l.waiting = append(l.waiting, e)
		l.in++
		l.weight += entryWeight + len(e.text)
	}
	if !l.pumping {
		l.pumping = true
		go l.pump()
	}
	l.mu.Unlock()
	if e.msg != "" {
		// Text that begins to wait is what the person waits for: the pump goes first, before a provider with a
		// full buffer keeps this processor to itself. What is joined to it does not yield again.
		runtime.Gosched()
	}
}

// pump numbers, stores and delivers what waits, batch by batch, and ends when nothing does. There is never more than one, which
// is what keeps the order.
func (l *EventLog) pump() {
	var spare []entry
	for {
		l.mu.Lock()
		if len(l.waiting) == 0 {
			l.pumping = false
			l.mu.Unlock()
			return
		}
		batch, weight := l.waiting, l.weight
		l.waiting = spare[:0]
		l.mu.Unlock()

		l.deliver.Lock()
		subs := l.subscribers() // only now: one who subscribes meanwhile has replayed up to here
		for i := range batch {
			l.number(&batch[i], subs)
			batch[i] = entry{} // a reader may be slow: what it has had need not wait for the rest
		}
		l.deliver.Unlock()

		l.mu.Lock()
		l.out += int64(len(batch))
		l.weight -= weight
		l.moved.Broadcast()
		l.mu.Unlock()
		if spare = batch; cap(spare) > spareMost {
			spare = nil
		}
	}
}

// room returns when little enough waits for the readers, or with the context's error. A stream of text asks before it
// goes on: a model is quicker than an editor that has stopped reading, and its answer may be long.
func (l *EventLog) room(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.weight <= maxWeight {
		return nil
	}
	defer context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.moved.Broadcast()
	})()
	for l.weight > maxWeight && ctx.Err() == nil {
		l.moved.Wait()
	}
	return ctx.Err()
}

// last is the newest number, after everything emitted before has got one.
func (l *EventLog) last() int64 {
	l.flush()
	l.deliver.Lock()
	defer l.deliver.Unlock()
	return l.seq
}

// subscribers are those of this moment. The slice is never changed in place, so it may be
// used after unlocking.
func (l *EventLog) subscribers() []*subscription {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.subs
}

// number makes an event of an entry. deliver is held.
func (l *EventLog) number(e *entry, subs []*subscription) {
	if e.value == nil {
		e.value = TextData{MessageID: e.msg, Text: string(e.text)}
	}
	if e.data == nil {
		e.data = l.encode(e.value)
	}
	l.seq++
	event := Event{Seq: l.seq, Time: e.time, Type: e.typ, Data: e.data, Value: e.value}
	l.st.Append(l.session, store.Event{Seq: event.Seq, Time: event.Time, Type: string(event.Type), Data: event.Data})
	deliverTo(event, subs)
	if l.heard != nil {
		l.heard(event)
	}
}

// deliverTo passes an event to the subscribers that have not had it. deliver is held, which
// guards next.
func deliverTo(e Event, subs []*subscription) {
	for _, s := range subs {
		if e.Seq > s.next {
			s.next = e.Seq
			if !s.stopped.Load() {
				s.sink(e)
			}
		}
	}
}

// encode is a value as JSON. Our own types always encode; a tool's metadata may hold a
// value that JSON cannot express (NaN, a channel), and the event must be stored all the
// same.
func encode(v any) []byte {
	if data, ok := encodeLong(v); ok {
		return data
	}
	data, err := json.Marshal(v)
	if err == nil {
		return data
	}
	if t, ok := v.(ToolData); ok {
		t.Metadata = map[string]any{"unprintable": err.Error()}
		if !json.Valid(t.Input) {
			t.Input = nil
		}
		if data, err = json.Marshal(t); err == nil {
			return data
		}
	}
	data, _ = json.Marshal(map[string]string{"unprintable": err.Error()})
	return data
}

// flush returns when everything emitted before it was given to the store's queue and to every subscriber. It is not on disk
// then: see syncBriefly. A subscriber must not call it, since the pump would wait for itself.
func (l *EventLog) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for until := l.in; l.out < until; {
		l.moved.Wait()
	}
}

// subscribe replays what is stored after from, and then hands on what comes, without a hole between the two.
func (l *EventLog) subscribe(from int64, sink func(Event)) (stop func()) {
	s := &subscription{next: from, sink: sink}
	l.replay(s) // the bulk, while the session goes on
	l.deliver.Lock()
	l.replay(s) // what was added meanwhile; now nothing can be
	l.mu.Lock()
	l.subs = append(append([]*subscription(nil), l.subs...), s)
	l.mu.Unlock()
	l.deliver.Unlock()
	return func() {
		s.stopped.Store(true)
		l.mu.Lock()
		defer l.mu.Unlock()
		kept := make([]*subscription, 0, len(l.subs))
		for _, other := range l.subs {
			if other != s {
				kept = append(kept, other)
			}
		}
		l.subs = kept
	}
}

// replay gives a subscriber the stored events after the last it had.
func (l *EventLog) replay(s *subscription) {
	// A store that cannot be read still yields what it holds in memory; its problem is told elsewhere.
	_ = l.st.Events(context.Background(), l.session, s.next, func(e store.Event) error {
		s.next = e.Seq
		s.sink(fromStore(e))
		return nil
	})
}

// catchUp reads the events that another process has added to the session, gives each to seen and to the subscribers, and goes
// on numbering after them. The caller holds the session's lock among processes, or only reads.
func (l *EventLog) catchUp(ctx context.Context, seen func(Event)) error {
	last, err := l.st.LastSeq(ctx, l.session)
	if err != nil {
		return nil // in memory then; the store reports its own problem
	}
	l.deliver.Lock()
	defer l.deliver.Unlock()
	if last <= l.seq {
		return nil
	}
	subs := l.subscribers()
	return l.st.Events(ctx, l.session, l.seq, func(e store.Event) error {
		l.seq = e.Seq
		event := fromStore(e)
		seen(event)
		deliverTo(event, subs)
		return nil
	})
}

func fromStore(e store.Event) Event {
	return Event{Seq: e.Seq, Time: e.Time, Type: EventType(e.Type), Data: e.Data}
}

// ID names the session.
func (l *EventLog) ID() string { return l.session }

// Subscribe replays the stored events after from to sink, and then hands on new ones as they come, in order and
// without a hole. When it returns, what was stored before has been replayed. sink is called by one goroutine at a
// time, must not block long, and must not call what waits for events (Prompt, Tool, Events, Subscribe, Close). After
// stop no call begins.
func (l *EventLog) Subscribe(from int64, sink func(Event)) (stop func()) {
	return l.subscribe(from, sink)
}

// Events yields the stored events after from.
func (l *EventLog) Events(ctx context.Context, from int64, yield func(Event) error) error {
	l.flush()
	return l.st.Events(ctx, l.session, from, func(e store.Event) error { return yield(fromStore(e)) })
}

// Last is the number of the newest event.
func (l *EventLog) Last() int64 { return l.last() }

// EventsOf is Events for some types only.
func (l *EventLog) EventsOf(ctx context.Context, from int64, types []EventType, yield func(Event) error) error {
	l.flush()
	return l.st.EventsOf(ctx, l.session, from, names(types), func(e store.Event) error { return yield(fromStore(e)) })
}

// Hidden reads which events are out of the conversation now.
func (l *EventLog) Hidden(ctx context.Context) (Hidden, error) {
	return hiddenOf(func(yield func(Event) error) error {
		return l.st.EventsOf(ctx, l.session, 0, []string{string(EventPrompt), string(EventRestore)}, func(e store.Event) error { return yield(fromStore(e)) })
	})
}

// Past yields the stored events after from without waiting for those that the pump has not
// delivered, so a subscriber may call it: Events would wait for the pump, which waits for
// the subscriber.
func (l *EventLog) Past(ctx context.Context, from int64, yield func(Event) error) error {
	return l.st.Events(ctx, l.session, from, func(e store.Event) error { return yield(fromStore(e)) })
}

// RecordReview stores which hunks the person has kept or undone.
func (l *EventLog) RecordReview(d ReviewData) {
	l.emit(EventReview, d)
	l.flush()
}

// RecordAsk stores the answer to a request that was asked again outside a turn (a reopened
// session).
func (l *EventLog) RecordAsk(d AskData) {
	l.emit(EventAsk, d)
	l.flush()
}

// RecordTool stores another final state of a call whose turn is over. The history keeps
// what the model was told at that time.
func (l *EventLog) RecordTool(d ToolData) {
	l.emit(EventTool, d)
	l.flush()
}

// syncBriefly waits until the store has written everything, at most a second. A store that cannot write reports that through
// OnProblem, and the session continues in memory: a full disk must not stop a turn.
func (l *EventLog) syncBriefly() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = l.st.Sync(ctx)
}
