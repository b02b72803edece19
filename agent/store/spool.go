package store

import (
	"bufio"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// spool keeps in a file of this machine what a server could not take yet, so that an acknowledged prompt is not lost when the process
// ends. The file holds the queue's events and heads in their order, one JSON object on each line, and each batch is synced to the disk
// before anyone is told that it is safe. The file is locked while its process lives; what a dead process left behind is stored by the
// next process that uses the same server. Except for path, only the writer's goroutine uses a spool.
type spool struct {
	dir    string // made at the first save
	server string // Store.Path; files of other servers are left alone
	file   *os.File
	failed error // why the file cannot be written; until clear everything is in memory only, as Problem then says
}

// spooled is one line of the file. Exactly one of Event and Head is set.
type spooled struct {
	Session string   `json:"session,omitempty"`
	Event   *Event   `json:"event,omitempty"`
	Head    *Session `json:"head,omitempty"`
}

// SpoolIn makes a store on a server keep what it cannot send in files below a folder of this machine. It must be called before the first
// use. For a store on a file it does nothing.
func (w *writeQueue) SpoolIn(dir string) {
	if p, ok := w.b.(*postgres); ok {
		w.spool = &spool{dir: dir, server: p.name()}
	}
}

// prefix begins the names of a server's files. The hash keeps user names and slashes of the address out of file names; its 52 bits are
// enough to tell a few servers apart.
func (sp *spool) prefix() string {
	return fmt.Sprintf("%x-", sha256.Sum256([]byte(sp.server)))[:13] + "-"
}

// save writes events and heads to the file and syncs it.
func (sp *spool) save(ops []*op) error {
	// One file serves until clear. The time makes its name unique, because a process id may be used again.
	if sp.file == nil {
		if err := os.MkdirAll(sp.dir, 0o700); err != nil {
			return err
		}
		f, err := lockFile(filepath.Join(sp.dir, sp.prefix()+fmt.Sprintf("%d-%d.spool", os.Getpid(), time.Now().UnixNano())))
		if err != nil {
			return err
		}
		err = f.Truncate(0) // lockFile has written the process id into it
		if err == nil {
			_, err = f.Seek(0, io.SeekStart)
		}
		if err != nil {
			f.Close()
			return err
		}
		sp.file = f
	}
	w := bufio.NewWriter(sp.file)
	enc := json.NewEncoder(w)
	// The texts are mostly source code, which HTML escapes would make longer.
	enc.SetEscapeHTML(false)
	for _, o := range ops {
		line := spooled{o.session, o.event, o.head}
		if o.event != nil {
			e := o.event.whole()
			line.Event = &e
		}
		if err := enc.Encode(line); err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	// Sync promises that it survives a power failure.
	return sp.file.Sync()
}

// clear removes the file once the server has everything that is in it.
func (sp *spool) clear() {
	if sp.file != nil {
		// A crash between the two lines loses nothing: the server has the events.
		os.Remove(sp.file.Name()) // before Close releases the lock, or another process would take the file for a dead process's
		sp.file.Close()
		sp.file = nil
	}
	sp.failed = nil
}

// leftover is the spool file of a process that ended before the server was back.
type leftover struct {
	pid     int // of the process that ended
	file    *os.File
	strange map[string]bool // sessions that another process has continued since: its history counts
}

// adopt queues what dead processes left behind, in front of everything of this one. It runs once, at the first use, and does not wait for
// the server.
func (w *writeQueue) adopt() {
	if w.spool == nil {
		return
	}
	w.adopted.Do(func() {
		names, _ := filepath.Glob(filepath.Join(w.spool.dir, w.spool.prefix()+"*.spool"))
		var ops []op
		for _, name := range names { // sorted by process and time; as a rule a session is in one of them only
			f, err := os.OpenFile(name, os.O_RDWR, 0)
			if err != nil {
				continue
			}
			// The lock ends with its process, so a file that can be locked belongs to a dead process.
			if tryLock(f) != nil {
				f.Close()
				continue
			}
			l := &leftover{file: f, strange: map[string]bool{}}
			_, _ = fmt.Sscanf(strings.TrimPrefix(filepath.Base(name), w.spool.prefix()), "%d-", &l.pid)
			var mine []op
			for dec := json.NewDecoder(bufio.NewReader(f)); ; {
				var line spooled
				if dec.Decode(&line) != nil {
					break // the end, or a line that was being written when the process died and was never acknowledged
				}
				mine = append(mine, op{session: line.Session, event: line.Event, head: line.Head, from: l, spooled: true})
			}
			// The process ended before it acknowledged anything.
			if len(mine) == 0 {
				l.done()
				continue
			}
			mine[len(mine)-1].after = func() { w.leftoverStored(l) }
			ops = append(ops, mine...)
		}
		if len(ops) == 0 {
			return
		}
		w.mu.Lock()
		// In front of the queue: this process may continue one of these sessions.
		w.queue = append(ops, w.queue...)
		w.startLocked()
		w.mu.Unlock()
		w.poke()
	})
}

// done removes a leftover that is stored. One with strange sessions is kept under another name, because it is the only copy of their
// events. Close releases the lock, after the file has its last name.
func (l *leftover) done() (kept string) {
	if len(l.strange) > 0 {
		kept = strings.TrimSuffix(l.file.Name(), ".spool") + ".kept"
		if os.Rename(l.file.Name(), kept) != nil {
			kept = l.file.Name()
		}
	} else {
		os.Remove(l.file.Name())
	}
	l.file.Close()
	return kept
}

// leftoverStored ends a leftover, and reports it when a part of it could not be stored.
func (w *writeQueue) leftoverStored(l *leftover) {
	n := len(l.strange)
	kept := l.done()
	if n == 0 {
		return
	}
	w.mu.Lock()
	tell := w.onProblem
	w.mu.Unlock()
	if tell != nil {
		tell(&Problem{Kind: ProblemSalvaged, Path: kept, Message: fmt.Sprintf(
			"%s continued on another machine while this one had no connection to %s; what was added here is not part of the stored history and is kept in %s", sessionsWere(n), w.b.name(), kept)})
	}
}

// sessionsWere counts sessions in a sentence.
func sessionsWere(n int) string {
	if n == 1 {
		return "1 session was"
	}
	return fmt.Sprintf("%d sessions were", n)
}

// keep saves what is queued in the spool after a commit failed. It answers the callers who only wait for it to be safe, and the others with
// the problem. It reports whether everything is in the file.
func (w *writeQueue) keep(problem error) bool {
	n, ok := w.spoolQueued()
	if !ok {
		return false
	}
	var waiting []op
	w.mu.Lock()
	kept := make([]op, 0, len(w.queue))
	for i, o := range w.queue {
		if i < n && o.done != nil {
			waiting = append(waiting, o)
			continue
		}
		// The others stay queued: the file is for a crash, and the server still has to get them.
		kept = append(kept, o)
	}
	w.queue = kept
	w.mu.Unlock()
	for _, o := range waiting {
		if o.call != nil {
			o.answer(problem)
		}
	}
	return true
}

// spoolQueued saves the queued events and heads in the spool, and answers the callers who only wait for them to be safe. It returns how
// many ops were queued; all of them stay in the queue. It fails where there is no spool, or where the spool cannot be written.
func (w *writeQueue) spoolQueued() (n int, ok bool) {
	// A spool that failed is not used again before clear: a file with a gap would later be stored as if it were whole.
	if w.spool == nil || w.spool.failed != nil {
		return 0, false
	}
	w.mu.Lock()
	n = len(w.queue) // only the writer, which runs this, removes from the queue; later ops are behind these
	var fresh []*op
	var barriers []op
	for _, o := range w.queue[:n] {
		switch {
		case o.done != nil && o.call == nil:
			barriers = append(barriers, o)
		case !o.spooled && (o.event != nil || o.head != nil):
			fresh = append(fresh, &o)
		}
	}
	w.mu.Unlock()
	if len(fresh) > 0 {
		if err := w.spool.save(fresh); err != nil {
			w.spool.failed = err
			// Everything stays in memory; the problem that people see says so.
			return n, false
		}
	}
	w.mu.Lock()
	for i := range w.queue[:n] {
		w.queue[i].spooled = w.queue[i].done == nil
	}
	w.mu.Unlock()
	for _, o := range barriers {
		o.answer(nil) // Sync: everything before it is on a disk
	}
	return n, true
}

// replay stores one op of a leftover. What is stored already is left out, so that a leftover may be replayed twice, and a session that
// another process has continued is not mixed with it.
func (b *batch) replay(o *op) error {
	id := o.session
	if o.head != nil {
		id = o.head.ID
	}
	if o.from.strange[id] {
		return nil
	}
	// The rows gathered so far must be stored before this op is compared with the stored events.
	if err := b.flush(); err != nil {
		return err
	}
	mine, err := b.lockLeftover(o.from, id)
	if err != nil {
		return err
	}
	if !mine {
		o.from.strange[id] = true
		return nil
	}
	if o.head != nil {
		var updated int64
		err := b.tx.QueryRow("SELECT updated FROM sessions WHERE id = ?", b.tx.b.clean(id)).Scan(&updated)
		// A newer head is that of a process which continued the session.
		if err == nil && updated > o.head.Updated.UnixMicro() {
			return nil
		}
		return b.putHead(o.head)
	}
	num, err := sessionNum(b.tx, id)
	if err != nil {
		return err
	}
	r := row{eventKey(num, o.event.Seq), o.event}
	var last int64
	if err := b.tx.QueryRow("SELECT coalesce(max(key), 0) FROM events WHERE key BETWEEN ? AND ?", eventKey(num, 0), eventKey(num, maxSeq)).Scan(&last); err != nil {
		return err
	}
	// An event after the last stored one cannot be in conflict.
	if last < r.key {
		_, err := b.tx.b.insert(b.tx, []row{r})
		return err
	}
	same, err := stored(b.tx, r)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	// The same number with other contents: another process has continued from an earlier event.
	o.from.strange[id] = !same
	return nil
}

// lockLeftover takes the lock of a leftover's session until the transaction ends. It reports whether the lock was free: a process that runs
// the session holds it. So does the connection of the process that left the file, until the server has noticed its end, which fails here
// and is tried again.
func (b *batch) lockLeftover(l *leftover, session string) (mine bool, err error) {
	for deadline := time.Now().Add(lockPatience); ; time.Sleep(20 * time.Millisecond) {
		// The key is that of tryLockSQL.
		err := b.tx.QueryRow("SELECT pg_try_advisory_xact_lock(hashtextextended(current_schema() || '/' || ?, 7526175))", session).Scan(&mine)
		if err != nil || mine {
			return mine, err
		}
		var host string
		var pid int
		err = b.tx.QueryRow("SELECT host, pid FROM writers WHERE session = ?", session).Scan(&host, &pid)
		if errors.Is(err, sql.ErrNoRows) || err == nil && (host != hostname() || pid != l.pid) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if time.Now().After(deadline) {
			return false, &Problem{Kind: ProblemAway, Path: b.tx.b.name(), Message: fmt.Sprintf(
				"%s has not noticed yet that process %d on this machine has ended; what that one left in %s is stored once it has", b.tx.b.name(), pid, l.file.Name())}
		}
	}
}

// explain adds to a Problem in which file the events are until the server is back. Where this process has queued nothing yet, there is only
// the folder.
func (sp *spool) explain(err error) error {
	var p *Problem
	if sp == nil || sp.failed != nil || !errors.As(err, &p) {
		return err
	}
	// A copy, because all who wait share the problem.
	q := *p
	q.Kept = sp.dir
	if sp.file != nil {
		q.Kept = sp.file.Name()
	}
	return &q
}
