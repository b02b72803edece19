// Package store keeps sessions in one SQLite file: heads, numbered events, remembered permissions and the journal
// of changes being written. It does not know what an event means. One goroutine writes; what waits together is
// one transaction. Several processes may share the file.
//
//	st := store.New(path)            // touches nothing yet
//	st.Append(id, events...)         // queued in order
//	err := st.Sync(ctx)              // all that was appended is on disk
package store

import "time"

// Event is one entry of a session's sequence.
type Event struct {
	Seq  int64
	Time time.Time
	Type string
	Data []byte // JSON
}

// Session is a session's head. Info is the agent's own JSON.
type Session struct {
	ID      string
	Cwd     string
	Title   string
	Parent  string
	Created time.Time
	Updated time.Time
	Info    []byte
}

// Grant is a remembered permission.
type Grant struct {
	ID         int64
	Project    string // worktree root
	Permission string
	Pattern    string
	Created    time.Time
}

// Store is the file. The zero value is not usable; see New.
type Store struct{}
