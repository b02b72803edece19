package run

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/tools/shell/sandbox"
	"github.com/pillion-dev/pillion/tools/shell/visible"
)

const (
	// tailSize must be at least maxWhole: up to that size, openSpill and result take the whole output from the ring.
	headSize = 20 << 10 // bytes kept from the start of long output
	tailSize = 64 << 10 // bytes kept from the end
	// MaxSpill is the largest size of the file for the whole output, in bytes, so that a command that prints forever does not fill the disk.
	MaxSpill = 4 << 30
)

// Output is what a command printed. Head is all of it when Truncated is false.
// Tail is then empty, and Cut is 0.
type Output struct {
	Head, Tail string // made readable: no control codes, valid UTF-8
	Truncated  bool
	Bytes      int64  // bytes printed in all
	Cut        int64  // bytes between Head and Tail
	Path       string // file with all bytes as printed; empty if Head is all of it, or the file could not be created
	SpillErr   string // why there is no file although Truncated is true, or why it is not complete
}

// collector reads the output of a command. It keeps the beginning and the end in memory; longer output also goes to a file. One
// goroutine calls read, and any number of others may ask for the output meanwhile. The fields below mu are guarded by it.
type collector struct {
	pipe *os.File
	dir  string
	// pipeGrows: pipe is one, and not a pseudo-terminal. Only read uses it.
	pipeGrows bool
	end       chan struct{} // closed when all output from before the end of the shell has been read

	mu      sync.Mutex
	head    []byte   // the first headSize bytes
	ring    []byte   // the last tailSize bytes, as a ring once full
	at      int      // index of the oldest byte in ring
	behind  bool     // the end of the output is in the file and not in ring; see move
	total   int64    // bytes printed so far
	file    *os.File // nil before openSpill and after settle
	writer  *bufio.Writer
	path    string        // of the file; kept after the file is closed
	failed  string        // why the file is missing or not complete, for the model
	settled bool          // later output is not the command's and is discarded
	changed bool          // new output since the last call by report
	waiting chan struct{} // closed when more output comes; nil: nobody waits
	most    int64         // largest size of the file, in bytes
	raw     func([]byte)  // Command.Raw; may be nil
}

// newCollector makes a collector that reads from pipe, a pipe or a pseudo-terminal, and closes it. A contained command runs without
// approval, so it may use less of the disk.
func newCollector(pipe *os.File, c Command) *collector {
	most := int64(MaxSpill)
	if c.Contained != nil {
		most = sandbox.ContainedOutput
	}
	return &collector{pipe: pipe, dir: c.SpillDir, pipeGrows: !c.PTY, most: most, raw: c.Raw, end: make(chan struct{})}
}

const (
	readBuffer = 256 << 10            // bytes
	muchOutput = 1 << 20              // bytes after which a command is one that prints a lot
	readPause  = 2 * time.Millisecond // between reads of such a command, if it is slower than they are
)

// readBuffers are the buffers of commands that have ended.
var readBuffers = sync.Pool{New: func() any { return new([readBuffer]byte) }}

// read reads all output until the last process closes the pipe. It closes end as soon as it has read what the command itself printed.
func (c *collector) read() {
	defer c.pipe.Close()
	pooled := readBuffers.Get().(*[readBuffer]byte)
	defer readBuffers.Put(pooled)
	buf := pooled[:]
	var read int64
	ended := false
	finish := func() {
		if !ended {
			ended = true
			close(c.end)
		}
	}
	defer finish()
	for {
		n, err := 0, error(errNoMove)
		if read >= muchOutput && c.pipeGrows {
			n, err = c.move()
		}
		if err == errNoMove {
			n, err = c.pipe.Read(buf)
			c.add(buf[:n])
		}
		if before := read; c.pipeGrows && n > 0 {
			if read += int64(n); read >= muchOutput && before < muchOutput {
				c.pipeGrows = growPipe(c.pipe)
			}
			// The pipe has room for what comes meanwhile. Without the pause each few KiB would wake this goroutine, for a text of which only
			// the end is kept.
			if read >= muchOutput && n < len(buf)/2 && err == nil {
				time.Sleep(readPause)
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded):
			// The shell has ended. Its last output is still in the pipe. What other processes print later is read and discarded, since
			// closing the pipe would end them with SIGPIPE.
			_ = c.pipe.SetReadDeadline(time.Time{})
			// One megabyte is the most that a pipe holds by default (pipe(7), pipe-max-size). With this limit, a background process that
			// prints forever cannot delay the end of the command.
			for got := 0; got < 1<<20; {
				n := readNow(c.pipe, buf)
				if n <= 0 {
					break
				}
				got += n
				c.add(buf[:n])
			}
			finish()
			_, _ = io.Copy(io.Discard, c.pipe)
			return
		default:
			return
		}
	}
}

// settle waits until all output of a command that has ended is read, and closes the file. Output that comes later is from background
// processes and is discarded. With now it does not wait, since after a cancel the user wants to type the next prompt.
func (c *collector) settle(now bool) {
	// A deadline in the past wakes read, which would wait as long as a background process keeps the pipe open.
	_ = c.pipe.SetReadDeadline(time.Unix(1, 0))
	if !now {
		<-c.end
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settled = true
	if c.file != nil {
		if err := c.writer.Flush(); err != nil && c.failed == "" {
			c.failed = err.Error()
		}
		c.catchUp()
		if err := c.file.Close(); err != nil && c.failed == "" {
			c.failed = err.Error()
		}
		c.file = nil
	}
}

// add takes the next bytes of the output. It calls raw with mu held, so raw must not block.
func (c *collector) add(p []byte) {
	if len(p) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.settled {
		return
	}
	if c.raw != nil {
		c.raw(p)
	}
	c.came()
	c.catchUp()
	// With p the output becomes too long to be returned whole. All that came before p is still in the ring.
	if c.total <= maxWhole && c.total+int64(len(p)) > maxWhole && c.path == "" && c.failed == "" {
		c.openSpill()
	}
	c.total += int64(len(p))
	if c.file != nil && c.failed == "" {
		if _, err := c.writer.Write(p); err != nil {
			c.failed = "the rest could not be written: " + err.Error()
		} else if c.total > c.most {
			c.failed = fmt.Sprintf("the file ends at %d bytes", c.most)
		}
	}
	if room := headSize - len(c.head); room > 0 {
		c.head = append(c.head, p[:min(room, len(p))]...)
	}
	c.keep(p)
}

// came tells those who wait that there is more output. Called with mu held.
func (c *collector) came() {
	c.changed = true
	if c.waiting != nil {
		close(c.waiting)
		c.waiting = nil
	}
}

var errNoMove = errors.New("the output must be read")

// move takes the next bytes of long output from the pipe into the file without reading them: only the end of it is shown, which catchUp reads
// when it is asked for. It waits like Read. The error is errNoMove where somebody wants every byte or the file cannot take them.
func (c *collector) move() (n int, err error) {
	conn, err := c.pipe.SyscallConn()
	if err != nil || c.raw != nil {
		return 0, errNoMove
	}
	var moved error
	err = conn.Read(func(fd uintptr) (done bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.settled || c.file == nil || c.failed != "" || c.total+pipeRoom > c.most || c.writer.Flush() != nil {
			moved = errNoMove
			return true
		}
		var again bool
		if n, again, moved = splice(fd, c.file.Fd(), pipeRoom); again {
			return false
		}
		if moved != nil {
			moved = errNoMove // what is wrong with the file shows when it is written to
			return true
		}
		if n > 0 {
			c.total += int64(n)
			c.behind = true
			c.came()
		}
		return true
	})
	switch {
	case err != nil:
		return 0, err
	case moved != nil:
		return 0, moved
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// pipeRoom is what growPipe makes a pipe hold, in bytes.
const pipeRoom = 1 << 20

// catchUp reads the end of what was moved to the file into the ring. Called with mu held.
func (c *collector) catchUp() {
	if !c.behind {
		return
	}
	c.behind = false
	c.ring, c.at = c.ring[:tailSize], 0 // so much came before anything was moved
	if _, err := c.file.ReadAt(c.ring, c.total-tailSize); err != nil && c.failed == "" {
		c.failed = "it could not be read: " + err.Error()
	}
}

// keep adds p to the ring. Called with mu held.
func (c *collector) keep(p []byte) {
	if len(p) > tailSize {
		p = p[len(p)-tailSize:]
	}
	if room := tailSize - len(c.ring); room > 0 {
		n := min(room, len(p))
		c.ring = append(c.ring, p[:n]...)
		p = p[n:]
	}
	for len(p) > 0 {
		n := copy(c.ring[c.at:], p)
		c.at = (c.at + n) % tailSize
		p = p[n:]
	}
}

// last returns a copy of the bytes in the ring, the oldest first. Called with mu held.
func (c *collector) last() []byte {
	c.catchUp()
	return append(append(make([]byte, 0, len(c.ring)), c.ring[c.at:]...), c.ring[:c.at]...)
}

// openSpill creates the file and writes what was printed so far, all of which is still in the ring. Only the user may read the file and
// its folder, because output may contain secrets. Called with mu held.
func (c *collector) openSpill() {
	if c.dir == "" {
		c.failed = "there is no place to keep it"
		return
	}
	err := os.MkdirAll(c.dir, 0o700)
	var f *os.File
	if err == nil {
		f, err = os.CreateTemp(c.dir, "tool_bash_*.txt") // package tools deletes old files with the prefix tool_
	}
	if err != nil {
		c.failed = "it could not be saved: " + err.Error()
		return
	}
	c.file, c.path, c.writer = f, filepath.Clean(f.Name()), bufio.NewWriterSize(f, 64<<10)
	if _, err := c.writer.Write(c.last()); err != nil {
		c.failed = "the rest could not be written: " + err.Error()
	}
}

// maxWhole is the most output that is returned whole, in bytes; all tools have this limit. tailSize must not be smaller.
const maxWhole = 50 << 10

// maxLines is the most output that is returned whole, in lines.
const maxLines = 2000

// result returns all output, if it is within maxWhole and maxLines, else its beginning and its end. The beginning gets at most a third
// of maxLines; the end gets more, because it usually says why a command failed.
func (c *collector) result() Output {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := Output{Bytes: c.total, Path: c.path, SpillErr: c.failed}
	all := c.last()
	if c.total <= maxWhole {
		if lines(all) <= maxLines {
			out.Head = visible.Output(all)
			return out
		}
		// Few bytes but too many lines, so add has not created the file.
		c.settled = true
		c.openSpill()
		if c.file != nil {
			if err := c.writer.Flush(); err != nil {
				c.failed = "it could not be saved: " + err.Error()
			}
			c.file.Close()
			c.file = nil
		}
		out.Path, out.SpillErr = c.path, c.failed
	}
	out.Truncated = true
	head := firstLines(c.head[:min(len(c.head), headSize)], maxLines/3)
	tail := all[max(0, len(all)-(maxWhole-headSize)):]
	// With little more than maxWhole bytes the two parts overlap. The overlap is shown once.
	if overlap := int64(len(head)) + int64(len(tail)) - c.total; overlap > 0 {
		tail = tail[overlap:]
	}
	tail = lastLines(tail, maxLines-maxLines/3)
	out.Head, out.Tail = visible.Output(head), visible.Output(tail)
	out.Cut = c.total - int64(len(head)) - int64(len(tail))
	return out
}

// lines counts line ends.
func lines(p []byte) int {
	n := 0
	for _, b := range p {
		if b == '\n' {
			n++
		}
	}
	return n
}

// firstLines returns at most the first n lines of p, without an incomplete line at the end. If a very long line leaves less than half
// of p to whole lines, it returns all of p. The result shares the memory of p.
func firstLines(p []byte, n int) []byte {
	end := 0
	for i, b := range p {
		if b == '\n' {
			end = i + 1
			if n--; n == 0 {
				break
			}
		}
	}
	if end < len(p)/2 && n > 0 {
		return p // a very long line is cut
	}
	return p[:end]
}

// lastLines returns at most the last n lines of p. It drops the first line, which is probably incomplete, unless that is more than half
// of p.
func lastLines(p []byte, n int) []byte {
	for i := len(p) - 2; i >= 0; i-- {
		if p[i] == '\n' {
			if n--; n == 0 {
				return p[i+1:]
			}
		}
	}
	// p begins somewhere in the output, so its first line is probably incomplete.
	for i, b := range p {
		if b == '\n' && i < len(p)/2 {
			return p[i+1:]
		}
	}
	return p
}

// tail returns the readable end of the output so far, at most n characters, with "..." before it if something is left out.
func (c *collector) tail(n int) string {
	c.mu.Lock()
	raw := c.last()
	cut := c.total > int64(len(raw))
	c.mu.Unlock()
	text := []rune(visible.Output(raw))
	// 5 characters for "...\n\n".
	if len(text) > n-5 {
		text, cut = text[len(text)-(n-5):], true
	}
	if cut {
		return "...\n\n" + string(text)
	}
	return string(text)
}

// report calls f with the tail while output comes, at most ten times a second, from one goroutine, until stop is called. After stop has
// returned, f is not called again.
func (c *collector) report(f func(string)) (stop func()) {
	if f == nil {
		return func() {}
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
			}
			c.mu.Lock()
			changed := c.changed
			c.changed = false
			c.mu.Unlock()
			if changed {
				f(c.tail(LiveOutput))
			}
		}
	}()
	return func() { close(quit); <-done }
}
