package search

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// goEngine searches without any other program. It must find what ripgrep finds with the flags in ripgrep.go; the tests
// run both on the same trees.
type goEngine struct{ m *matcher }

// files walks and scans at once; a file is left after its first match. Each worker has a scanner of its own, found by its
// number.
func (e goEngine) files(ctx context.Context, j *grepJob, emit func(string)) error {
	scanners := make([]scanner, workers())
	w := walk{
		root: j.root, prune: j.prune, include: j.include, scope: j.scope,
		visit: func(n int, dir string, names []string) {
			// On Unix, opening relative to the folder keeps a link that takes the folder's place meanwhile from leading
			// out of the project.
			d, err := openFolder(dir)
			if err != nil {
				return // gone since it was read
			}
			defer d.Close()
			for _, name := range names {
				if ctx.Err() != nil {
					return
				}
				f, err := d.open(name)
				if err == nil {
					err = scanners[n].scan(ctx, f, e.m, false, func(hit) bool { emit(filepath.Join(dir, name)); return false })
					f.Close()
				}
				if err != nil && ctx.Err() == nil && !errors.Is(err, fs.ErrNotExist) {
					j.unread(describe(filepath.Join(dir, name), err))
				}
			}
		},
		failed: func(path string, err error) { j.unread(describe(path, err)) },
	}
	return w.run(ctx)
}

// lines searches the files one after another, in the given order, and stops when each
// returns false. Unlike files it is sequential: the order of the paths is that of the result.
func (e goEngine) lines(ctx context.Context, j *grepJob, paths []string, each func(string, hit) bool) error {
	var s scanner
	for _, path := range paths {
		f, err := open(path)
		if err != nil {
			j.unread(describe(path, err))
			continue
		}
		more := true
		n := 0
		err = s.scan(ctx, f, e.m, true, func(h hit) bool {
			n++
			more = each(path, h)
			return more && n <= j.limit
		})
		f.Close()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			j.unread(describe(path, err))
		}
		if !more {
			return nil
		}
	}
	return nil
}

// text searches a text that is in memory: an editor's unsaved buffer.
func (e goEngine) text(ctx context.Context, _ *grepJob, text string, each func(hit) bool) error {
	var s scanner
	return s.scan(ctx, io.Reader(strings.NewReader(text)), e.m, true, each)
}

// The sizes in which a file is read.
const (
	firstRead = 64 << 10 // bytes; a NUL in them makes a file binary, as in ripgrep
	// maxLine is the longest line searched as a whole, in bytes. What is longer is searched in pieces of this
	// size, so that a file of one line cannot take the memory of the whole; a match across two pieces is missed.
	maxLine = 4 << 20
)

// scanner reads files piece by piece. One per goroutine: it keeps its buffer.
type scanner struct {
	buf []byte
	cut bool // a line of the last text was searched in pieces
}

// hit is a matching line without its end. text is part of a buffer that is reused, so it is valid only until the function that it was
// given to returns. at is -1 if the engine does not report it, as with ripgrep.
type hit struct {
	line int // counts from 1; 0 when lines are not counted
	text []byte
	at   int // offset of the match in text, in bytes
}

// scan calls each for every line of r that matches, until it returns false. Binary text ends the scan; what was
// found before stands.
func (s *scanner) scan(ctx context.Context, r io.Reader, m *matcher, count bool, each func(hit) bool) error {
	if s.buf == nil {
		s.buf = make([]byte, firstRead)
	}
	s.cut = false
	n := 0 // bytes in buf, beginning at a line's start
	line, last := 1, 0
	once := func(h hit) bool { // a line searched in pieces is one line
		if h.line != 0 && h.line == last {
			return true
		}
		last = h.line
		return each(h)
	}
	for first := true; ctx.Err() == nil; {
		// The buffer doubles only while one line does not fit, up to maxLine.
		if n == len(s.buf) {
			s.buf = append(s.buf, make([]byte, len(s.buf))...)
		}
		got, err := r.Read(s.buf[n:])
		if first && got > 0 {
			first = false
			if r2 := decoded(s.buf[:got], r); r2 != nil {
				r, n = r2, 0
				continue
			}
			// A UTF-8 byte order mark is not part of the first line: ^ must match after it.
			if rest, ok := bytes.CutPrefix(s.buf[:got], []byte("\xef\xbb\xbf")); ok {
				got = copy(s.buf, rest)
			}
		}
		// A NUL means binary text, also late in a file. Matches found before it have been reported and stand.
		if bytes.IndexByte(s.buf[n:n+got], 0) >= 0 {
			return nil
		}
		// No line ends before fresh: otherwise that part would have been searched and dropped.
		fresh := n
		n += got
		if err != nil && err != io.EOF {
			return err
		}
		end := n
		if err == nil {
			// Only whole lines are searched; the rest waits for the next read, unless the line has reached maxLine.
			if end = fresh + bytes.LastIndexByte(s.buf[fresh:n], '\n') + 1; end == fresh {
				if n < maxLine {
					continue
				}
				s.cut = true
				end = n
			}
		}
		if !search(s.buf[:end], m, count, &line, once) || err == io.EOF {
			return nil
		}
		n = copy(s.buf, s.buf[end:n])
		if len(s.buf) > 1<<20 && n < firstRead { // frees the memory of a long line
			s.buf = append(make([]byte, 0, firstRead), s.buf[:n]...)[:firstRead]
		}
	}
	return ctx.Err()
}

// search calls each for the matching lines of data, which has whole lines, and advances line, the number of data's first line, past them. It
// returns false if each did. Line ends are counted between matches only, which is much cheaper than splitting lines. A line with several
// matches is one hit.
func search(data []byte, m *matcher, count bool, line *int, each func(hit) bool) bool {
	counted := 0
	for from := 0; from < len(data); {
		start, stop := m.find(data, from)
		if start < 0 {
			break
		}
		begin := bytes.LastIndexByte(data[:start], '\n') + 1
		end := len(data)
		if i := bytes.IndexByte(data[stop:], '\n'); i >= 0 {
			end = stop + i
		}
		h := hit{text: data[begin:end], at: start - begin}
		if count {
			*line += bytes.Count(data[counted:begin], []byte("\n"))
			counted = begin
			h.line = *line
		}
		if !each(h) {
			return false
		}
		from = end + 1
	}
	if count {
		*line += bytes.Count(data[counted:], []byte("\n"))
	}
	return true
}

// decoded returns a reader that converts to UTF-8 if start begins with a UTF-16 byte order mark; it reads start again, then rest. nil
// means that the text is used as it is.
func decoded(start []byte, rest io.Reader) io.Reader {
	little := bytes.HasPrefix(start, []byte{0xff, 0xfe})
	if !little && !bytes.HasPrefix(start, []byte{0xfe, 0xff}) {
		return nil
	}
	return &utf16Reader{little: little, in: io.MultiReader(bytes.NewReader(bytes.Clone(start[2:])), rest)}
}

// utf16Reader converts UTF-16 to UTF-8; an unpaired surrogate becomes U+FFFD. raw is larger than one character, so every fill makes
// progress.
type utf16Reader struct {
	little bool
	in     io.Reader
	raw    [8 << 10]byte
	n      int    // bytes in raw
	out    []byte // decoded, not yet read
	err    error
}

// Read implements io.Reader.
func (u *utf16Reader) Read(p []byte) (int, error) {
	for len(u.out) == 0 {
		if u.err != nil {
			return 0, u.err
		}
		u.fill()
	}
	n := copy(p, u.out)
	u.out = u.out[n:]
	return n, nil
}

// fill reads and decodes the next piece. An incomplete character at its end stays in raw for the next call. An error of the source is kept
// until all decoded text has been read.
func (u *utf16Reader) fill() {
	got, err := u.in.Read(u.raw[u.n:])
	u.n += got
	u.err = err
	unit := func(i int) rune {
		if u.little {
			return rune(u.raw[i]) | rune(u.raw[i+1])<<8
		}
		return rune(u.raw[i])<<8 | rune(u.raw[i+1])
	}
	var out []byte
	i := 0
	for i+1 < u.n {
		r := unit(i)
		if utf16.IsSurrogate(r) {
			// At the end of the file no other half comes, and the lone one becomes U+FFFD.
			if i+3 >= u.n && u.err == nil {
				break // its other half is still to come
			}
			if i+3 < u.n {
				if both := utf16.DecodeRune(r, unit(i+2)); both != utf8.RuneError {
					r = both
					i += 2
				}
			}
		}
		i += 2
		out = utf8.AppendRune(out, r)
	}
	u.n = copy(u.raw[:], u.raw[i:u.n])
	u.out = out
}
