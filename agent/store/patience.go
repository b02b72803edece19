package store

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pillion-dev/pillion/tools/guard"
)

// serverPatience is how long a server may be silent while we wait for its answer. TCP and Unix sockets do not report a server that is
// stopped (SIGSTOP, a frozen machine, a full disk), so without this limit a call could wait for ever. It is a variable for tests only.
var serverPatience = newPatience(5 * time.Second)

// newPatience makes a duration that tests can change while connections read it.
func newPatience(d time.Duration) *atomic.Int64 {
	p := new(atomic.Int64)
	p.Store(int64(d))
	return p
}

// awayPause is how long calls fail at once after the server was silent, instead of each waiting for serverPatience.
const awayPause = 3 * time.Second

// impatient is a connection each of whose reads and writes has a deadline. It respects an earlier deadline of its user: the
// driver bounds the making of a connection with one.
type impatient struct {
	net.Conn
	mu          sync.Mutex
	read, write time.Time // guarded by mu: the user's deadlines; zero for none
}

// impatientDialer dials through the guard and gives each connection its deadlines. It is a pq.DialerContext.
type impatientDialer struct{}

func (d impatientDialer) Dial(network, addr string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, addr)
}

func (d impatientDialer) DialTimeout(network, addr string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return d.DialContext(ctx, network, addr)
}

func (impatientDialer) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	// The setting store counts only in the person's own configuration, so no folder can lose its trust for it.
	c, err := guard.Dialer(guard.Reason{Who: guard.Storage, Setting: "store"}, guard.Network{})(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &impatient{Conn: c}, nil
}

func (c *impatient) Read(p []byte) (int, error) {
	// Each read gets the whole patience: an answer may take longer, as long as something arrives.
	c.arm(&c.read, c.Conn.SetReadDeadline)
	n, err := c.Conn.Read(p)
	return n, c.spent(err)
}

func (c *impatient) Write(p []byte) (int, error) {
	c.arm(&c.write, c.Conn.SetWriteDeadline)
	n, err := c.Conn.Write(p)
	return n, c.spent(err)
}

// spent closes a connection that has failed: an answer that comes after its time must not be read as the answer to the next question.
func (c *impatient) spent(err error) error {
	if err != nil {
		c.Conn.Close()
	}
	return err
}

// arm sets the earlier of the user's deadline and ours. Under the lock, so that it cannot overwrite a deadline that the user sets
// meanwhile.
func (c *impatient) arm(user *time.Time, set func(time.Time) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := time.Now().Add(time.Duration(serverPatience.Load()))
	if !user.IsZero() && user.Before(at) {
		at = *user
	}
	_ = set(at) // fails on a closed connection only; the read or write after it reports that
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
