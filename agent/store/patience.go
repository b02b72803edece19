package store

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pillion-dev/pillion/tools/guard"
)

// serverPatience is how long a server may be silent while we wait for its answer. TCP and Unix sockets say nothing of a server that is
// stopped (SIGSTOP, a frozen machine, a full disk): without it every call would wait for ever.
// A variable for tests only.
var serverPatience = newPatience(5 * time.Second)

// newPatience makes a duration that tests can change while connections read it.
func newPatience(d time.Duration) *atomic.Int64 {
	p := new(atomic.Int64)
	p.Store(int64(d))
	return p
}

// awayPause is how long calls fail at once after the server was silent, instead of waiting once more each.
const awayPause = 3 * time.Second

// impatient is a connection whose single reads and writes have a deadline. It keeps to an earlier one that its user sets: pgx
// interrupts a call by a deadline in the past.
type impatient struct {
	net.Conn
	mu          sync.Mutex
	read, write time.Time // guarded by mu: the user's deadlines; zero for none
}

// impatientDialer dials as pgx does, and gives each connection its deadlines.
func impatientDialer() func(ctx context.Context, network, addr string) (net.Conn, error) {
	// Only the person's own settings name a store, so this reason has no folder that could lose its trust.
	dial := guard.Dialer(guard.Reason{Who: guard.Storage, Setting: "store"}, guard.Network{})
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &impatient{Conn: c}, nil
	}
}

func (c *impatient) Read(p []byte) (int, error) {
	// Each read has its own patience: an answer may take longer in all, as long as something arrives.
	c.arm(&c.read, c.Conn.SetReadDeadline)
	return c.Conn.Read(p)
}

func (c *impatient) Write(p []byte) (int, error) {
	c.arm(&c.write, c.Conn.SetWriteDeadline)
	return c.Conn.Write(p)
}

// arm sets the earlier of the user's deadline and ours. The lock makes sure that a deadline set meanwhile is not overwritten.
func (c *impatient) arm(user *time.Time, set func(time.Time) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := time.Now().Add(time.Duration(serverPatience.Load()))
	if !user.IsZero() && user.Before(at) {
		at = *user
	}
	_ = set(at) // fails on a closed connection only; then the read says so
}

func (c *impatient) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read, c.write = t, t
	return c.Conn.SetDeadline(t)
}

func (c *impatient) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = t
	return c.Conn.SetReadDeadline(t)
}

func (c *impatient) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.write = t
	return c.Conn.SetWriteDeadline(t)
}
