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
	// The ring must hold at least maxWhole: openSpill starts the file from it, and result returns from it.
	headSize = 20 << 10 // bytes kept from the start of long output
	tailSize = 64 << 10 // bytes kept from its end
	// MaxSpill bounds the file that holds the whole output, in bytes: a command that prints without end must not fill the disk.
	MaxSpill = 4 << 30
)

// Output is what a command printed. Head is all of it when Truncated is false.
// Cut is then 0 and Tail empty.
type Output struct {
	Head, Tail string // made readable: no control codes, valid UTF-8
	Truncated  bool
	Bytes      int64  // printed in all
	Cut        int64  // bytes between Head and Tail
	Path       string // file with the whole, as printed; empty when it was not needed or could not be written
	SpillErr   string // why Path is empty or its file not complete
}

// collector reads the command's output into bounded memory and, when that is not enough, a file. The fields below mu are
// guarded by it. One goroutine reads; any number of others may ask for the output meanwhile.
type collector struct {
	pipe *os.File
	dir  string
	end  chan struct{} // the reader has read all there was when the shell ended

	mu      sync.Mutex
	head    []byte   // the first headSize bytes
	ring    []byte   // the last tailSize bytes, as a ring once full
	at      int      // where the ring's oldest byte is
	total   int64    // bytes printed so far
	file    *os.File // nil before openSpill and after settle
	writer  *bufio.Writer
	path    string        // of the file; stays when it is closed
	failed  string        // why the file is missing or not complete, for the model
	settled bool          // what comes now is not the command's any more
	changed bool          // something came since report looked
	waiting chan struct{} // closed when more comes; nil: no one asked for it
	most    int64         // bytes the file may hold
	raw     func([]byte)  // gets everything as it was printed; may be nil
}

// newCollector makes a collector for one end of a pipe or pseudo-terminal, which it closes. A contained command runs without a
// question, so it may fill less of the disk.
func newCollector(pipe *os.File, c Command) *collector {
	most := int64(MaxSpill)
	if c.Contained != nil {
		most = sandbox.ContainedOutput
	}
	return &collector{pipe: pipe, dir: c.SpillDir, most: most, raw: c.Raw, end: make(chan struct{})}
}

// read takes all output until the last holder of the pipe closes it.
// It closes end once, when all that the command itself printed has been read.
func (c *collector) read() {
	defer c.pipe.Close()
	buf := make([]byte, 32<<10)
	ended := false
	finish := func() {
		if !ended {
			ended = true
			close(c.end)
		}
	}
	defer finish()
	for {
		n, err := c.pipe.Read(buf)
		c.add(buf[:n])
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded):
			// The shell has ended. What it printed is in the pipe; what others print later is thrown away, so that
			// they don't die of a closed pipe.
			_ = c.pipe.SetReadDeadline(time.Time{})
			// One megabyte is the most that a pipe holds by default (pipe(7), pipe-max-size). The bound keeps a background process that
			// prints without end from holding the command up.
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

// settle waits until all output of a command that has ended is read, and closes the file. With now it does not wait: after a
// cancel the person wants the prompt back. What comes later belongs to processes in the background and is thrown away.
func (c *collector) settle(now bool) {
	// A deadline in the past wakes read, which may wait for a pipe that a background process keeps open.
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
		if err := c.file.Close(); err != nil && c.failed == "" {
			c.failed = err.Error()
		}
		c.file = nil
	}
}

// add takes the next bytes. raw is called with mu held, which is why it must not block.
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
	c.changed = true
	if c.waiting != nil {
		close(c.waiting)
		c.waiting = nil
	}
	// From here on the output is too long to be given back whole. What came before is still in the ring.
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

// keep adds to the ring of the last bytes. Called with mu held.
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

// last is the ring in order.
// Called with mu held; the result is a copy.
func (c *collector) last() []byte {
	return append(append(make([]byte, 0, len(c.ring)), c.ring[c.at:]...), c.ring[:c.at]...)
}

// openSpill starts the file with what was printed so far, which is all in the ring.
// Mode 0600 and 0700: output may hold what the person alone may read. Called with mu held.
func (c *collector) openSpill() {
	if c.dir == "" {
		c.failed = "there is no place to keep it"
		return
	}
	err := os.MkdirAll(c.dir, 0o700)
	var f *os.File
	if err == nil {
		f, err = os.CreateTemp(c.dir, "tool_bash_*.txt") // the prefix by which old ones are swept
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

// maxWhole is the output that is given back whole, in bytes: the one cap of all tools. tailSize must not be smaller, see
// headSize.
const maxWhole = 50 << 10

// maxLines is the same in lines.
const maxLines = 2000

// result is what Run returns: all output, or at most a third of maxLines from the beginning and the rest from the end. The
// end gets more because it usually says why a command failed.
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
		// Many short lines: the file is written now.
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
	// With just over maxWhole bytes the two parts meet; nothing is shown twice.
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

// firstLines cuts at a line's end, unless there is none.
// The result shares p's memory.
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
		return p // one very long line: cut inside it
	}
	return p[:end]
}

// lastLines returns at most n lines, beginning with a whole one where there is one in the first half.
func lastLines(p []byte, n int) []byte {
	for i := len(p) - 2; i >= 0; i-- {
		if p[i] == '\n' {
			if n--; n == 0 {
				return p[i+1:]
			}
		}
	}
	// The first line is probably cut.
	for i, b := range p {
		if b == '\n' && i < len(p)/2 {
			return p[i+1:]
		}
	}
	return p
}

// tail is the readable end of the output so far, at most n characters, with "..." in front when something is missing.
func (c *collector) tail(n int) string {
	c.mu.Lock()
	raw := c.last()
	cut := c.total > int64(len(raw))
	c.mu.Unlock()
	text := []rune(visible.Output(raw))
	// 5 characters are those of the "..." line that is put in front.
	if len(text) > n-5 {
		text, cut = text[len(text)-(n-5):], true
	}
	if cut {
		return "...\n\n" + string(text)
	}
	return string(text)
}

// report calls f while output comes, at most ten times a second. The function it returns stops it.
// f is called from one goroutine, never after stop has returned.
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
