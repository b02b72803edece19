package run

import (
	"bytes"
	"io"
	"os"
	"unicode/utf8"

	"github.com/pillion-dev/pillion/tools/shell/visible"
)

// more is closed when something is printed after this call.
// One channel serves all that wait.
func (c *collector) more() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting == nil {
		c.waiting = make(chan struct{})
	}
	return c.waiting
}

// fresh is how many bytes since would give after the first n. It leaves out what since would hold back: await must not return
// for half a character, which Look would then not show.
func (c *collector) fresh(n int64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.total <= n {
		return 0
	}
	all := c.last()
	return c.total - n - int64(unfinished(all[len(all)-int(min(c.total-n, int64(len(all)))):]))
}

// since is what was printed after the first n bytes, in the shape and with the limits of result, and how many bytes
// have been printed then. Unless the command has ended, a character or an escape sequence that may continue is left for
// the next time.
// The caller keeps the second result and passes it as n the next time; n counts bytes as printed, before they are made readable.
func (c *collector) since(n int64, ended bool) (Output, int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.last()
	next := c.total
	if !ended {
		held := unfinished(all[len(all)-int(min(next-n, int64(len(all)))):])
		all, next = all[:len(all)-held], next-int64(held)
	}
	fresh := next - n
	start := next - int64(len(all)) // where the kept end begins
	out := Output{Bytes: fresh}
	if fresh <= maxWhole {
		part := all[int64(len(all))-fresh:]
		if lines(part) <= maxLines {
			out.Head = visible.Output(part)
			return out, next
		}
	}
	// Too much to show whole: the model is given the path, so the file must hold all that it is told of.
	c.saveNow()
	out.Truncated, out.Path, out.SpillErr = true, c.path, c.failed
	var head []byte
	// The beginning of what is new is in the ring, in the kept head, or only in the file.
	switch {
	case n >= start:
		head = all[n-start:]
	case n < int64(len(c.head)):
		head = c.head[n:]
	default:
		head = readAt(c.path, n)
	}
	head = firstLines(head[:min(int64(len(head)), headSize, fresh)], maxLines/3)
	tail := all[max(0, len(all)-(maxWhole-headSize)):]
	if overlap := int64(len(head)) + int64(len(tail)) - fresh; overlap > 0 {
		tail = tail[overlap:]
	}
	tail = lastLines(tail, maxLines-maxLines/3)
	out.Head, out.Tail = visible.Output(head), visible.Output(tail)
	out.Cut = fresh - int64(len(head)) - int64(len(tail))
	return out, next
}

// saveNow brings the file up to what was printed so far; it is made when short lines are too many to show.
// Called with mu held.
func (c *collector) saveNow() {
	if c.path == "" && c.failed == "" && c.total <= maxWhole {
		c.openSpill()
	}
	if c.file == nil {
		return
	}
	if err := c.writer.Flush(); err != nil && c.failed == "" {
		c.failed = "the rest could not be written: " + err.Error()
	}
	if c.settled {
		c.file.Close()
		c.file = nil
	}
}

// readAt reads headSize bytes of the saved output; nothing when they are not there.
// An error is not reported: the caller then shows the end only.
func readAt(path string, offset int64) []byte {
	if path == "" {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	buf := make([]byte, headSize)
	n, err := f.ReadAt(buf, offset)
	if err != nil && err != io.EOF {
		return nil
	}
	return buf[:n]
}

// unfinished is how many bytes at the end may be the start of something longer.
// Shown at once, half a character would become U+FFFD, and half an escape sequence would be printed as text.
func unfinished(p []byte) int {
	const longest = 64 // bytes of an escape sequence that is waited for; a longer one is shown as it comes
	if at := bytes.LastIndexByte(p[max(0, len(p)-longest):], 0x1b); at >= 0 {
		rest := p[max(0, len(p)-longest)+at:]
		if len(rest) == 1 || visible.EscapeLen(rest) == len(rest) && !endsEscape(rest) {
			return len(rest)
		}
	}
	for n := 1; n <= min(utf8.UTFMax-1, len(p)); n++ {
		if b := p[len(p)-n]; utf8.RuneStart(b) {
			if b >= 0xc0 && !utf8.FullRune(p[len(p)-n:]) {
				return n
			}
			break
		}
	}
	return 0
}

// endsEscape reports whether a sequence that takes all of p is complete.
func endsEscape(p []byte) bool {
	last := p[len(p)-1]
	switch p[1] {
	case '[':
		return len(p) > 2 && last >= 0x40 && last <= 0x7e
	case ']', 'P', 'X', '^', '_':
		return last == 0x07 || bytes.HasSuffix(p[2:], []byte("\x1b\\"))
	case '(', ')', '*', '+', '#', '%', ' ':
		return len(p) == 3
	}
	return true
}
