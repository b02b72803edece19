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
	maxWeight   = 1 << 20 // bytes that may wait for subscribers; above that a stream blocks in room
	entryWeight = 256     // bytes that an event counts for besides its text; an estimate
	spareMost   = 1 << 10 // entries; the slice of a larger batch is not reused, so that its memory is freed
)

// EventLog numbers a session's events, stores them and passes them to the subscribers, in the same order for all. emit does not wait for
// this: a goroutine, the pump, does it, and runs only while events wait. Pieces of text that wait for the pump together are joined to one
// event; no event is delayed for that. Only a stream that runs far ahead of the subscribers blocks, in room.
//
// Lock order: deliver before mu. mu is held only briefly, so emit may be called under any other lock. deliver is held while subscribers
// run.
type EventLog struct {
	session string
	st      *store.Store
	heard   func(Event) // called with every event, while deliver is held; may be nil

	mu      sync.Mutex
	waiting []entry    // guarded by mu; emitted, but not yet numbered
	in, out int64      // guarded by mu; how many entries were emitted, and delivered
	weight  int        // guarded by mu; approximate bytes not yet delivered
	pumping bool       // guarded by mu
	moved   *sync.Cond // on mu; signals that out has grown

	deliver sync.Mutex      // held while events are numbered and delivered
	seq     int64           // guarded by deliver
	subs    []*subscription // guarded by mu; replaced, never changed in place
}

// entry is an event that has no number yet.
type entry struct {
	time  time.Time
	typ   EventType
	value any     // nil for text
	json  encoded // of value when it had to be encoded at once; else empty
	msg   string  // text: the message id
	text  []byte  // text: the pieces that were joined
	call  string  // updates of a running call: its id, so that a newer update replaces one that still waits
}

// subscription is one reader of the log.
type subscription struct {
	next    int64 // guarded by deliver: numbers up to next were delivered
	sink    func(Event)
	stopped atomic.Bool
}

// newEventLog makes the log of a session whose newest stored event has the number last.
func newEventLog(session string, st *store.Store, last int64) *EventLog {
	l := &EventLog{session: session, st: st, seq: last}
	l.moved = sync.NewCond(&l.mu)
	return l
}

// now returns the time in UTC and whole microseconds, as the store keeps it, so that an event is equal before and after it was stored.
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

// frozen returns an entry that is encoded at once. stored may be a shorter version of shown; see update.
func (l *EventLog) frozen(typ EventType, shown, stored any) entry {
	return entry{time: now(), typ: typ, value: shown, json: l.encode(stored)}
}

// encoded is an event's value as JSON: in one piece, or in many where it is very long. Subscribers then have the value only.
type encoded struct {
	data []byte
	long *store.Long
}

// encode returns nothing for a store that keeps no events; subscribers then have the value only.
func (l *EventLog) encode(v any) encoded {
	if !l.st.KeepsEvents() {
		return encoded{}
	}
	return encodeEvent(v)
}

// text adds a piece of an answer. It joins the piece to the newest event when that is text of the same message and still waits: a fast
// model sends hundreds of pieces a second, and a slow editor gets fewer, larger ones.
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

// add queues an entry and starts the pump when it does not run. An update of a running call replaces the waiting one before it, because
// only the newest state counts.
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
		// A person waits for this text. Let the pump run before a provider with a full buffer keeps the processor. Text that is joined to a
		// waiting event does not yield again.
		runtime.Gosched()
	}
}

// pump numbers, stores and delivers waiting events, batch by batch, and ends when none waits. At most one pump runs, which keeps the order.
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
		subs := l.subscribers() // read under deliver: a subscriber that came before has replayed everything up to this batch
		for i := range batch {
			l.number(&batch[i], subs)
			batch[i] = entry{} // frees delivered entries while a slow reader has the rest
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

// room blocks until few enough bytes wait for the subscribers, or returns the error of ctx. A stream calls it before each event: a model is
// faster than an editor that has stopped reading, and its answer may be long.
func (l *EventLog) room(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.weight <= maxWeight {
		return nil
	}
	// A condition variable ignores contexts, so wake the waiters when ctx ends.
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

// last returns the newest number, after everything emitted before has its number.
func (l *EventLog) last() int64 {
	l.flush()
	l.deliver.Lock()
	defer l.deliver.Unlock()
	return l.seq
}

// subscribers returns the present subscribers. The slice is never changed in place, so it may be used after unlocking.
func (l *EventLog) subscribers() []*subscription {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.subs
}

// number makes an entry an event: it gives it a number, queues it for the store and delivers it. The caller holds deliver.
func (l *EventLog) number(e *entry, subs []*subscription) {
	if e.value == nil {
		e.value = TextData{MessageID: e.msg, Text: string(e.text)}
	}
	if e.json.data == nil && e.json.long == nil {
		e.json = l.encode(e.value)
	}
	l.seq++
	event := Event{Seq: l.seq, Time: e.time, Type: e.typ, Data: e.json.data, Value: e.value}
	l.st.Append(l.session, store.Event{Seq: event.Seq, Time: event.Time, Type: string(event.Type), Data: event.Data, Long: e.json.long})
	deliverTo(event, subs)
	if l.heard != nil {
		l.heard(event)
	}
}

// deliverTo passes an event to the subscribers that have not received it. The caller holds deliver, which guards next.
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

// encode returns a value as JSON in one piece; see encodeEvent.
func encode(v any) []byte {
	e := encodeEvent(v)
	if e.long != nil {
		return e.long.Whole()
	}
	return e.data
}

// encodeEvent returns a value as JSON. The package's own types always encode. A tool's metadata may hold a value that JSON cannot express
// (NaN, a channel); then the event is stored without it, because a gap in the numbers would be worse.
func encodeEvent(v any) encoded {
	if long, ok := encodeLong(v); ok {
		return encoded{long: long}
	}
	data, err := json.Marshal(v)
	if err == nil {
		return encoded{data: data}
	}
	if t, ok := v.(ToolData); ok {
		t.Metadata = map[string]any{"unprintable": err.Error()}
		if !json.Valid(t.Input) {
			t.Input = nil
		}
		if data, err = json.Marshal(t); err == nil {
			return encoded{data: data}
		}
	}
	data, _ = json.Marshal(map[string]string{"unprintable": err.Error()})
	return encoded{data: data}
}

// flush blocks until everything emitted before it is in the store's queue and was delivered to every subscriber. It need not be on disk
// then; see syncBriefly. A subscriber must not call it: the pump would wait for itself.
func (l *EventLog) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for until := l.in; l.out < until; {
		l.moved.Wait()
	}
}

// subscribe replays the events stored after from, then delivers later ones, without a gap.
func (l *EventLog) subscribe(from int64, sink func(Event)) (stop func()) {
	s := &subscription{next: from, sink: sink}
	l.replay(s) // most of the events, while the session continues
	l.deliver.Lock()
	l.replay(s) // those added meanwhile; none can be added while deliver is held
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
	// When the disk cannot be read, the store yields what is in memory and reports the problem itself.
	_ = l.st.Events(context.Background(), l.session, s.next, func(e store.Event) error {
		s.next = e.Seq
		s.sink(fromStore(e))
		return nil
	})
}

// catchUp reads the events that another process has added to the session, passes each to seen and to the subscribers, and continues
// numbering after them. An error of seen ends the reading. The caller holds the session's lock across processes, or only reads the session.
func (l *EventLog) catchUp(ctx context.Context, seen func(Event) error) error {
	last, err := l.st.LastSeq(ctx, l.session)
	if err != nil {
		return nil // the session then lives in memory; the store reports the problem itself
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
		if err := seen(event); err != nil {
			return err
		}
		deliverTo(event, subs)
		return nil
	})
}

// fromStore converts a stored event, which has no Value.
func fromStore(e store.Event) Event {
	return Event{Seq: e.Seq, Time: e.Time, Type: EventType(e.Type), Data: e.Data}
}

// ID is the session's id.
func (l *EventLog) ID() string { return l.session }

// Subscribe replays the events stored after from to sink and then passes on later ones, in order and without a gap. When it returns, the
// events stored before the call have been replayed. sink is called by one goroutine at a time. It must not block for long, and must not
// call a method that waits for events (Prompt, Tool, Events, Subscribe, Close). After stop returns, no further call of sink begins.
func (l *EventLog) Subscribe(from int64, sink func(Event)) (stop func()) {
	return l.subscribe(from, sink)
}

// Events yields all events after from, including those that still wait for the pump. A subscriber must use Past instead.
func (l *EventLog) Events(ctx context.Context, from int64, yield func(Event) error) error {
	l.flush()
	return l.st.Events(ctx, l.session, from, func(e store.Event) error { return yield(fromStore(e)) })
}

// Last is the number of the newest event. It waits until this event was delivered, so a subscriber must not call it.
func (l *EventLog) Last() int64 { return l.last() }

// EventsOf is Events for some types only.
func (l *EventLog) EventsOf(ctx context.Context, from int64, types []EventType, yield func(Event) error) error {
	l.flush()
	return l.st.EventsOf(ctx, l.session, from, names(types), func(e store.Event) error { return yield(fromStore(e)) })
}

// Hidden returns which events are not part of the conversation at present, because a restore went back before them.
func (l *EventLog) Hidden(ctx context.Context) (Hidden, error) {
	return hiddenOf(func(yield func(Event) error) error {
		return l.st.EventsOf(ctx, l.session, 0, []string{string(EventPrompt), string(EventRestore)}, func(e store.Event) error { return yield(fromStore(e)) })
	})
}

// Past yields the events stored after from, without waiting for the pump. Subscribers call it: Events would wait for the pump, which waits
// for the subscriber.
func (l *EventLog) Past(ctx context.Context, from int64, yield func(Event) error) error {
	return l.st.Events(ctx, l.session, from, func(e store.Event) error { return yield(fromStore(e)) })
}

// RecordReview stores which hunks the person has kept or undone after they were written.
func (l *EventLog) RecordReview(d ReviewData) {
	l.emit(EventReview, d)
	l.flush()
}

// RecordAsk stores the reply to a request that a reopened session asked again outside a turn.
func (l *EventLog) RecordAsk(d AskData) {
	l.emit(EventAsk, d)
	l.flush()
}

// RecordTool stores another final state of a call whose turn is over. The history still has what the model was told then.
func (l *EventLog) RecordTool(d ToolData) {
	l.emit(EventTool, d)
	l.flush()
}

// syncBriefly waits at most a second until the store has written everything. A store that cannot write reports that through OnProblem, and
// the session continues in memory: a full disk must not stop a turn.
func (l *EventLog) syncBriefly() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = l.st.Sync(ctx)
}
