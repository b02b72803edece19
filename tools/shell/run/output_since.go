package run

import (
	"bytes"
	"io"
	"os"
	"unicode/utf8"

	"github.com/pillion-dev/pillion/tools/shell/visible"
)

// more returns a channel that is closed when the next output comes. All callers that wait get the same channel.
func (c *collector) more() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting == nil {
		c.waiting = make(chan struct{})
	}
	return c.waiting
}

// fresh is how many bytes since would return for n before the command has ended. Bytes that since would hold back do not count:
// otherwise await would return for half a character, and Look would show nothing.
func (c *collector) fresh(n int64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.total <= n {
		return 0
	}
	all := c.last()
	return c.total - n - int64(unfinished(all[len(all)-int(min(c.total-n, int64(len(all)))):]))
}

// since returns the output after the first n bytes, cut as by result, and the n for the next call. Until the command has ended, it
// holds back an incomplete character or escape sequence at the end, which the next call returns. n counts bytes as printed, not
// as made readable.
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
	start := next - int64(len(all)) // offset in the output of the first byte in all
	out := Output{Bytes: fresh}
	if fresh <= maxWhole {
		part := all[int64(len(all))-fresh:]
		if lines(part) <= maxLines {
			out.Head = visible.Output(part)
			return out, next
		}
	}
	// Too long to be returned whole: the model gets the path of the file, so all output so far must be in it.
	c.saveNow()
	out.Truncated, out.Path, out.SpillErr = true, c.path, c.failed
	var head []byte
	// The beginning of the new output is in the ring, in head, or only in the file.
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

// saveNow writes all output so far to the file. It creates the file if add has not, because the output has few bytes but too many lines.
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

// readAt reads at most headSize bytes of the file from offset on. After an error it returns nil, and the caller shows only the end of the
// output.
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

// unfinished is how many bytes at the end of p are an incomplete character or escape sequence. If they were shown at once, half a
// character would become U+FFFD, and half an escape sequence would appear as text.
func unfinished(p []byte) int {
	const longest = 64 // bytes; a longer escape sequence is not held back
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

// endsEscape reports that p, which holds one escape sequence from its first byte to its last, is complete.
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
