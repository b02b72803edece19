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

// GrepQuery asks for lines. Show is asked before a path can be in a result, so that a denied file is not even counted.
type GrepQuery struct {
	Root    string            // absolute; a folder or a file
	Pattern string            // regular expression, one line at a time
	Include string            // glob for names, relative to Root; empty is all
	Limit   int               // lines returned; 0: DefaultLimit
	Show    func(string) bool // nil shows all; called at once from several goroutines
	Buffers []Buffer          // unsaved text, searched instead of what is on disk
}

// MaxText keeps one line of minified code from filling the model's context.
const (
	DefaultLimit = 100  // lines or names; OpenCode's figure
	MaxText      = 2000 // characters of one line that are shown
)

// Match is one matching line. Text is what the line holds, control characters included: whoever shows it makes it safe.
type Match struct {
	Path string // absolute
	Line int    // counts from 1
	Text string // without its end; cut to MaxText characters around the match
}

// Lines is what a grep found, newest file first, a file's lines in order. An empty result with Partial or Unread set is
// no proof that there is no match.
type Lines struct {
	Matches []Match
	More    bool // there are more than Limit
	Partial bool // the time was up before all files were searched; Matches is what was found until then
	Unread  Unread
	ReadAs  string // the pattern as it was read to find these, where as written it found nothing; else empty
}

// engine finds text. Both engines answer alike, and the tests compare them: which one runs depends on the machine, and a
// model must not see the difference. Errors: an errEngine lets the other engine try, a *PatternError is the model's to
// mend, the context's ends the search.
type engine interface {
	// files calls emit, possibly from several goroutines, for every file with a match.
	files(ctx context.Context, j *grepJob, emit func(path string)) error
	// lines calls each for the matching lines of the given files, in order, until it returns false.
	lines(ctx context.Context, j *grepJob, paths []string, each func(path string, h hit) bool) error
	// text is lines for an unsaved buffer.
	text(ctx context.Context, j *grepJob, text string, each func(hit) bool) error
}

// grepJob is a query made ready. It is read-only while an engine runs. unread is replaced between the phases of a search,
// never while an engine runs.
type grepJob struct {
	root    string
	pattern string   // normalized
	include *Pattern // nil: all names
	limit   int
	bare    bool              // the ignore files above root do not count
	scope   *scope            // what the ignore files above root say
	prune   []string          // absolute folders that are not entered
	show    *matcher          // to find the match in a long line; nil when Go cannot read the pattern
	unread  func(text string) // may be called from several goroutines at once
}

// errEngine wraps a failure that the other engine may not have: a ripgrep that is missing or broken. Grep then runs the
// Go engine.
type errEngine struct{ error }

// Grep finds lines. A pattern that finds nothing as it is written is read as GNU grep reads it, and a glob without the
// white space around it: an answer of nothing would be believed. ReadAs tells the caller that this happened, so that the
// result can say so. The second search has a timeout of its own.
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
	// An error of the second reading is about a pattern that no one has written, so the first, empty answer stays.
	if err != nil || len(second.Matches) == 0 {
		return out, nil
	}
	second.ReadAs = again.Pattern
	return second, nil
}

// grep is one search for the pattern as it is given.
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
	if insideGit(q.Root) {
		return Lines{}, nil
	}

	// Each engine has the whole time limit, because a ripgrep that is missing fails at once.
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
	}
	if rg := s.find(); rg != "" {
		out, err := run(ripgrep{rg})
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

// reader is the engine that reads lines out of files that match: the Go engine wherever it can read the pattern, since
// it opens what was judged, whatever engine found the files.
func (j *grepJob) reader(e engine) engine {
	if j.show != nil {
		return goEngine{j.show}
	}
	return e
}

// take collects lines up to the limit and notices whether there is one more. One match over the limit is what sets More,
// which is why engines are asked for limit+1.
func (out *Lines) take(j *grepJob, path string, h hit) bool {
	if len(out.Matches) == j.limit {
		out.More = true
		return false
	}
	out.Matches = append(out.Matches, Match{Path: path, Line: h.line, Text: j.cut(h)})
	return true
}

// grepFile searches one file, which was named, so ignore files do not count. A buffer wins over the disk. The errors are
// for a model that named the file: a search that silently skips it would be taken for "no match".
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

// grepFolder first finds which files match at all, then reads lines from the newest of them until there are
// enough: a common word in a large project costs little more than finding the files. A file with unsaved text is taken
// out of the first phase, and its buffer searched instead: what is on the disk is not what the person sees.
func grepFolder(ctx context.Context, e engine, j *grepJob, q GrepQuery, out *Lines) error {
	dirty := map[string]string{}
	for _, b := range q.Buffers {
		if paths.Within(j.root, b.Path) && j.inScope(b.Path) && (q.Show == nil || q.Show(b.Path)) {
			dirty[b.Path] = b.Text
		}
	}
	// One goroutine collects, so that engines report from any of theirs without a lock. It ends when the channel is
	// closed, before out is read.
	unread := make(chan string, 64)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for text := range unread {
			out.Unread.add(text)
		}
	}()
	j.unread = func(text string) { unread <- text }

	// More files than that can never be needed.
	top := newest{n: j.limit + 1, show: q.Show} // every file holds a line at least
	if _, ok := e.(ripgrep); ok {
		// Ripgrep does not know all that Git has in ignore files ([[:alpha:]]); only files that would be shown are looked at again.
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
	j.unread = func(string) {} // told already
	late := errors.Is(err, context.DeadlineExceeded)
	if err != nil && !late {
		return err
	}
	// Two seconds, since the person has waited the whole limit already.
	if late { // show what there is: a little time for that
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
			top.put(aged{path, time.Now()}) // what is being written is newest
		}
	}
	if err := out.collect(ctx, e, j, top.files, found); err != nil {
		return err
	}
	if late {
		return context.DeadlineExceeded
	}
	return nil
}

// collect reads lines of the files in order; those of buffers are there already. Runs of files from the disk go to the
// engine in one piece.
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

// wants applies the include to an absolute path below root. path must lie below root, since its beginning is cut off
// without a look.
func (j *grepJob) wants(path string) bool {
	return j.include == nil || j.include.Wants(filepath.ToSlash(path[len(withSeparator(j.root)):]))
}

// inScope reports whether a walk from root would come across the path. A buffer must be judged like its file, or unsaved
// text of an ignored file would be found while saved text is not. It reads the ignore files on the way, once for each
// buffer.
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

// isBinary looks for a NUL in the beginning of a file that is no UTF-16. With --text ripgrep would print the bytes of a
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
