package mention

import (
	"context"
	"path"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools/fuzzy"
	"github.com/pillion-dev/pillion/tools/search"
)

// Limits of the listings that are kept in memory.
const (
	maxNames = 200_000         // files of a listing; a home folder is not a project
	namesAge = 3 * time.Second // an older listing is made again, behind the answer
	maxLists = 4               // folders whose listing is kept
)

// names are the files and folders of a project at one moment.
type names struct {
	list  *fuzzy.List // folders end with a slash
	files int         // the first so many of the list are files
	more  bool        // there are others
	made  time.Time
}

// find ranks the names that a query fits. more reports that others fit, too.
func (n *names) find(query string, limit int, want Kinds) (found []Match, more bool) {
	ask := limit
	// The ranking does not know kinds, so more is asked for than is wanted when one kind is left out.
	if !want[File] || !want[Folder] {
		ask = max(limit*10, 1000) // the others are taken out below
	}
	best, more := n.list.Best(query, ask)
	for _, b := range best {
		kind := File
		if b.Index >= n.files {
			kind = Folder
		}
		if !want[kind] {
			continue
		}
		if len(found) == limit {
			return found, true
		}
		found = append(found, Match{FileMatch: protocol.FileMatch{Path: n.list.Name(b.Index), Kind: kind, Indices: wide(n.list.Positions(query, b.Index))}, score: b.Score})
	}
	return found, more
}

// listings keep the names of projects. A caller gets the listing that exists; an old one is replaced in the background. Only the
// first question of a project waits.
type listings struct {
	search func(cwd string) *search.Searcher

	mu   sync.Mutex
	kept map[string]*listing // by folder; guarded by mu
	wg   sync.WaitGroup
	stop context.CancelFunc
	ctx  context.Context // ends with the process: a listing outlives the request that began it
}

// listing is the names of one folder, and the attempt to make them that is under way.
type listing struct {
	now    *names        // nil: never made; guarded by listings.mu
	err    error         // of the last attempt; guarded by listings.mu
	busy   bool          // it is being made; guarded by listings.mu
	made   chan struct{} // closed when the attempt under way is over; guarded by listings.mu
	wanted time.Time     // when it was last asked for; guarded by listings.mu
}

// newListings lists nothing yet. Its goroutines end with close.
func newListings(search func(cwd string) *search.Searcher) *listings {
	l := &listings{search: search, kept: map[string]*listing{}}
	l.ctx, l.stop = context.WithCancel(context.Background())
	return l
}

// close ends what is being listed.
func (l *listings) close() {
	l.stop()
	l.wg.Wait()
}

// names returns the listing of a folder. It waits only where there is none yet, until the attempt ends or ctx
// does; the attempt continues for the next question. The error is that of the attempt.
func (l *listings) names(ctx context.Context, cwd string) (*names, error) {
	l.mu.Lock()
	x := l.kept[cwd]
	if x == nil {
		x = &listing{}
		l.kept[cwd] = x
		l.forget(cwd)
	}
	x.wanted = time.Now()
	if !x.busy && (x.now == nil || time.Since(x.now.made) > namesAge) {
		x.busy, x.made = true, make(chan struct{})
		l.wg.Go(func() { l.make(cwd, x) })
	}
	now, made := x.now, x.made
	l.mu.Unlock()
	if now != nil {
		return now, nil
	}
	select {
	case <-made:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return x.now, x.err
}

// forget drops the listing that was not asked for the longest, when there are too many. mu is held.
func (l *listings) forget(but string) {
	if len(l.kept) <= maxLists {
		return
	}
	oldest := ""
	for cwd, x := range l.kept {
		if cwd != but && (oldest == "" || x.wanted.Before(l.kept[oldest].wanted)) {
			oldest = cwd
		}
	}
	delete(l.kept, oldest)
}

// make lists a folder and publishes the result. After an error the last listing stays: old names are better than
// none.
func (l *listings) make(cwd string, x *listing) {
	files, more, err := l.search(cwd).Files(l.ctx, cwd, maxNames)
	var made *names
	if err == nil {
		// The full slice expression makes append copy, so that it cannot write into a slice that the searcher still
		// holds.
		all := append(files[:len(files):len(files)], folders(files)...)
		made = &names{list: fuzzy.New(all), files: len(files), more: more, made: time.Now()}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	x.busy, x.err = false, err
	if made != nil {
		x.now = made
	}
	close(x.made)
}

// folders are the folders that hold files, each with a slash at its end.
func folders(files []string) []string {
	seen := map[string]bool{}
	var out []string
	for _, f := range files {
		for d := path.Dir(f); d != "." && !seen[d]; d = path.Dir(d) {
			seen[d] = true
			out = append(out, d+"/")
		}
	}
	return out
}
