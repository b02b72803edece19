package mcp

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/rand"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/pillion-dev/pillion/tools"
)

// Limits of a text in a tool's result. The SDK reads a message into memory and decodes it in several copies, and of a long text the model
// sees tools.MaxBytes. So the rest goes to a file while the message arrives.
const (
	keptText  = 1 << 20   // bytes of a text, as JSON, that are decoded; a longer text goes to a file
	maxSaved  = 256 << 20 // bytes of one text; a message with a longer one is refused, so that a server cannot fill the disk
	maxUnread = 16        // texts that no call has taken, as it was cancelled; the oldest is removed
)

// errTooLong ends a connection on which a message has more than maxMessage bytes beside its long texts, or a text more than maxSaved.
var errTooLong = fmt.Errorf("a message is longer than %d bytes, or a text in it longer than %d", maxMessage, maxSaved)

// longTexts are the texts of one server that went to files. It is safe for concurrent use.
type longTexts struct {
	dir  string // for the files; empty: the texts are lost, as those of other tools are
	kept int    // bytes of a text, as JSON, that are decoded; 0: keptText

	mu  sync.Mutex
	cut map[string]tools.Whole // guarded by mu: by the mark that ends what was kept of the text
	old []string               // guarded by mu: the marks, oldest first
}

// begin starts a file for a text. The error of creating it is kept for the model.
func (l *longTexts) begin() *savedText {
	s := &savedText{mark: "\x00" + rand.Text()} // a server cannot guess it, and so cannot name a file
	if l.dir == "" {
		s.out = bufio.NewWriter(io.Discard)
		return s
	}
	if s.file, s.whole.Err = tools.CreateSaved(l.dir); s.whole.Err == nil {
		s.whole.Path = s.file.Name()
		s.out = bufio.NewWriterSize(s.file, 64<<10)
	} else {
		s.out = bufio.NewWriter(io.Discard)
	}
	return s
}

// add keeps a closed text until a call takes it.
func (l *longTexts) add(s *savedText) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut == nil {
		l.cut = map[string]tools.Whole{}
	}
	if len(l.old) == maxUnread {
		if path := l.cut[l.old[0]].Path; path != "" {
			_ = os.Remove(path)
		}
		delete(l.cut, l.old[0])
		l.old = l.old[1:]
	}
	l.cut[s.mark], l.old = s.whole, append(l.old, s.mark)
}

// take returns what was kept of a text without its mark, and where the whole text is; nil if the text is whole.
func (l *longTexts) take(text string) (string, *tools.Whole) {
	if l == nil {
		return text, nil
	}
	at := strings.LastIndexByte(text, 0)
	if at < 0 {
		return text, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	whole, ok := l.cut[text[at:]]
	if !ok {
		return text, nil
	}
	delete(l.cut, text[at:])
	for i, mark := range l.old {
		if mark == text[at:] {
			l.old = append(l.old[:i:i], l.old[i+1:]...)
			break
		}
	}
	return text[:at], &whole
}

// savedText writes a JSON string to a file, as the text that it means.
type savedText struct {
	whole  tools.Whole
	mark   string
	file   *os.File // nil: it could not be created
	out    *bufio.Writer
	escape []byte // an escape that is not complete yet, or a high surrogate that may have its low one
	ended  bool   // the last byte was a newline, or there was none
	bad    bool   // it is not a string of JSON
}

// write adds a piece of the string between its quotes. It may be cut anywhere.
func (s *savedText) write(p []byte) {
	for len(p) > 0 {
		if len(s.escape) == 0 {
			n := bytes.IndexByte(p, '\\')
			if n < 0 {
				n = len(p)
			}
			for _, b := range p[:n] {
				s.bad = s.bad || b < ' '
			}
			if s.put(p[:n]); n == len(p) {
				return
			}
			s.escape, p = append(s.escape, '\\'), p[n+1:]
			continue
		}
		if len(s.escape) == 6 && p[0] != '\\' || len(s.escape) == 7 && p[0] != 'u' { // the high surrogate has none
			s.alone()
			continue
		}
		s.escape, p = append(s.escape, p[0]), p[1:]
		s.decode()
	}
}

// decode writes what a complete escape of JSON means (RFC 8259, section 7). It is not complete after a high surrogate.
func (s *savedText) decode() {
	e := s.escape
	switch {
	case len(e) < 2 || e[1] == 'u' && len(e) != 6 && len(e) != 12:
		return
	case e[1] != 'u':
		i := strings.IndexByte(`"\/bfnrt`, e[1])
		if s.bad = s.bad || i < 0; i >= 0 {
			s.put([]byte{"\"\\/\b\f\n\r\t"[i]})
		}
		s.escape = e[:0]
		return
	}
	unit := func(p []byte) rune {
		n, err := strconv.ParseUint(string(p), 16, 16)
		s.bad = s.bad || err != nil
		return rune(n)
	}
	r := unit(e[2:6])
	switch {
	case len(e) == 12:
		if r = utf16.DecodeRune(r, unit(e[8:12])); r == utf8.RuneError { // the second escape is a character of its own
			s.alone()
			s.decode()
			return
		}
	case r >= 0xD800 && r < 0xDC00:
		return
	}
	s.put(utf8.AppendRune(nil, r)) // a low surrogate that stands alone becomes U+FFFD
	s.escape = e[:0]
}

// alone writes a high surrogate that has no low one, as U+FFFD.
func (s *savedText) alone() {
	s.put([]byte(string(utf8.RuneError)))
	s.escape = append(s.escape[:0], s.escape[6:]...)
}

// put writes decoded text and counts it.
func (s *savedText) put(p []byte) {
	if len(p) == 0 {
		return
	}
	s.whole.Bytes += len(p)
	s.whole.Lines += bytes.Count(p, []byte("\n"))
	s.ended = p[len(p)-1] == '\n'
	_, _ = s.out.Write(p) // the writer keeps its error, see close
}

// close completes the file. One that could not be written in full is removed.
func (s *savedText) close() {
	if len(s.escape) == 6 {
		s.alone()
	}
	s.bad = s.bad || len(s.escape) > 0
	if !s.ended && s.whole.Bytes > 0 {
		s.whole.Lines++
	}
	if s.file == nil {
		return
	}
	err := s.out.Flush()
	if closed := s.file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		s.drop()
		s.whole.Err = err
	}
}

// drop removes the file.
func (s *savedText) drop() {
	if s.file != nil {
		_ = s.file.Close()
		_ = os.Remove(s.whole.Path)
		s.whole.Path = ""
	}
}

// cutter copies messages and replaces each long text of a tool's result by its beginning and a mark: result.content[].text and
// result.content[].resource.text. It reads no other message in another way, and passes on what is not JSON.
type cutter struct {
	long *longTexts

	depth  int      // of open objects and arrays
	place  [5]frame // the outermost of them
	inKey  bool     // the next string in this object is a key
	quoted bool     // inside a string
	escape bool     // the last byte was a backslash inside a string
	isText bool     // this string is a text of a result
	key    []byte   // this string, if it is a key: as many bytes as the longest that counts
	text   []byte   // the beginning of this string, if isText
	saved  *savedText
	over   bool // a text was longer than maxSaved
}

// frame is an open object with the key of its present member, or an open array.
type frame struct {
	array bool
	key   string
}

// feed appends what becomes of a piece of a message, which may be cut anywhere, to dst.
func (c *cutter) feed(dst, p []byte) []byte {
	for len(p) > 0 {
		if c.quoted {
			n, closed := c.stringEnd(p)
			dst = c.inString(dst, p[:n])
			if p = p[n:]; closed {
				dst = append(c.closeString(dst), '"')
				p = p[1:]
			}
			continue
		}
		switch b := p[0]; b {
		case '"':
			c.quoted, c.key, c.isText = true, c.key[:0], !c.inKey && c.atText()
		case '{', '[':
			if c.depth < len(c.place) {
				c.place[c.depth] = frame{array: b == '['}
			}
			c.depth++
			c.inKey = b == '{'
		case '}', ']':
			c.depth = max(0, c.depth-1)
			c.inKey = false
		case ',':
			c.inKey = c.depth > 0 && c.depth <= len(c.place) && !c.place[c.depth-1].array
		case ':':
			c.inKey = false
		}
		dst, p = append(dst, p[0]), p[1:]
	}
	return dst
}

// stringEnd returns the length of the string's rest in p, and whether it ends there.
func (c *cutter) stringEnd(p []byte) (int, bool) {
	for i := 0; i < len(p); i++ {
		if c.escape {
			c.escape = false
			continue
		}
		n := bytes.IndexAny(p[i:], `"\`)
		if n < 0 {
			break
		}
		if i += n; p[i] == '"' {
			return i, true
		}
		c.escape = true
	}
	return len(p), false
}

// atText reports whether the value that begins is a text of a tool's result.
func (c *cutter) atText() bool {
	p := c.place
	return (c.depth == 4 && p[3].key == "text" || c.depth == 5 && p[3].key == "resource" && p[4].key == "text" && !p[4].array) &&
		p[0].key == "result" && p[1].key == "content" && p[2].array && !p[3].array
}

// inString takes a piece of a string.
func (c *cutter) inString(dst, p []byte) []byte {
	if !c.isText {
		if c.inKey {
			c.key = append(c.key, p[:min(len(p), len("resource")+1-min(len(c.key), len("resource")+1))]...)
		}
		return append(dst, p...)
	}
	n := min(len(p), cmp.Or(c.long.kept, keptText)-len(c.text))
	c.text = append(c.text, p[:n]...)
	if n == len(p) {
		return dst
	}
	if c.saved == nil {
		c.saved = c.long.begin()
		c.saved.write(c.text)
	}
	if c.saved.whole.Bytes > maxSaved {
		c.over = true
		return dst
	}
	c.saved.write(p[n:])
	return dst
}

// closeString ends the string: a key is noted, a text is passed on, or its beginning and a mark.
func (c *cutter) closeString(dst []byte) []byte {
	c.quoted = false
	if c.inKey && c.depth > 0 && c.depth <= len(c.place) {
		c.place[c.depth-1].key = string(c.key)
	}
	if c.saved == nil {
		return c.passText(dst)
	}
	dst = append(dst, c.text[:wholeCharacters(c.text)]...)
	if c.saved.close(); c.saved.bad {
		c.saved.drop()
		dst = append(dst, `\!`...) // not JSON either, so that the SDK refuses the message
	} else {
		dst = append(dst, `\u0000`...)
		dst = append(dst, c.saved.mark[1:]...)
		c.long.add(c.saved)
	}
	c.saved, c.text = nil, nil
	return dst
}

// passText appends a text that was held back.
func (c *cutter) passText(dst []byte) []byte {
	dst = append(dst, c.text...)
	if c.text = c.text[:0]; cap(c.text) > 64<<10 {
		c.text = nil
	}
	return dst
}

// end returns dst with what was held back at the end of a message, and is ready for the next one.
func (c *cutter) end(dst []byte) []byte {
	if c.saved != nil { // the string never ended: no SDK can read the message
		c.saved.drop()
	}
	dst = c.passText(dst)
	*c = cutter{long: c.long, key: c.key[:0], text: c.text}
	return dst
}

// wholeCharacters is the length of the beginning of a JSON string that ends with a whole escape and a whole character.
func wholeCharacters(p []byte) int {
	for i := 0; ; {
		n := bytes.IndexByte(p[i:], '\\')
		if n < 0 {
			end := len(p)
			for k := 1; k <= min(utf8.UTFMax, len(p)-i); k++ {
				if utf8.RuneStart(p[len(p)-k]) {
					if !utf8.FullRune(p[len(p)-k:]) {
						end = len(p) - k
					}
					break
				}
			}
			return end
		}
		i += n
		size := 2
		if i+1 < len(p) && p[i+1] == 'u' {
			size = 6
			if i+3 < len(p) && (p[i+2] == 'd' || p[i+2] == 'D') && strings.IndexByte("89abAB", p[i+3]) >= 0 { // a high surrogate
				if next := p[min(len(p), i+size):min(len(p), i+size+2)]; strings.HasPrefix(`\u`, string(next)) {
					size = 12
				}
			}
		}
		if i+size > len(p) {
			return i
		}
		i += size
	}
}

// cutBodies is a transport that cuts long texts out of a server's answers.
type cutBodies struct {
	long *longTexts
	next http.RoundTripper
}

// RoundTrip wraps the body of an answer that has messages: one in JSON, or a stream of events (MCP, "Streamable HTTP").
func (t cutBodies) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(r)
	if err != nil {
		return resp, err
	}
	switch kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind {
	case "application/json", "text/event-stream":
		resp.Body = &cutBody{ReadCloser: resp.Body, cut: cutter{long: t.long}, events: kind == "text/event-stream"}
		resp.ContentLength = -1
	}
	return resp, nil
}

// cutBody is the body of an answer without its long texts.
type cutBody struct {
	io.ReadCloser
	cut     cutter
	events  bool   // messages are the data of server-sent events
	inData  bool   // in the value of a field "data"
	field   []byte // the beginning of a line of events, as far as its colon
	message int    // bytes of the present message that were passed on
	piece   []byte // the buffer of what is read
	kept    []byte // the buffer of pending
	pending []byte // what was not read yet; a part of kept
	err     error  // after pending
}

// Read implements io.Reader.
func (b *cutBody) Read(p []byte) (int, error) {
	for len(b.pending) == 0 {
		if b.err != nil {
			return 0, b.err
		}
		if b.piece == nil {
			b.piece = make([]byte, 16<<10)
		}
		if cap(b.kept) > keptText {
			b.kept = nil
		}
		var n int
		n, b.err = b.ReadCloser.Read(b.piece)
		b.kept = b.feed(b.kept[:0], b.piece[:n])
		if b.err != nil {
			b.kept = b.cut.end(b.kept)
		}
		if b.message += len(b.kept); b.message > maxMessage || b.cut.over {
			b.err = errTooLong
			return 0, b.err
		}
		b.pending = b.kept
	}
	n := copy(p, b.pending)
	b.pending = b.pending[n:]
	return n, nil
}

// feed appends what becomes of a piece of the body to dst. Of server-sent events only the data is a message.
func (b *cutBody) feed(dst, p []byte) []byte {
	if !b.events {
		return b.cut.feed(dst, p)
	}
	for len(p) > 0 {
		line, _, more := bytes.Cut(p, []byte("\n"))
		p = p[len(line):]
		if !b.inData {
			if n := bytes.IndexByte(line, ':'); n >= 0 && string(b.field)+string(line[:n]) == "data" {
				b.inData = true
				dst, line = append(dst, line[:n+1]...), line[n+1:]
			}
		}
		if b.inData {
			dst = b.cut.feed(dst, line)
		} else {
			b.field = append(b.field, line[:min(len(line), len("data:")-min(len(b.field), len("data:")))]...)
			dst = append(dst, line...)
		}
		if !more {
			return dst
		}
		if p = p[1:]; !b.inData && len(bytes.TrimRight(b.field, "\r")) == 0 { // an empty line ends an event
			dst = b.cut.end(dst)
			b.message = -len(dst) - 1
		}
		dst = append(dst, '\n')
		b.inData, b.field = false, b.field[:0]
	}
	return dst
}
