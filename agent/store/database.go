package store

import (
	"database/sql"
	"errors"
	"sync"
	"time"
)

// database is a backend with its open connections, and what is known of its state.
type database struct {
	b        backend
	damage   func()           // called when a read finds the file damaged; the writer repairs it
	salvaged func(done error) // called with the result of a repair, while openMu is held

	openMu sync.Mutex // a mutex of its own, because opening may take seconds
	// repaired: a repair was tried; there is one in the life of a store.
	repaired bool
	write    *sql.DB // guarded by openMu; one connection, the writer's
	read     *sql.DB // guarded by openMu
	// writes and reads are the statements of the two pools, guarded by openMu; nil where the driver prepares them itself.
	writes, reads *prepared

	awayMu    sync.Mutex
	awayErr   error     // guarded by awayMu: why the server did not answer, until awayUntil
	awayUntil time.Time // guarded by awayMu
}

// open opens the database once and migrates it. A failure is not remembered: at the next use the disk may have space, or the server may
// answer.
func (d *database) open() (*sql.DB, error) {
	began := time.Now()
	// openMu is held all the time, so that several readers at once open one database.
	d.openMu.Lock()
	defer d.openMu.Unlock()
	if d.write != nil {
		return d.write, nil
	}
	// Another caller has just waited for the server in vain, while this one waited for the mutex.
	if err := d.awaySince(began); err != nil {
		return nil, err
	}
	db, err := d.b.open()
	// A damaged file is repaired before anything reads from it.
	if err != nil && d.repair(d.b.explain(err)) {
		db, err = d.b.open()
	}
	if err != nil {
		return nil, d.explain(err)
	}
	d.write = db
	// The driver for PostgreSQL prepares by itself.
	if _, ok := d.b.(*sqlite); ok {
		d.writes = newPrepared(db)
	}
	return db, nil
}

// statements are the prepared statements of the writing connection; nil for PostgreSQL.
func (d *database) statements() *prepared {
	d.openMu.Lock()
	defer d.openMu.Unlock()
	return d.writes
}

// repair replaces a damaged file by what can be read of it, once in the life of a store. The caller holds openMu. It reports whether
// there is a new file; the reason why there is none becomes part of later Problems.
func (d *database) repair(problem error) bool {
	b, ok := d.b.(*sqlite)
	var p *Problem
	if !ok || b.path == "" || d.repaired || !errors.As(problem, &p) || p.Kind != ProblemDamaged {
		return false
	}
	d.repaired = true
	for _, db := range []*sql.DB{d.read, d.write} {
		if db != nil {
			db.Close()
		}
	}
	d.read, d.write, d.reads, d.writes = nil, nil, nil, nil
	// Both pools are closed by now: salvage replaces the file, and an open connection would continue to write to the old one.
	done, err := salvage(b.path, b.busyTimeout)
	if err != nil {
		b.unsalvaged = err
		return false
	}
	d.salvaged(done)
	return true
}

// close closes the connections. A later use opens them again.
func (d *database) close() {
	d.openMu.Lock()
	defer d.openMu.Unlock()
	if d.read != nil && d.read != d.write {
		d.read.Close()
	}
	if d.write != nil {
		d.write.Close()
	}
	d.read, d.write, d.reads, d.writes = nil, nil, nil, nil
}

// repairNow is repair for damage that showed while the file was in use.
func (d *database) repairNow(problem error) bool {
	d.openMu.Lock()
	defer d.openMu.Unlock()
	return d.repair(problem)
}

// explain turns a failure into a Problem. It also starts the pause after a server did not answer (see away), and has the writer repair a
// damaged file.
func (d *database) explain(err error) error {
	var p *Problem
	known := errors.As(err, &p) // an error that away returned must not prolong the pause
	err = d.b.explain(err)
	// Only the writer repairs, because it owns the connection that writes.
	if errors.As(err, &p) && p.Kind == ProblemDamaged {
		d.damage()
	}
	if !known && isAway(err) {
		d.awayMu.Lock()
		d.awayErr, d.awayUntil = err, time.Now().Add(awayPause)
		d.awayMu.Unlock()
	}
	return err
}

// away returns why the server did not answer a moment ago; nil when it is worth asking. Readers fail at once with it. The writer asks at
// its own pace all the same.
func (d *database) away() error {
	d.awayMu.Lock()
	defer d.awayMu.Unlock()
	if d.awayErr != nil && time.Now().Before(d.awayUntil) {
		return d.awayErr
	}
	return nil
}

// awaySince is away for a failure after the given time only.
func (d *database) awaySince(began time.Time) error {
	err := d.away()
	d.awayMu.Lock()
	defer d.awayMu.Unlock()
	if d.awayUntil.Add(-awayPause).Before(began) {
		return nil
	}
	return err
}

// answered ends the pause of away after a successful commit.
func (d *database) answered() {
	d.awayMu.Lock()
	defer d.awayMu.Unlock()
	d.awayErr = nil
}
