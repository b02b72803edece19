package store_test

import (
	"context"
	"fmt"
	"time"

	"github.com/pillion-dev/pillion/agent/store"
)

// A session is its events. Append does not wait for the disk; Sync does.
func Example() {
	st := store.New("") // in memory; a path or a postgres:// address keeps it
	defer st.Close()
	ctx := context.Background()

	st.PutSession(store.Session{ID: "ses_1", Cwd: "/src/app", Title: "Fix the build", Updated: time.Unix(10, 0), Info: []byte("{}")})
	st.Append("ses_1",
		store.Event{Seq: 1, Type: "prompt", Data: []byte(`{"text":"fix it"}`)},
		store.Event{Seq: 2, Type: "turn", Data: []byte(`{"stop":"end_turn"}`)})
	if err := st.Sync(ctx); err != nil {
		fmt.Println(err)
		return
	}
	_ = st.Events(ctx, "ses_1", 0, func(e store.Event) error {
		fmt.Println(e.Seq, e.Type, string(e.Data))
		return nil
	})
	// Output:
	// 1 prompt {"text":"fix it"}
	// 2 turn {"stop":"end_turn"}
}

// A reader that has seen a part asks for what came after it, and for the types it understands.
func ExampleStore_EventsOf() {
	st := store.New("")
	defer st.Close()
	for i, typ := range []string{"prompt", "text", "text", "turn", "prompt"} {
		st.Append("ses_1", store.Event{Seq: int64(i + 1), Type: typ})
	}
	_ = st.EventsOf(context.Background(), "ses_1", 1, []string{"prompt", "turn"}, func(e store.Event) error {
		fmt.Println(e.Seq, e.Type)
		return nil
	})
	// Output:
	// 4 turn
	// 5 prompt
}

// A lock has one holder among all processes, and in one process too.
func ExampleStore_Lock() {
	st := store.New("")
	defer st.Close()
	unlock, err := st.Lock(context.Background(), "ses_1")
	if err != nil {
		fmt.Println(err) // another process runs a turn: *store.LockedError has its process id
		return
	}
	defer unlock()
	fmt.Println("this process may write the session")
	// Output: this process may write the session
}
