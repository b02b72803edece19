package lspbridge

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/tools/change"
)

// fileDiags is what a server said of a file. Values are never changed, only replaced, so snapshots are cheap.
type fileDiags struct {
	pushed  []change.Problem
	pushVer int32     // version the push was for; 0 when the server did not say
	pushSeq uint64    // ledger.seq when it came
	pushAt  time.Time // … and said something new
	hasPush bool
	pulled  []change.Problem
	pullSeq uint64 // ledger.seq when it was asked for
	pullRef uint64 // ledger.refresh then
	hasPull bool
}

// items is the union of both channels without repetitions.
func (f *fileDiags) items() []change.Problem {
	if f == nil {
		return nil
	}
	if len(f.pulled) == 0 {
		return f.pushed
	}
	out := slices.Clone(f.pulled)
	for _, d := range f.pushed {
		if !slices.ContainsFunc(f.pulled, func(p change.Problem) bool {
			return samePlace(p, d) && p.Message == d.Message && p.Code == d.Code
		}) {
			out = append(out, d)
		}
	}
	return out
}

// isFinal reports whether the word is about the text that the server has now. d is the open document; open is false when
// there is none. seq is the ledger's present one.
func (f *fileDiags) isFinal(d document, open bool, seq uint64) bool {
	switch {
	case f == nil:
		return false
	case f.hasPull:
		return f.pullSeq == seq
	case !open: // closed: nothing is said of it any more
		return true
	}
	return f.publishedFor(d)
}

// publishedFor reports whether the server has pushed for this text.
func (f *fileDiags) publishedFor(d document) bool {
	switch {
	case f == nil || !f.hasPush:
		return false
	case f.pushVer > 0:
		return f.pushVer >= d.version
	}
	return f.pushSeq >= d.seq
}

// sameProblems reports that a person would see no difference.
func sameProblems(a, b []change.Problem) bool {
	return slices.EqualFunc(a, b, func(a, b change.Problem) bool {
		return samePlace(a, b) && a.Message == b.Message && a.Severity == b.Severity && a.Code == b.Code && a.Server == b.Server
	})
}

// ledger holds what one run of a server said of files, and enough of when it said it to tell whether that is about the
// texts it has now. While a proposal lies over the documents, what arrives is written into an overlay and not into the
// truth.
type ledger struct {
	changed *broadcast

	mu         sync.Mutex // guards what follows
	files      map[string]*fileDiags
	overlay    *overlay
	seq        uint64                   // counts everything that may change diagnostics
	refresh    uint64                   // counts workspace/diagnostic/refresh, without echoes
	echo       echo                     // what the next refresh of a server with echoes is about
	idle       map[string]uint64        // clangd: seq at which a file was reported idle
	latency    time.Duration            // learned time from a change to an unversioned publish
	waited     map[string]time.Duration // for files that the server has never published anything of
	everSpoke  bool                     // it has published of some file
	acquainted bool                     // it has answered for the problems of a file once
	stumbles   map[string]string        // why the server failed over a file it is being asked about
	elsewhere  map[string]bool          // files whose last pull was about a proposal: some servers keep their fixes from that
}

// overlay is a transaction on the open documents: while it lasts, what the server says belongs to it.
type overlay struct {
	files map[string]*fileDiags
	over  bool   // rolled back: once the server has settled, its files are the truth again
	seq   uint64 // ledger.seq when it was rolled back: while that is so, ledger.files is the truth already
}

// echo is what a server's next request for a refresh answers: changes of texts alone, or (also) something whose effect
// is not asked about by itself, files on disk above all, and so must be looked at.
type echo int

const (
	echoNone echo = iota
	echoOfText
	echoOfDisk
)

func newLedger(changed *broadcast) *ledger {
	return &ledger{changed: changed, files: map[string]*fileDiags{}, idle: map[string]uint64{}, waited: map[string]time.Duration{},
		stumbles: map[string]string{}, elsewhere: map[string]bool{}}
}

// mark counts a notification that may change diagnostics, and returns its number.
func (l *ledger) mark(cause string) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq++
	if cause == causeWatched {
		l.echo = echoOfDisk
	} else {
		l.echo = max(l.echo, echoOfText)
	}
	return l.seq
}

// outdate makes every pulled answer one about an earlier state.
func (l *ledger) outdate() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq++
}

// now is the number of the present state, and how often the server has asked to be asked again.
func (l *ledger) now() (seq, refresh uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seq, l.refresh
}

// store is where what arrives now belongs. l.mu is held.
func (l *ledger) store() map[string]*fileDiags {
	if l.overlay != nil {
		return l.overlay.files
	}
	return l.files
}

// word is the last word on a file; nil when there is none.
func (l *ledger) word(path string) *fileDiags {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.store()[path]
}

// truth is the last word on a file, whatever is proposed; nil when there is none.
func (l *ledger) truth(path string) *fileDiags {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.files[path]
}

// snapshot is what the server says: of the overlay while one lies there, else of what is.
func (l *ledger) snapshot() map[string]*fileDiags {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.overlay != nil && !l.overlay.over {
		return maps.Clone(l.overlay.files)
	}
	return maps.Clone(l.files)
}

// published takes a push; version is 0 when the server did not say which text it is about.
func (l *ledger) published(path string, items []change.Problem, version int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	files := l.store()
	f := fileDiags{}
	if old := files[path]; old != nil {
		f = *old
	}
	if !f.hasPush || f.pushVer != version || version == 0 || !sameProblems(f.pushed, items) {
		f.pushAt = time.Now() // else it only says once more what is known: of a text that was rolled back, mostly
	}
	f.pushed, f.pushSeq, f.pushVer, f.hasPush = items, l.seq, version, true
	files[path] = &f
}

// spoke notes that the server publishes problems of a file at all.
func (l *ledger) spoke(path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waited, path)
	l.everSpoke = true
}

// pulled takes the answers to a question that was asked at (seq, refresh): of the file itself, and what came with it. It
// takes none, and returns false, when something has changed since: nobody knows which text they are about. force takes
// them all the same.
func (l *ledger) pulled(path string, answers map[string][]change.Problem, seq, refresh uint64, force bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if seq != l.seq && !force {
		return false
	}
	delete(l.elsewhere, path)
	for p, items := range answers {
		f := fileDiags{}
		if old := l.store()[p]; old != nil {
			f = *old
		}
		f.pulled, f.hasPull, f.pullSeq, f.pullRef = items, true, seq, refresh
		l.store()[p] = &f
	}
	return true
}

// outdated are the files whose last pulled answer is about another state than the present one.
func (l *ledger) outdated(paths []string) (ask []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range paths {
		f := l.store()[p]
		if f == nil || !f.hasPull || f.pullSeq != l.seq || f.pullRef != l.refresh {
			ask = append(ask, p)
		}
	}
	return ask
}

// forget drops what was said of a file that is gone.
func (l *ledger) forget(path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.files, path)
}

// refreshed takes a request of the server to be asked again. It returns false when that only echoes a change of texts;
// echoes says whether the server has that habit.
func (l *ledger) refreshed(echoes bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts := l.echo != echoOfText || !echoes
	if counts {
		l.refresh++
	}
	l.echo = echoNone
	return counts
}

// begin lays an overlay over what was said, and returns the number of the state below it.
func (l *ledger) begin() (seq uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	said := l.files
	if l.overlay != nil { // the last one's roll-back is still being diagnosed: servers publish only what differs from that
		said = l.overlay.files
	}
	l.overlay = &overlay{files: maps.Clone(said)}
	return l.seq
}

// rolledBack says that the documents are as they were before the overlay. What the server says of that is still to come;
// promote makes it the truth.
func (l *ledger) rolledBack() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.overlay.over, l.overlay.seq = true, l.seq
}

// end takes an overlay away at once, for servers whose old answers hold for the old texts again: pushes say their version,
// and pulls were asked for. versions are those of the documents that were put back; seq is what begin returned.
func (l *ledger) end(seq uint64, versions map[string]int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for p, f := range l.files {
		g := *f
		if v := versions[p]; v > 0 && g.pushVer > 0 {
			g.pushVer = v
		}
		if g.hasPull && g.pullSeq == seq {
			g.pullSeq = l.seq
			l.elsewhere[p] = true
		}
		l.files[p] = &g
	}
	l.overlay = nil
}

// promote makes what was said since the overlay was rolled back the truth. Its caller has seen every diagnosis end. It
// returns the files of which the truth is another now; clear is false while a proposal lies on the documents.
func (l *ledger) promote() (news []string, clear bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.overlay == nil:
		return nil, true
	case !l.overlay.over:
		return nil, false
	}
	for p, f := range l.overlay.files {
		if l.files[p] != f {
			news = append(news, p)
		}
	}
	l.files, l.overlay = l.overlay.files, nil
	return news, true
}

// overlaid reports whether an overlay is there, rolled back or not.
func (l *ledger) overlaid() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.overlay != nil
}

// settled: all that was sent since the last final word is an overlay and its roll-back, so that word still holds, and
// the server's second diagnosis of the same texts need not be waited for.
func (l *ledger) settled() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.overlay != nil && l.overlay.over && l.overlay.seq == l.seq
}

// setIdle takes clangd's word that it is done with a file, or has begun anew.
func (l *ledger) setIdle(path string, idle bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idle[path] = 0
	if idle {
		l.idle[path] = l.seq
	}
}

// reportsIdle: the server says when it is done with a file.
func (l *ledger) reportsIdle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.idle) > 0
}

// idleSince reports whether the server was done with a file at or after a state.
func (l *ledger) idleSince(path string, seq uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.idle[path] >= seq
}

// unversioned: the server has pushed without saying for which text.
func (l *ledger) unversioned() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.files {
		if f.hasPush && f.pushVer == 0 {
			return true
		}
	}
	return false
}

// delay is how long the server usually takes from a change to its publish.
func (l *ledger) delay() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.latency
}

// learn takes one more measurement of delay.
func (l *ledger) learn(took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.latency = (3*l.latency + took) / 4
}

// inVain notes a wait for files of which the server said nothing, however long it was given.
func (l *ledger) inVain(paths []string, waited time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range paths {
		if f := l.store()[p]; f == nil || !f.hasPush {
			l.waited[p] += waited
		}
	}
}

// mute reports whether a file has been waited for in vain for long enough; or the whole server, when it has never
// published a thing and was waited for over several files: it is one for names or classes, and problems are not its
// business.
func (l *ledger) mute(path string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	var sum time.Duration
	for _, d := range l.waited { // a publish of a file takes its wait away
		sum += d
	}
	return l.waited[path] >= muteAfter || sum >= 2*muteAfter && !l.everSpoke
}

// stumbled notes why the server failed over a file; "" forgets it.
func (l *ledger) stumbled(path, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if why == "" {
		delete(l.stumbles, path)
		return
	}
	l.stumbles[path] = why
}

// stumble is why the server failed over a file; "" when it did not.
func (l *ledger) stumble(path string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stumbles[path]
}

// pulledElsewhere: the last answer to a pull of the file was about a proposal.
func (l *ledger) pulledElsewhere(path string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.elsewhere[path]
}

// isAcquainted: the server has answered for the problems of some file, so it has read its project.
func (l *ledger) isAcquainted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acquainted
}

func (l *ledger) setAcquainted() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acquainted = true
}
