package agent

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/agent/store"
)

// What a reader that has stopped reading makes wait is bounded: a stream waits with it, until the reader goes on or the
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

func (l *eventLog) roomy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.weight <= maxWeight
}

// A change set is not read again to be written into its event, and the event says the same.
func TestChangeEventIsWrittenAroundItsSet(t *testing.T) {
	for _, c := range []ChangeData{
		{CallID: "c<1>\"", State: "applied", Set: encode(map[string]string{"text": "a < b && \"c\"\n\u2028"})},
		{CallID: "c", State: "proposed", Set: json.RawMessage(`null`)},
		{CallID: "c", State: "failed"},
	} {
		want, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if got := encode(c); string(got) != string(want) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
