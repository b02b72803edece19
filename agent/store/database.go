package store

import (
	"database/sql"
	"errors"
	"sync"
	"time"
)

// database is the backend while it is open: its connections, and what is known of it.
type database struct {
	b        backend
	damage   func()           // hears that a read has found the file damaged; the writer repairs it
	salvaged func(done error) // hears what a repair could save; openMu is held

	openMu sync.Mutex // its own, because opening may take seconds
	// guarded by openMu: salvage was tried
	repaired bool
	write    *sql.DB // guarded by openMu; one connection, the writer's
	read     *sql.DB // guarded by openMu
	// guarded by openMu: their statements; nil where the driver keeps them
	writes, reads *prepared

	awayMu    sync.Mutex
	awayErr   error     // guarded by awayMu: why the server did not answer, until awayUntil
	awayUntil time.Time // guarded by awayMu
}

// open opens the database once and brings it to the present schema. A failure is not remembered: the disk may have space, or the
// server may answer, at the next use.
func (d *database) open() (*sql.DB, error) {
	// openMu is held for the whole opening, so that several readers at once open one database.
	d.openMu.Lock()
	defer d.openMu.Unlock()
	if d.write != nil {
		return d.write, nil
	}
	db, err := d.b.open()
	// A damaged file is salvaged here, before anybody reads from it.
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

// statements are the prepared ones of the writing connection; nil for PostgreSQL.
func (d *database) statements() *prepared {
	d.openMu.Lock()
	defer d.openMu.Unlock()
	return d.writes
}

// repair salvages a damaged file, once in the life of a store. openMu is held. It reports whether there is a new file; why there is none
// is part of later Problems.
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
	// both pools are closed first: salvage works on the file, and a connection would write on into the old one
	done, err := salvage(b.path, b.busyTimeout)
	if err != nil {
		b.unsalvaged = err
		return false
	}
	d.salvaged(done)
	return true
}

// close closes the connections; what uses the database later opens it anew.
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

// repairNow is repair for a file that turned out to be damaged while it was used.
func (d *database) repairNow(problem error) bool {
	d.openMu.Lock()
	defer d.openMu.Unlock()
	return d.repair(problem)
}

// explain turns a failure into a Problem. A server that is away is remembered for awayPause (see away), and a damaged file is repaired
// by the writer.
func (d *database) explain(err error) error {
	var p *Problem
	known := errors.As(err, &p) // an error that away gave does not make the pause longer
	err = d.b.explain(err)
	// A read has found the damage. Only the writer repairs, because it owns the connection that writes.
	if errors.As(err, &p) && p.Kind == ProblemDamaged {
		d.damage()
	}
	// Only a failure of its own starts the pause.
	if !known && isAway(err) {
		d.awayMu.Lock()
		d.awayErr, d.awayUntil = err, time.Now().Add(awayPause)
		d.awayMu.Unlock()
	}
	return err
}

// away is why the server did not answer a moment ago; nil when it is worth asking. The writer asks all the same, at its own pace.
func (d *database) away() error {
	d.awayMu.Lock()
	defer d.awayMu.Unlock()
	if d.awayErr != nil && time.Now().Before(d.awayUntil) {
		return d.awayErr
	}
	return nil
}

// answered ends what away says: a commit has come through.
func (d *database) answered() {
	d.awayMu.Lock()
	defer d.awayMu.Unlock()
	d.awayErr = nil
}
