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
	maxWeight   = 1 << 20 // bytes that may wait for subscribers; above it a stream waits in room
	entryWeight = 256     // bytes that an event counts besides its text, roughly
	spareMost   = 1 << 10 // entries; a batch of larger capacity is not reused
)

// EventLog numbers a session's events, stores them and passes them to the subscribers, in one order for all. Emitting waits for none of
// that: a goroutine, the pump, does it, and runs only while events wait. Pieces of text that wait for the pump are joined to one event;
// no event is delayed for that. Only a stream that runs far ahead of the subscribers waits, in room.
//
// Lock order: deliver before mu. mu is held briefly, so emit may be called under any other lock. deliver is held while subscribers run.
type EventLog struct {
	session string
	st      *store.Store
	heard   func(Event) // called with every event, while deliver is held; may be nil

	mu      sync.Mutex
	waiting []entry    // guarded by mu: emitted, not yet numbered
	in, out int64      // guarded by mu: entries emitted, delivered
	weight  int        // guarded by mu: bytes of what is not yet delivered, about
	pumping bool       // guarded by mu
	moved   *sync.Cond // on mu: out has grown

	deliver sync.Mutex      // held while events are numbered and delivered
	seq     int64           // guarded by deliver
	subs    []*subscription // guarded by mu; replaced, never changed in place
}

// entry is an event that has no number yet.
type entry struct {
	time  time.Time
	typ   EventType
	value any    // nil for text
	data  []byte // value as JSON, where it had to be encoded at once
	msg   string // text: the message id
	text  []byte // text: the pieces that were joined
	call  string // running tool updates: the call id, so that the newest update replaces the one that waits
}

// subscription is one reader of the log.
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

// now is the present time as the store keeps it, in UTC and whole microseconds, so that an event is equal before and after it was stored.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// emit adds an event. value is encoded later by the pump, so it must not be changed afterwards; see emitNow.
func (l *EventLog) emit(typ EventType, value any) {
	l.add(entry{time: now(), typ: typ, value: value})
}

// emitNow is emit for a value that may be changed later: it is encoded before emitNow returns.
func (l *EventLog) emitNow(typ EventType, value any) { l.add(l.frozen(typ, value, value)) }

// update is emitNow for a running tool call; the store may get less than the subscribers.
func (l *EventLog) update(shown, stored ToolData) {
	e := l.frozen(EventTool, shown, stored)
	e.call = shown.CallID
	l.add(e)
}

// frozen is an entry whose JSON exists already. stored may be a shorter version of shown; see update.
func (l *EventLog) frozen(typ EventType, shown, stored any) entry {
	return entry{time: now(), typ: typ, value: shown, data: l.encode(stored)}
}

// encode returns nil for a store that keeps no events; subscribers then have the value only.
func (l *EventLog) encode(v any) []byte {
	if !l.st.KeepsEvents() {
		return nil
	}
	return encode(v)
}

// text adds a piece of an answer. It is joined to the newest event when that is text of the same message and still waits: a fast model
// sends hundreds of pieces a second, which a slow editor then gets as larger ones.
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

// add queues an entry and starts the pump when it does not run. An update of a running call replaces the one before it that still waits,
// because only the newest state counts.
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
		// A person waits for this text. The pump is let run first, before a provider with a full buffer keeps the processor. Text that is
		// joined later does not yield again.
		runtime.Gosched()
	}
}

// pump numbers, stores and delivers what waits, batch by batch, and ends when nothing waits. There is never more than one, which keeps
// the order.
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
		subs := l.subscribers() // only now: a subscriber that came meanwhile has replayed everything before this batch
		for i := range batch {
			l.number(&batch[i], subs)
			batch[i] = entry{} // delivered entries can be collected while a slow reader has the rest
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

// room returns when few enough bytes wait for the subscribers, or with the error of ctx. A stream calls it before each event: a model is
// faster than an editor that has stopped reading, and its answer may be long.
func (l *EventLog) room(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.weight <= maxWeight {
		return nil
	}
	// A condition variable knows no context, so its end wakes the waiters.
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

// last is the newest number, after everything emitted before has its number.
func (l *EventLog) last() int64 {
	l.flush()
	l.deliver.Lock()
	defer l.deliver.Unlock()
	return l.seq
}

// subscribers are those of this moment. The slice is never changed in place, so it may be used after unlocking.
func (l *EventLog) subscribers() []*subscription {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.subs
}

// number makes an event of an entry: it gives it a number, queues it for the store and delivers it. The caller holds deliver.
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

// deliverTo passes an event to the subscribers that have not had it. The caller holds deliver, which guards next.
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

// encode is a value as JSON. Our own types always encode. The metadata of a tool may hold a value that JSON cannot express (NaN, a
// channel), and then the event is stored without it: a hole in the numbers would be worse.
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

// flush returns when everything emitted before it is in the store's queue and was delivered to every subscriber. It need not be on disk
// then; see syncBriefly. A subscriber must not call it: the pump would wait for itself.
func (l *EventLog) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for until := l.in; l.out < until; {
		l.moved.Wait()
	}
}

// subscribe replays what is stored after from and then delivers what comes, without a hole between the two.
func (l *EventLog) subscribe(from int64, sink func(Event)) (stop func()) {
	s := &subscription{next: from, sink: sink}
	l.replay(s) // most of it, while the session continues
	l.deliver.Lock()
	l.replay(s) // what was added meanwhile; under deliver nothing more can be
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

// replay passes the stored events after the subscriber's last one to it.
func (l *EventLog) replay(s *subscription) {
	// When the disk cannot be read, the store yields what is in memory, and reports its problem by itself.
	_ = l.st.Events(context.Background(), l.session, s.next, func(e store.Event) error {
		s.next = e.Seq
		s.sink(fromStore(e))
		return nil
	})
}

// catchUp reads the events that another process has added to the session, passes each to seen and to the subscribers, and continues the
// numbers after them. The caller holds the session's lock among processes, or only reads.
func (l *EventLog) catchUp(ctx context.Context, seen func(Event)) error {
	last, err := l.st.LastSeq(ctx, l.session)
	if err != nil {
		return nil // the session lives in memory then; the store reports its problem by itself
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

// ID is the session's id.
func (l *EventLog) ID() string { return l.session }

// Subscribe replays the stored events after from to sink and then passes on new ones, in order and without a hole. When it returns, what
// was stored before has been replayed. sink is called by one goroutine at a time. It must not block for long, and must not call what
// waits for events (Prompt, Tool, Events, Subscribe, Close). After stop no call begins.
func (l *EventLog) Subscribe(from int64, sink func(Event)) (stop func()) {
	return l.subscribe(from, sink)
}

// Events yields all events after from, those that still wait for the pump included. A subscriber must use Past instead.
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

// Hidden returns which events are out of the conversation at present.
func (l *EventLog) Hidden(ctx context.Context) (Hidden, error) {
	return hiddenOf(func(yield func(Event) error) error {
		return l.st.EventsOf(ctx, l.session, 0, []string{string(EventPrompt), string(EventRestore)}, func(e store.Event) error { return yield(fromStore(e)) })
	})
}

// Past yields the stored events after from without waiting for those that the pump has not delivered. A subscriber may call it: Events
// would wait for the pump, which waits for the subscriber.
func (l *EventLog) Past(ctx context.Context, from int64, yield func(Event) error) error {
	return l.st.Events(ctx, l.session, from, func(e store.Event) error { return yield(fromStore(e)) })
}

// RecordReview stores which hunks the person has kept or undone after the fact.
func (l *EventLog) RecordReview(d ReviewData) {
	l.emit(EventReview, d)
	l.flush()
}

// RecordAsk stores the answer to a request that was asked again outside a turn, in a session that was reopened.
func (l *EventLog) RecordAsk(d AskData) {
	l.emit(EventAsk, d)
	l.flush()
}

// RecordTool stores another final state of a call whose turn is over. The history keeps what the model was told at the time.
func (l *EventLog) RecordTool(d ToolData) {
	l.emit(EventTool, d)
	l.flush()
}

// syncBriefly waits at most a second until the store has written everything. A store that cannot write reports that through OnProblem,
// and the session continues in memory: a full disk must not stop a turn.
func (l *EventLog) syncBriefly() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = l.st.Sync(ctx)
}
