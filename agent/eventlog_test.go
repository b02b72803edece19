package agent

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/agent/store"
)

// What a reader that has stopped reading makes wait is bounded: a stream waits with it, until the reader continues or the
// turn is over.
func TestAStreamWaitsForASlowReader(t *testing.T) {
	st := store.NewForgetful()
	defer st.Close()
	l := newEventLog("s", st, 0)
	reads := make(chan struct{})
	got := 0
	defer l.subscribe(0, func(e Event) {
		<-reads
		got += len(e.Value.(TextData).Text)
	})()
	piece, sent := strings.Repeat("x", 1000), 0
	ctx, cancel := context.WithCancel(t.Context())
	for typ := EventText; l.roomy(); sent++ {
		if err := l.room(ctx); err != nil {
			t.Fatal(err)
		}
		l.text(typ, "m", piece)
		if typ = EventText; sent%2 == 0 { // nothing can be joined
			typ = EventThinking
		}
	}
	if most := 2 * maxWeight / len(piece); sent > most {
		t.Errorf("%d pieces wait, at most %d may", sent, most)
	}
	cancel()
	if err := l.room(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the end of the turn: %v", err)
	}
	waited := make(chan error)
	go func() { waited <- l.room(t.Context()) }()
	close(reads)
	if err := <-waited; err != nil {
		t.Error(err)
	}
	l.flush()
	if got != sent*len(piece) {
		t.Errorf("%d bytes arrived of %d", got, sent*len(piece))
	}
}

func (l *EventLog) roomy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.weight <= maxWeight
}

// Events that were stored before change sets had a type, or after a later version changed it, stay readable.
func TestStoredChangeEventsStayReadable(t *testing.T) {
	stored := `{"callID":"c","state":"writing","set":{"id":"s1","title":"a.go","files":[{"path":"/p/a.go","kind":"edit","old":"","new":"","oldRef":"abc","newRef":"def","hunks":[{"id":"1.1","oldStart":1,"oldLines":1,"newStart":1,"newLines":1,"oldText":"a < b\n","newText":"b\n"}],"later":1}],"later":true}}`
	h := newHistory()
	h.apply(Event{Type: EventChange, Data: []byte(stored)})
	d, ok := h.writing["s1"]
	if !ok || d.CallID != "c" || d.Set.Files[0].OldRef != "abc" || d.Set.Files[0].Hunks[0].OldText != "a < b\n" {
		t.Fatalf("%+v", h.writing)
	}
	h.apply(Event{Type: EventChange, Data: []byte(`{"callID":"c","state":"applied","set":{"id":"s1"}}`)})
	if len(h.writing) != 0 {
		t.Errorf("the change is applied, and counts as being written: %+v", h.writing)
	}
	for _, text := range []string{`{"state":"writing","set":null}`, `{"state":"writing"}`, `{"state":"applied","set":[1]}`, `{"unprintable":"x"}`, ``} {
		h.apply(Event{Type: EventChange, Data: []byte(text)})
	}
	if len(h.writing) != 0 {
		t.Errorf("%+v", h.writing)
	}
}
