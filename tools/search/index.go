package search

import (
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/tools/paths"
)

// An index makes searches of large projects quick. It is kept where the system reports every change (Linux, inotify) and has two parts: the
// list of the files that a walk would visit (indexTree), in memory, and segments on disk that narrow a search for text to the files that may hold a
// match (package trigram). What counts is always the file as it is: each candidate is searched like any other file, and files that have
// changed since they were indexed are candidates. Where the list may differ from the disk, and for what an index cannot answer, a search goes the
// way that it would go without one. ARCHITECTURE.md says why an answer is never stale.

// IndexOptions say where indexes are kept and who makes them.
type IndexOptions struct {
	// Dir is the folder of all indexes, private to the person: they have pieces of three bytes of the texts of projects.
	Dir string
	// Build is the program that makes an index, with its first arguments; see Build. It is this program, started again.
	Build []string
	// Ready is called when an index has become usable or has been renewed; nil: nobody waits. For tests and measurements.
	Ready func(root string)
}

// The limits of indexes.
const (
	maxIndexFiles   = 500_000               // files; about 25 MB of memory
	maxIndexFolders = 20_000                // folders, each of which takes one of the person's inotify watches
	maxRuleFiles    = 4000                  // ignore files; each is looked at in every search
	minIndexFiles   = 4000                  // below this ripgrep is as quick
	slowSearch      = 20 * time.Millisecond // a search that takes less needs no index
	idleTime        = 2 * time.Second       // work begins so long after the last search
	clockResolution = 50 * time.Millisecond // of the times of files, with room to spare: the kernel's timer ticks every 10 ms at most
	coarseClock     = 2 * time.Second       // of file systems whose times have whole seconds
	maxUnindexed    = 2000                  // files without a segment that are searched each time; beyond it ripgrep is quicker
	renewAfter      = 200                   // changed files after which their segment is made anew
	unusedFor       = 30 * 24 * time.Hour   // after this an index is removed
	maxIndexBytes   = 2 << 30               // of all indexes together; those used last are kept
	restTime        = 10 * time.Minute      // until a project that cannot have an index is looked at again
	firstRest       = 5 * time.Second       // until the list is made anew after the first failure; then twice as long each time
	settleTime      = 20 * time.Millisecond // events are collected for so long
	buildLimit      = 30 * time.Minute      // of one build
)

// The reasons for which a project has no index. They are for `pillion doctor`.
var (
	errIndexSystem  = errors.New("the file system or the operating system does not report every change")
	errIndexMounts  = errors.New("another file system is mounted inside of the project")
	errIndexWatches = errors.New("too few inotify watches are left (fs.inotify.max_user_watches, fs.inotify.max_user_instances)")
	errIndexLarge   = errors.New("the project has too many files, folders or ignore files")
	errIndexSmall   = errors.New("the project is small, so ripgrep is as quick")
	errIndexRules   = errors.New("an ignore file has changed")
	errIndexMoved   = errors.New("the folder was moved or replaced")
	errIndexQueue   = errors.New("too many files changed at once")
	errIndexNotNow  = errors.New("the index does not cover this search")
)

// indexes are the indexes of a Searcher.
type indexes struct {
	mu     sync.Mutex
	by     map[string]*projectIndex // guarded by mu; by root
	closed bool                     // guarded by mu
}

// indexOf returns the index of the project that holds a folder; nil if there is none. It opens nothing.
func (s *Searcher) indexOf(dir string) *projectIndex {
	if s.o.Index == nil {
		return nil
	}
	root := paths.Worktree(dir)
	s.indexes.mu.Lock()
	defer s.indexes.mu.Unlock()
	x := s.indexes.by[root]
	if x == nil && !s.indexes.closed {
		if s.indexes.by == nil {
			s.indexes.by = map[string]*projectIndex{}
		}
		x = newProjectIndex(root, s.o.Index, s.private(root))
		s.indexes.by[root] = x
	}
	return x
}

// timed notes that a search begins; the function that it returns notes the end. Both keep the work on an index away from searches, and
// a slow search starts it.
func (x *projectIndex) timed() func() {
	if x == nil {
		return func() {}
	}
	began := time.Now()
	x.begin()
	return func() { x.end(time.Since(began)) }
}

// Close ends the work on indexes. Searches go on without them.
func (s *Searcher) Close() {
	s.indexes.mu.Lock()
	s.indexes.closed = true
	all := s.indexes.by
	s.indexes.by = nil
	s.indexes.mu.Unlock()
	for _, x := range all {
		x.close()
	}
}

// sharedSyntax reports whether ripgrep and the Go engine surely read a pattern alike that both accept. What is doubtful is ripgrep's: escapes that one
// of them does not know, the ends of the text, \W and \S in a class, which are ASCII in Go, and the difference of two classes.
func sharedSyntax(pattern string) bool {
	class := strings.Contains(pattern, "[")
	for i := 0; i+1 < len(pattern); i++ {
		if pattern[i] != '\\' {
			if class && pattern[i] == '-' && pattern[i+1] == '-' {
				return false
			}
			continue
		}
		i++
		c := pattern[i]
		if isLetterOrDigit(c) && !strings.ContainsRune("dDwsbBWSnrtfvaxuUpP", rune(c)) || class && (c == 'W' || c == 'S') {
			return false
		}
	}
	return true
}

// below is a path relative to root, with slashes, and a slash at its end; "" for root itself.
func below(root, dir string) string {
	if dir == root {
		return ""
	}
	return filepath.ToSlash(dir[len(withSeparator(root)):]) + "/"
}
