package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lib/pq"
)

// errReconnected means that the connection was replaced between relock and the transaction, so its locks are missing; the writer tries
// again.
var errReconnected = errors.New("the connection was made again")

// explain turns what the server or the network says into a Problem that tells a person what to do. Errors that callers compare, and
// Problems, pass unchanged.
func (p *postgres) explain(err error) error {
	var known *Problem
	if err == nil || errors.As(err, &known) || errors.Is(err, context.Canceled) || errors.Is(err, ErrNotFound) || errors.Is(err, ErrClosed) {
		return err
	}
	say := func(kind ProblemKind, format string, args ...any) error {
		return &Problem{Kind: kind, Path: p.name(), Message: fmt.Sprintf(format, args...), Err: err}
	}
	var address addressError
	if errors.As(err, &address) {
		return say(ProblemOther, "the setting store is no PostgreSQL address (postgres://user@host/database): %v", err)
	}
	// Without a code the server did not answer at all.
	switch code := sqlState(err); { // PostgreSQL, Appendix A: the first two characters are the class
	case code == "":
		return say(ProblemAway, "%s does not answer (%s); check the network and the server", p.name(), silence(err))
	case code == "28P01" || code == "28000":
		return say(ProblemOther, "%s refuses the user or password (%s); check the setting store, or ~/.pgpass", p.name(), code)
	case code == "3D000":
		return say(ProblemOther, "%s: there is no such database; make it with createdb, or correct the setting store", p.name())
	case code == "42501" || code == "25006":
		// insufficient_privilege, read_only_sql_transaction
		return say(ProblemReadOnly, "%s cannot be written (%v); the user needs a schema of its own (CREATE on the database) and no read-only server", p.name(), err)
	case code == "53100" || code == "53200":
		// disk_full, out_of_memory
		return say(ProblemFull, "%s has no space left (%v); the session is saved by itself once there is some", p.name(), err)
	case code[:2] == "08" || code[:2] == "57" || code[:2] == "53":
		// classes: connection exception, operator intervention, insufficient resources
		return say(ProblemAway, "%s is not available now (%v); check the server", p.name(), err)
	case code[:2] == "40" || code == "55P03":
		// class transaction rollback, lock_not_available
		return say(ProblemLocked, "%s is busy with another writer (%v)", p.name(), err)
	case code[:2] == "XX":
		// class internal error: the server's own word for damage
		return say(ProblemDamaged, "%s is damaged (%v); ask who runs the server", p.name(), err)
	}
	return say(ProblemOther, "the session store %s failed: %v", p.name(), err)
}

// addressError is an address that the driver does not understand, in words that have nothing of it.
type addressError string

func (e addressError) Error() string { return string(e) }

// wrongAddress takes out of the driver's words on an address what may be a part of the password: only its words on a single setting or
// variable, which begin with its name, are kept.
func wrongAddress(err error) addressError {
	if setting, ok := strings.CutPrefix(err.Error(), "pq: "); ok {
		return addressError(setting)
	}
	return "it cannot be taken apart; in a password, characters such as @ : / % ? # and blanks must be percent-encoded (a blank is %20)"
}

// silence says why a server did not answer. Of a time-out the address of each attempt and the driver's own words tell nothing more.
func silence(err error) string {
	var slow interface{ Timeout() bool }
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &slow) && slow.Timeout() {
		return "it was silent for " + time.Duration(serverPatience.Load()).String()
	}
	if errors.Is(err, driver.ErrBadConn) {
		return "the connection was lost"
	}
	return err.Error()
}

// sqlState is the five-character code of an answer of the server; empty for failures of the network.
func sqlState(err error) string {
	var e *pq.Error
	if errors.As(err, &e) && len(e.Code) == 5 {
		return string(e.Code)
	}
	return ""
}

// broken reports failures of the connection or the server, after which the whole transaction has to be repeated. All others are answers
// about one statement, which concern only the caller of that statement.
func (p *postgres) broken(err error) bool {
	if errors.Is(err, ErrNotFound) {
		return false
	}
	switch code := sqlState(err); {
	case code == "":
		return true
	default:
		switch code[:2] {
		// 25 is an invalid transaction state, 58 a failure of the system below the server
		case "08", "25", "40", "53", "57", "58", "XX":
			return true
		}
	}
	return false
}
