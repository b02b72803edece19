package search

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/pillion-dev/pillion/tools/paths"
)

// GrepQuery asks for lines. Show is called before a path can be in a result, so that a file which the rules deny is not even counted.
type GrepQuery struct {
	Root    string            // absolute; a folder or a file
	Pattern string            // regular expression, one line at a time
	Include string            // glob for names, relative to Root; empty is all
	Limit   int               // lines returned; 0: DefaultLimit
	Show    func(string) bool // reports whether a path may be shown; nil: all; called from several goroutines concurrently
	Buffers []Buffer          // unsaved text, searched instead of the files on the disk
}

// The limits of a result. MaxText keeps one line of minified code from filling the model's context.
const (
	DefaultLimit = 100  // lines or names; OpenCode's figure
	MaxText      = 2000 // characters of one line that are shown
)

// Match is one matching line. Text may have control characters; whoever shows it on a screen must make it safe.
type Match struct {
	Path string // absolute
	Line int    // counts from 1
	Text string // without its end; cut to MaxText characters around the match
}

// Lines is the result of a grep: the newest file first, and a file's lines in order. An empty result with Partial or Unread set does not
// prove that there is no match.
type Lines struct {
	Matches []Match
	More    bool // there are more than Limit
	Partial bool // the time limit ended the search; Matches is what was found until then
	Unread  Unread
	ReadAs  string // the other reading of the pattern that found these, as the pattern itself found nothing; else empty
}

// engine finds text. Both engines give equal results, which the tests compare: which one runs depends on the machine, and a model must
// not notice. After an errEngine the other engine is tried; a *PatternError is for the model to correct; the context's error ends the
// search.
type engine interface {
	// files calls emit, possibly from several goroutines, for every file with a match.
	files(ctx context.Context, j *grepJob, emit func(path string)) error
	// lines calls each for the matching lines of the given files, in order, until it returns false.
	lines(ctx context.Context, j *grepJob, paths []string, each func(path string, h hit) bool) error
	// text is lines for an unsaved buffer.
	text(ctx context.Context, j *grepJob, text string, each func(hit) bool) error
}

// grepJob is a prepared query. It is read-only while an engine runs; unread is replaced between the phases of a search only.
type grepJob struct {
	root    string
	pattern string   // normalized
	include *Pattern // nil: all names
	limit   int
	bare    bool              // the search begins in an ignored folder, so the ignore files above root do not count
	scope   *scope            // the rules of the ignore files above root
	prune   []string          // absolute folders that are not entered
	show    *matcher          // the pattern for the Go engine; nil if Go cannot compile it
	unread  func(text string) // may be called from several goroutines at once
	full    func() bool       // there are as many files as the result can have; older ones cannot be in it
}

// errEngine wraps a failure that the other engine may not have: a ripgrep that is missing or broken. Grep then runs the
// Go engine.
type errEngine struct{ error }

// Grep finds lines. If it finds none, it searches once more with the pattern as GNU grep reads it, and without white space around the glob:
// a model believes an empty result and does not check its spelling. ReadAs has the second reading, so that the result can tell it. The
// second search has a time limit of its own.
func (s *Searcher) Grep(ctx context.Context, q GrepQuery) (Lines, error) {
	out, err := s.grep(ctx, q)
	if err != nil || len(out.Matches) > 0 || out.Partial {
		return out, err
	}
	again := q
	again.Include = strings.TrimSpace(q.Include)
	if gnu := gnuReading(q.Pattern); normalize(gnu) != normalize(q.Pattern) {
		again.Pattern = gnu
	}
	if again.Pattern == q.Pattern && again.Include == q.Include {
		return out, nil
	}
	second, err := s.grep(ctx, again)
	// An error here would be about a pattern that the model has not written, so the first, empty result stands.
	if err != nil || len(second.Matches) == 0 {
		return out, nil
	}
	second.ReadAs = again.Pattern
	return second, nil
}

// grep is one search for the pattern as it is written.
func (s *Searcher) grep(ctx context.Context, q GrepQuery) (Lines, error) {
	if q.Pattern == "" {
		return Lines{}, &PatternError{"pattern is required"}
	}
	if q.Limit <= 0 {
		q.Limit = DefaultLimit
	}
	j := &grepJob{root: q.Root, pattern: normalize(q.Pattern), limit: q.Limit}
	if q.Include != "" {
		var err error
		if j.include, err = ParsePattern(q.Include); err != nil {
			return Lines{}, &PatternError{err.Error()}
		}
	}
	// A pattern that Go cannot read may still be one for ripgrep, so the error waits until the Go engine is needed.
	m, invalid := compile(j.pattern)
	j.show = m
	info, err := os.Stat(q.Root)
	isBuffer := slices.ContainsFunc(q.Buffers, func(b Buffer) bool { return b.Path == q.Root })
	if err != nil && !isBuffer {
		return Lines{}, notFound(q.Root, err)
	}
	// Git's own folder is never searched, even when the query names it.
	if insideGit(q.Root) {
		return Lines{}, nil
	}

	// Each engine gets the whole time limit: a ripgrep that does not work usually fails at once.
	run := func(e engine) (Lines, error) {
		limited, cancel := context.WithTimeout(ctx, s.timeout())
		defer cancel()
		var out Lines
		var err error
		if isBuffer || !info.IsDir() {
			err = grepFile(limited, e, j, q, info, &out)
		} else {
			err = grepFolder(limited, e, j, q, &out)
		}
		if ctx.Err() != nil {
			return Lines{}, ctx.Err()
		}
		if errors.Is(err, context.DeadlineExceeded) {
			out.Partial, err = true, nil
		}
		return out, err
	}
	if err == nil && info.IsDir() {
		j.scope, j.bare = start(q.Root)
		j.prune = s.private(q.Root)
		x := s.indexOf(q.Root)
		defer x.timed()()
		if e := x.indexed(j); e != nil {
			out, err := run(e)
			var other errEngine
			if !errors.As(err, &other) {
				return out, err
			}
		}
	}
	if rg := s.find(); rg != "" {
		out, err := run(ripgrep{rg, s.o.Reason})
		var broken errEngine
		if !errors.As(err, &broken) {
			return out, err
		}
	}
	if invalid != nil {
		return Lines{}, invalid
	}
	return run(goEngine{m})
}

// reader is the engine that reads the lines of matching files, whichever engine found the files. It is the Go engine if that can compile
// the pattern: it opens the very file that the rules were asked about, without following a link that took its place.
func (j *grepJob) reader(e engine) engine {
	if j.show != nil {
		return goEngine{j.show}
	}
	return e
}

// take adds a match, up to the limit. One match more sets More and returns false, which ends the search; without looking for it, a result
// that is exactly full could not tell whether it is complete.
func (out *Lines) take(j *grepJob, path string, h hit) bool {
	if len(out.Matches) == j.limit {
		out.More = true
		return false
	}
	out.Matches = append(out.Matches, Match{Path: path, Line: h.line, Text: j.cut(h)})
	return true
}

// grepFile searches the one file that the query names; ignore files do not count, and a buffer replaces the file on the disk. A file that
// cannot be searched is an error: if it were skipped silently, the model would believe that it has no match.
func grepFile(ctx context.Context, e engine, j *grepJob, q GrepQuery, info os.FileInfo, out *Lines) error {
	j.root = filepath.Dir(q.Root)
	if q.Show != nil && !q.Show(q.Root) {
		return nil
	}
	j.unread = out.Unread.add
	for _, b := range q.Buffers {
		if b.Path == q.Root {
			return e.text(ctx, j, b.Text, func(h hit) bool { return out.take(j, b.Path, h) })
		}
	}
	if !info.Mode().IsRegular() {
		return &PathError{Message: "not a file that can be searched: " + q.Root}
	}
	if binary, err := isBinary(q.Root); err != nil {
		return err
	} else if binary {
		return &PathError{Message: "binary file, not searched: " + q.Root}
	}
	return j.reader(e).lines(ctx, j, []string{q.Root}, func(path string, h hit) bool { return out.take(j, path, h) })
}

// grepFolder first finds the files that match, then reads lines from the newest of them up to the limit, so that a common word in a large
// project costs little more than finding the files. For a file with unsaved text the buffer is searched instead, as the person does not
// see what is on the disk.
func grepFolder(ctx context.Context, e engine, j *grepJob, q GrepQuery, out *Lines) error {
	dirty := map[string]string{}
	for _, b := range q.Buffers {
		if paths.Within(j.root, b.Path) && j.inScope(b.Path) && (q.Show == nil || q.Show(b.Path)) {
			dirty[b.Path] = b.Text
		}
	}
	// Engines report from several goroutines; one collects, so out needs no lock. It ends when the channel is closed, before out is read.
	unread := make(chan string, 64)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for text := range unread {
			out.Unread.add(text)
		}
	}()
	j.unread = func(text string) { unread <- text }

	// More files are never needed, as each has at least one line.
	top := newest{n: j.limit + 1, show: q.Show}
	j.full = func() bool { return top.last.Load() != nil }
	if _, ok := e.(ripgrep); ok {
		// Ripgrep does not know all syntax of Git's ignore files, such as [[:alpha:]], so files that would be shown are checked again.
		var mu sync.Mutex
		hidden := j.scope.below(j.root)
		top.show = func(path string) bool {
			mu.Lock()
			ignored := hidden(path, false)
			mu.Unlock()
			return !ignored && (q.Show == nil || q.Show(path))
		}
	}
	err := e.files(ctx, j, func(path string) {
		if _, ok := dirty[path]; ok || !j.wants(path) {
			return
		}
		top.add(path)
	})
	close(unread)
	<-done
	j.unread = func(string) {} // the first phase has reported these files
	late := errors.Is(err, context.DeadlineExceeded)
	if err != nil && !late {
		return err
	}
	// After the time limit, two more seconds to read the lines of the files found so far.
	if late {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
	}
	found := map[string][]Match{}
	for path, text := range dirty {
		part := Lines{}
		if err := e.text(ctx, j, text, func(h hit) bool {
			part.take(j, path, h)
			return len(part.Matches) <= j.limit && !part.More
		}); err != nil {
			return err
		}
		if len(part.Matches) > 0 {
			found[path] = part.Matches
			out.More = out.More || part.More
			top.put(aged{path, time.Now()}) // an unsaved buffer counts as changed at this moment
		}
	}
	if err := out.collect(ctx, e, j, top.files, found); err != nil {
		return err
	}
	// grep sets Partial for this error and keeps what is in out.
	if late {
		return context.DeadlineExceeded
	}
	return nil
}

// collect reads the lines of the files in order; found has those of buffers. Consecutive files on the disk are given to the engine in one
// call.
func (out *Lines) collect(ctx context.Context, e engine, j *grepJob, files []aged, found map[string][]Match) error {
	for len(files) > 0 {
		if ms, ok := found[files[0].path]; ok {
			for _, m := range ms {
				if len(out.Matches) == j.limit {
					out.More = true
					return nil
				}
				out.Matches = append(out.Matches, m)
			}
			files = files[1:]
			continue
		}
		n := 0
		var paths []string
		for n < len(files) && found[files[n].path] == nil {
			paths = append(paths, files[n].path)
			n++
		}
		full := false
		if err := j.reader(e).lines(ctx, j, paths, func(path string, h hit) bool {
			full = !out.take(j, path, h)
			return !full
		}); err != nil || full {
			return err
		}
		files = files[n:]
	}
	return nil
}

// wants applies the include glob to an absolute path. The path must be below root: its beginning is cut off unchecked.
func (j *grepJob) wants(path string) bool {
	return j.include == nil || j.include.Wants(filepath.ToSlash(path[len(withSeparator(j.root)):]))
}

// inScope reports whether a walk from root would visit the path. A buffer must be treated like its file, or the unsaved text of an ignored
// file would be found and its saved text not. It reads the ignore files from root down to the path for each buffer.
func (j *grepJob) inScope(path string) bool {
	if !j.wants(path) || insideGit(path) {
		return false
	}
	rel, err := filepath.Rel(j.root, path)
	if err != nil {
		return false
	}
	sc, dir := j.scope, j.root
	sc = sc.enter(dir, specialNames(dir))
	for i := 0; i < len(rel); i++ {
		if rel[i] != filepath.Separator {
			continue
		}
		dir = filepath.Join(j.root, rel[:i])
		if sc.ignored(dir, true) || slices.Contains(j.prune, dir) {
			return false
		}
		sc = sc.enter(dir, specialNames(dir))
	}
	return !sc.ignored(path, false)
}

// isBinary looks for a NUL in the beginning of a file that is not UTF-16. With --text ripgrep would print the bytes of a
// binary file that is named.
func isBinary(path string) (bool, error) {
	f, err := open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	start := make([]byte, firstRead)
	n, err := f.Read(start)
	if n == 0 && err != nil && err.Error() != "EOF" {
		return false, err
	}
	return decoded(start[:n], nil) == nil && slices.Contains(start[:n], 0), nil
}

// cut shortens a long line to MaxText characters that hold the match. Offsets are bytes, the limit counts characters; a
// cut never falls inside a character. "..." marks what was left out.
func (j *grepJob) cut(h hit) string {
	text := h.text
	if n := len(text); n > 0 && text[n-1] == '\r' {
		text = text[:n-1]
	}
	if len(text) <= MaxText || utf8.RuneCount(text[:min(len(text), 4*MaxText+1)]) <= MaxText {
		return string(text)
	}
	at := h.at
	if at < 0 { // ripgrep did not say where
		at = 0
		if j.show != nil {
			at, _ = j.show.find(text, 0)
		}
	}
	from := 0
	if at > MaxText/2 && utf8.RuneCount(text[:at]) >= MaxText {
		from = max(0, at-MaxText/4)
		for from > 0 && !utf8.RuneStart(text[from]) {
			from--
		}
	}
	end := from
	for range MaxText {
		if end >= len(text) {
			break
		}
		_, n := utf8.DecodeRune(text[end:])
		end += n
	}
	out := string(text[from:end])
	if from > 0 {
		out = "..." + out
	}
	if end < len(text) {
		out += "..."
	}
	return out
}
