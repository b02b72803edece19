package search

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/pillion-dev/pillion/tools/guard"
	"github.com/pillion-dev/pillion/tools/search/trigram"
)

// projectIndex is the index of one project. Its goroutine, which the first slow search starts, makes the list, has segments built and loads
// them; searches use what is there.
type projectIndex struct {
	root  string
	dir   string // of this project's segments
	o     *IndexOptions
	prune []string

	running atomic.Int32 // searches
	ended   atomic.Int64 // when the last one ended, in nanoseconds since 1970
	answers atomic.Int64 // searches that the index has answered

	mu       sync.Mutex
	tree     *indexTree          // guarded by mu; nil: there is no list
	segments [2]*trigram.Segment // guarded by mu; the base, and what has changed since
	why      error               // guarded by mu; why there is no list
	stop     context.CancelFunc  // guarded by mu; nil: the goroutine has not been started
	done     chan struct{}
	closed   bool // guarded by mu
}

// The files of a project's index.
const (
	baseName  = "base.idx"
	deltaName = "delta.idx"
	lockName  = "lock"
)

// newProjectIndex returns an index that does nothing yet.
func newProjectIndex(root string, o *IndexOptions, prune []string) *projectIndex {
	return &projectIndex{root: root, dir: indexDir(o.Dir, root), o: o, prune: prune, done: make(chan struct{})}
}

// indexDir is the folder of a project's segments.
func indexDir(dir, root string) string {
	sum := sha256.Sum256([]byte(root))
	return filepath.Join(dir, hex.EncodeToString(sum[:12]))
}

// begin notes that a search runs.
func (x *projectIndex) begin() { x.running.Add(1) }

// end notes that it has ended, and starts the work if it was slow, or if an earlier process has found the project worth an index.
func (x *projectIndex) end(took time.Duration) {
	x.ended.Store(time.Now().UnixNano())
	x.running.Add(-1)
	x.mu.Lock()
	started := x.stop != nil || x.closed
	x.mu.Unlock()
	if started {
		return
	}
	if took < slowSearch {
		if _, err := os.Lstat(filepath.Join(x.dir, baseName)); err != nil {
			return
		}
	}
	x.start()
}

// start starts the goroutine once.
func (x *projectIndex) start() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.stop != nil || x.closed {
		return
	}
	var ctx context.Context
	ctx, x.stop = context.WithCancel(context.Background())
	go x.run(ctx)
}

// close ends the goroutine and waits for it.
func (x *projectIndex) close() {
	x.mu.Lock()
	x.closed = true
	stop := x.stop
	if x.tree != nil {
		x.tree.close() // wakes the goroutine
	}
	x.mu.Unlock()
	if stop != nil {
		stop()
		<-x.done
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.discard(nil)
}

// discard closes the list and the segments. Called with mu.
func (x *projectIndex) discard(why error) {
	if x.tree != nil {
		x.tree.close()
	}
	for i, s := range x.segments {
		if s != nil {
			s.Close()
		}
		x.segments[i] = nil
	}
	x.tree, x.why = nil, why
}

// run makes the list, follows it until it is lost, and makes it anew.
func (x *projectIndex) run(ctx context.Context) {
	defer close(x.done)
	rest := firstRest
	for ctx.Err() == nil {
		x.idle(ctx, idleTime)
		began := time.Now()
		err := x.list(ctx, minIndexFiles)
		if err == nil {
			err = x.follow(ctx)
		}
		x.mu.Lock()
		x.discard(err)
		x.mu.Unlock()
		switch {
		case errors.Is(err, errIndexSystem), errors.Is(err, errIndexMounts), errors.Is(err, errIndexWatches), errors.Is(err, errIndexLarge), errors.Is(err, errIndexSmall):
			rest = restTime
		case time.Since(began) > time.Minute:
			rest = firstRest // it was of use
		default:
			rest = min(2*rest, restTime)
		}
		wait(ctx, rest)
	}
}

// wait returns after a time, or when ctx ends.
func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// idle returns when no search has run for some time, or ctx ends.
func (x *projectIndex) idle(ctx context.Context, quiet time.Duration) {
	for ctx.Err() == nil {
		since := time.Since(time.Unix(0, x.ended.Load()))
		if x.running.Load() == 0 && since >= quiet {
			return
		}
		wait(ctx, max(quiet-since, 10*time.Millisecond))
	}
}

// pause gives the processor to others after a piece of work, and waits for searches that run.
func (x *projectIndex) pause(ctx context.Context) func() {
	last := time.Now()
	return func() {
		worked := time.Since(last)
		if worked < 2*time.Millisecond {
			return
		}
		wait(ctx, worked) // at most half of one processor
		x.idle(ctx, 0)
		last = time.Now()
	}
}

// list makes the list and loads the segments that there are. A project of fewer files has no index.
func (x *projectIndex) list(ctx context.Context, least int) error {
	// Rule files that were changed just now could change once more without another time.
	wait(ctx, clockResolution)
	began := time.Now()
	t, err := openTree(ctx, x.root, x.prune, maxIndexFiles, x.pause(ctx))
	if err != nil {
		return err
	}
	if t.files < least {
		err = errIndexSmall
	} else if !t.settled(began) {
		err = errIndexRules
	}
	if err != nil {
		t.close()
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		t.close()
		return context.Canceled
	}
	x.tree, x.why = t, nil
	if err := t.catchUp(); err != nil {
		return err
	}
	x.load()
	return nil
}

// load opens the segments on disk in place of those that are open. A damaged one is removed. Called with mu.
func (x *projectIndex) load() {
	for i, name := range []string{baseName, deltaName} {
		if x.segments[i] != nil {
			x.segments[i].Close()
			x.segments[i] = nil
		}
		path := filepath.Join(x.dir, name)
		s, err := trigram.Open(path)
		if err == nil {
			var root string
			if root, err = s.Root(); err == nil && root != x.root {
				err = trigram.ErrDamaged
			}
			if err == nil {
				err = x.tree.assign(i, s)
			}
			if err != nil {
				s.Close()
			}
		}
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				_ = os.Remove(path)
			}
			_ = x.tree.assign(i, nil)
			continue
		}
		x.segments[i] = s
	}
	now := time.Now()
	_ = os.Chtimes(x.dir, now, now) // prune removes what nobody has used
	if x.o.Ready != nil && x.segments[0] != nil {
		go x.o.Ready(x.root)
	}
}

// follow keeps the list up to date and has segments built, until the list is lost.
func (x *projectIndex) follow(ctx context.Context) error {
	left := 0                     // files that the last build has left out: they cannot be read, are withheld, or have just changed
	seen, since := 0, time.Time{} // how many files are in no segment, and since when
	failures := 0
	var next time.Time // of the next build
	for ctx.Err() == nil {
		x.mu.Lock()
		t := x.tree
		err := t.catchUp()
		base, unindexed, files, delta := x.segments[0] != nil, t.unindexed, t.files, t.inDelta
		x.mu.Unlock()
		if err != nil {
			return err
		}
		now := time.Now()
		if unindexed != seen {
			seen, since = unindexed, now
		}
		due := now.Add(5 * time.Second) // an event may be missed by the wait, never by catchUp
		if !base || unindexed > left+renewAfter {
			// Not while somebody checks out another branch.
			if due = later(next, since.Add(idleTime)); !due.After(now) && x.running.Load() == 0 && now.Sub(time.Unix(0, x.ended.Load())) >= idleTime {
				// What is not in the first segment goes into the second one, which is cheap to make until a quarter of the project is in it.
				whole := !base || unindexed-left+delta > files/4
				if err := x.build(ctx, whole); err != nil {
					next = time.Now().Add(min(restTime, firstRest<<min(failures, 8)))
					failures++
					continue
				}
				x.mu.Lock()
				if x.tree.catchUp() == nil {
					x.load()
					left = x.tree.unindexed
				}
				x.mu.Unlock()
				next, failures = time.Now().Add(idleTime), 0
				continue
			}
		}
		t.wait(later(due, now.Add(settleTime)))
		wait(ctx, settleTime)
	}
	return ctx.Err()
}

// later is the later one of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// build runs the program that makes segments. It works at the lowest priority in a process of its own: its memory goes with it, and a thread
// of low priority in this process would hold up the garbage collector.
func (x *projectIndex) build(ctx context.Context, whole bool) error {
	if len(x.o.Build) == 0 {
		return errIndexNotNow
	}
	ctx, cancel := context.WithTimeout(ctx, buildLimit)
	defer cancel()
	mode := "delta"
	if whole {
		mode = "whole"
	}
	cmd := guard.CommandFor(ctx, guard.Reason{Who: guard.Helper}, slices.Concat(x.o.Build, []string{mode, x.o.Dir, x.root})...)
	cmd.Dir = x.root
	cmd.WaitDelay = time.Second
	err := guard.Start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == exitBusy {
		return fmt.Errorf("another process makes the index: %w", err)
	}
	return err
}

// exitBusy is the exit code of a build when another one runs.
const exitBusy = 75 // EX_TEMPFAIL of sysexits.h

// candidate is a file that may match.
type candidate struct {
	dir, name string
	modified  int64
}

// path is where the file is.
func (c candidate) path() string { return withSeparator(c.dir) + c.name }

// compare is the order of results; see aged.compare.
func (c candidate) compare(o candidate) int {
	if n := cmp.Compare(o.modified, c.modified); n != 0 {
		return n
	}
	if n := cmp.Compare(c.dir, o.dir); n == 0 {
		return cmp.Compare(c.name, o.name)
	}
	return cmp.Compare(c.path(), o.path())
}

// choose returns the files below root that the include wants and the query does not exclude, as they are at this moment, of how many, and what could not be read.
// A nil query excludes none; with a limit only so many of the newest are returned, and of how many is then only known up to the limit. errIndexNotNow and the errors of the list say that the search must go
// another way.
func (x *projectIndex) choose(root string, include *Pattern, q *trigram.Query, limit int) (found []candidate, of int, unread []string, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.tree == nil {
		return nil, 0, nil, errIndexNotNow
	}
	t := x.tree
	if err := t.catchUp(); err != nil {
		t.interrupt()
		return nil, 0, nil, err
	}
	f := t.folder(root)
	// In the person's global ignore file a path is relative to where the search begins.
	if f == nil || root != t.root && t.global.anchored() {
		return nil, 0, nil, errIndexNotNow
	}
	var sets [2]trigram.Set
	if q != nil {
		if x.segments[0] == nil || t.unindexed > maxUnindexed {
			return nil, 0, nil, errIndexNotNow
		}
		for i, s := range x.segments {
			if s == nil {
				sets[i] = trigram.Set{}
				continue
			}
			if sets[i], err = s.Match(*q); err != nil {
				// Damaged: its files are searched like those in no segment, until it has been made anew.
				s.Close()
				x.segments[i] = nil
				_ = os.Remove(filepath.Join(x.dir, []string{baseName, deltaName}[i]))
				_ = t.assign(i, nil)
				t.interrupt()
				return nil, 0, nil, err
			}
		}
	}
	t.refresh(f)
	names := include.namesOnly()
	tooOld := int64(math.MinInt64) // with a limit: older files are not among the newest
	var rel []byte
	t.each(f, func(f *indexFolder) {
		rel = append(rel[:0], below(root, f.path)...)
		prefix := len(rel)
		for i := range f.files {
			file := &f.files[i]
			if file.modified < tooOld {
				continue // before its name is looked at, which takes most of the time
			}
			if include != nil {
				if names {
					if !include.Wants(file.name) {
						continue
					}
				} else if rel = append(rel[:prefix], file.name...); !include.Wants(string(rel)) {
					continue
				}
			}
			if of++; q != nil && !file.doc.in(&sets) {
				continue
			}
			if found = append(found, candidate{f.path, file.name, file.modified}); limit > 0 && len(found) == 8*limit {
				slices.SortFunc(found, candidate.compare)
				found = found[:limit]
				tooOld = found[limit-1].modified
			}
		}
	})
	if limit > 0 && len(found) > limit {
		slices.SortFunc(found, candidate.compare)
		found = found[:limit]
	}
	for path, text := range t.failed {
		if path == root || len(path) > len(root) && path[:len(withSeparator(root))] == withSeparator(root) {
			unread = append(unread, text)
		}
	}
	return found, of, unread, nil
}

// indexEngine searches the files that an index has chosen. It finds exactly what ripgrep would; where it cannot be sure of that, its error sends the
// search there.
type indexEngine struct {
	goEngine
	x     *projectIndex
	loose *matcher // matches at least where the pattern does, by ripgrep's reading and by Go's
	query trigram.Query
}

// indexed returns an engine for a search in a folder, or nil.
func (x *projectIndex) indexed(j *grepJob) engine {
	if x == nil || j.show == nil || j.bare || !sharedSyntax(j.pattern) {
		return nil
	}
	x.mu.Lock()
	there := x.tree != nil
	x.mu.Unlock()
	if !there {
		return nil
	}
	loose, q := j.show.demand()
	return indexEngine{goEngine{j.show}, x, loose, q}
}

// The work of one search by an index.
const (
	batchCandidates = 512  // files that are searched before the next look whether there are enough
	newestFirst     = 2048 // of a pattern that most files may match, so many of the newest are searched before ripgrep takes over
)

// files implements engine: it searches the newest candidates first and ends when no further one can be in the result.
func (e indexEngine) files(ctx context.Context, j *grepJob, emit func(string)) error {
	found, of, unread, err := e.x.choose(j.root, j.include, &e.query, 0)
	if err != nil {
		return errEngine{err}
	}
	most := len(found) > of/2 && len(found) > newestFirst // then ripgrep is as quick as what follows, if the newest do not suffice
	for _, part := range newestApart(found, newestFirst) {
		slices.SortFunc(part, candidate.compare)
		for len(part) > 0 && !j.full() {
			n := min(batchCandidates, len(part))
			if err := e.search(ctx, j, part[:n], emit); err != nil {
				return err
			}
			part = part[n:]
		}
		if most && !j.full() {
			return errEngine{errIndexNotNow}
		}
	}
	for _, text := range unread {
		j.unread(text)
	}
	e.x.answers.Add(1)
	return nil
}

// newestApart splits candidates into about n of the newest and the others, each unsorted: sorting all of a large project takes longer than searching
// the first hundred.
func newestApart(all []candidate, n int) [2][]candidate {
	if len(all) <= 2*n {
		return [2][]candidate{all, nil}
	}
	times := make([]int64, len(all))
	for i, c := range all {
		times[i] = c.modified
	}
	slices.Sort(times)
	from := times[len(times)-n]
	at := 0
	for i, c := range all {
		if c.modified >= from {
			all[at], all[i] = c, all[at]
			at++
		}
	}
	return [2][]candidate{all[:at], all[at:]}
}

// search looks for the pattern in some files, with several workers.
func (e indexEngine) search(ctx context.Context, j *grepJob, list []candidate, emit func(string)) error {
	var next atomic.Int64
	var unsure atomic.Bool
	var wg sync.WaitGroup
	for range min(workers(), 1+len(list)/8) {
		wg.Go(func() {
			var s scanner
			for ctx.Err() == nil && !unsure.Load() {
				i := int(next.Add(1)) - 1
				if i >= len(list) {
					return
				}
				path := list[i].path()
				f, err := open(path)
				if err == nil {
					err = s.scan(ctx, f, e.loose, false, func(h hit) bool {
						matches, sure := e.judge(h.text)
						if !sure {
							unsure.Store(true)
						} else if matches {
							emit(path)
						}
						return sure && !matches
					})
					if s.cut { // a line so long that it was searched in pieces, which ripgrep does not do
						unsure.Store(true)
					}
					f.Close()
				}
				if err != nil && ctx.Err() == nil && !errors.Is(err, fs.ErrNotExist) {
					j.unread(describe(path, err))
				}
			}
		})
	}
	wg.Wait()
	if unsure.Load() {
		return errEngine{errIndexNotNow}
	}
	return ctx.Err()
}

// judge decides about a line that the loose pattern matches. The two kinds of expressions differ in what a word is beyond ASCII, and in bytes
// that are no UTF-8, which Go takes for a character.
func (e indexEngine) judge(line []byte) (matches, sure bool) {
	if e.m.re == nil {
		return true, true
	}
	for _, c := range line {
		if c >= utf8.RuneSelf {
			return true, e.loose == e.m && utf8.Valid(line)
		}
	}
	if e.loose == e.m {
		return true, true
	}
	at, _ := e.m.find(line, 0)
	return at >= 0, true
}

// glob finds names by an index. ok is false if the walk must find them.
func (x *projectIndex) glob(root string, p *Pattern, top *newest, unread func(string)) (ok bool) {
	if x == nil {
		return false
	}
	limit := top.n
	found, of, failed, err := x.choose(root, p, nil, limit)
	if err != nil {
		return false
	}
	put := top.put
	if top.show != nil && of > limit {
		if slices.ContainsFunc(found, func(c candidate) bool { return !top.show(c.path()) }) {
			// Some of the newest may not be shown, so others follow.
			if found, _, failed, err = x.choose(root, p, nil, 0); err != nil {
				return false
			}
		} else {
			put = top.keep // judging a path takes longer than finding it
		}
	}
	for _, c := range found {
		if at := time.Unix(0, c.modified); !top.late(at) {
			put(aged{c.path(), at})
		}
	}
	for _, text := range failed {
		unread(text)
	}
	x.answers.Add(1)
	return true
}
