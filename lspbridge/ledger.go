package lspbridge

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/tools/change"
)

// fileDiags is what a server has reported about a file. Values are never modified, only replaced, so copying the map is enough for a
// snapshot.
type fileDiags struct {
	pushed  []change.Problem
	pushVer int32     // document version of the push; 0 when the server sent none
	pushSeq uint64    // ledger.seq when the push arrived
	pushAt  time.Time // when a push last differed from the one before
	hasPush bool
	pulled  []change.Problem
	pullSeq uint64 // ledger.seq when the pull was sent
	pullRef uint64 // ledger.refresh at that time
	hasPull bool
}

// items returns the pushed and pulled problems without duplicates: some servers push compiler errors and answer pulls with lints, or the
// other way round.
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

// isVersioned reports whether the server's last push about the file named the version of the text.
func (f *fileDiags) isVersioned() bool { return f != nil && f.hasPush && f.pushVer > 0 }

// isFinal reports whether the problems are those of the text that the server has. d is the document, if open; seq is the ledger's present
// number.
func (f *fileDiags) isFinal(d document, open bool, seq uint64) bool {
	switch {
	case f == nil:
		return false
	case f.hasPull:
		return f.pullSeq == seq
	case !open: // the server reports nothing more about a closed document
		return true
	}
	return f.publishedFor(d)
}

// publishedFor reports whether the server has pushed for this text: by version or, for servers that send none, by a push after the text was
// sent.
func (f *fileDiags) publishedFor(d document) bool {
	switch {
	case f == nil || !f.hasPush:
		return false
	case f.pushVer > 0:
		return f.pushVer >= d.version
	}
	return f.pushSeq >= d.seq
}

// sameProblems reports whether two lists look the same to a person.
func sameProblems(a, b []change.Problem) bool {
	return slices.EqualFunc(a, b, func(a, b change.Problem) bool {
		return samePlace(a, b) && a.Message == b.Message && a.Severity == b.Severity && a.Code == b.Code && a.Server == b.Server
	})
}

// ledger holds the problems that one run of a server has reported, and when, to recognise reports about older texts. While a proposal is
// laid over the documents, reports go into an overlay: a proposal's problems must never look like the project's.
type ledger struct {
	changed *broadcast

	mu                sync.Mutex // guards what follows
	files             map[string]*fileDiags
	overlay           *overlay
	seq               uint64                   // counts every notification that may change diagnostics
	refresh           uint64                   // counts workspace/diagnostic/refresh, except echoes
	echo              echo                     // what the next refresh request of a server that echoes will be about
	idle              map[string]uint64        // clangd: seq at which it reported a file idle
	latency           time.Duration            // running average of the time from a change to a push without a version
	unanswered        map[string]time.Duration // by file: time waited in vain for a first push
	publishes         bool                     // the server has published about some file
	loaded            bool                     // the server has answered completely for some file once
	failures          map[string]string        // why the server failed while it checked a file
	gone              map[string]bool          // files that the server was told are gone
	pulledForProposal map[string]bool          // files whose last pull was about a proposal, from which some servers keep their quick fixes
}

// overlay holds the reports while a proposal is laid over the open documents.
type overlay struct {
	files map[string]*fileDiags
	over  bool   // the proposal was rolled back; once the server has diagnosed that, these reports become the project's
	seq   uint64 // ledger.seq at the roll-back; until it changes, ledger.files is still right
}

// echo is what a server's next refresh request will be about: only changed texts, which are pulled anyway, or also something else, above
// all files on disk, whose effect has not been pulled yet.
type echo int

const (
	// In ascending order of precedence.
	echoNone echo = iota
	echoOfText
	echoOfDisk
)

// newLedger returns an empty ledger; it wakes changed when a wait may end.
func newLedger(changed *broadcast) *ledger {
	return &ledger{changed: changed, files: map[string]*fileDiags{}, idle: map[string]uint64{}, unanswered: map[string]time.Duration{},
		failures: map[string]string{}, gone: map[string]bool{}, pulledForProposal: map[string]bool{}}
}

// mark counts a notification that may change diagnostics and returns its number.
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

// invalidatePulls makes every pulled answer outdated, so that it is requested again.
func (l *ledger) invalidatePulls() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq++
}

// state returns the number of the present state, and of the refresh requests so far.
func (l *ledger) state() (seq, refresh uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seq, l.refresh
}

// store returns the map into which reports go at present. The caller holds l.mu.
func (l *ledger) store() map[string]*fileDiags {
	if l.overlay != nil {
		return l.overlay.files
	}
	return l.files
}

// latest returns the last report on a file, of the proposal while one is laid over the documents; nil when there is none.
func (l *ledger) latest(path string) *fileDiags {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.store()[path]
}

// project returns the last report on a file outside a proposal; nil when there is none.
func (l *ledger) project(path string) *fileDiags {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.files[path]
}

// snapshot returns all reports: the proposal's while one is laid over the documents, else the project's.
func (l *ledger) snapshot() map[string]*fileDiags {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.overlay != nil && !l.overlay.over {
		return maps.Clone(l.overlay.files)
	}
	return maps.Clone(l.files)
}

// published stores a push; version is 0 when the server sent none.
func (l *ledger) published(path string, items []change.Problem, version int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	files := l.store()
	f := fileDiags{}
	if old := files[path]; old != nil {
		f = *old
	}
	if !f.hasPush || f.pushVer != version || version == 0 || !sameProblems(f.pushed, items) {
		f.pushAt = time.Now() // a repetition mostly means that a text was rolled back
	}
	f.pushed, f.pushSeq, f.pushVer, f.hasPush = items, l.seq, version, true
	files[path] = &f
}

// hasPublished records that the server publishes problems about this file, so waiting for them makes sense.
func (l *ledger) hasPublished(path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.unanswered, path)
	l.publishes = true
}

// pulled stores the answers to a pull that was sent at (seq, refresh), for the file itself and for related ones. It stores nothing and
// returns false when something has changed since, because it is then unknown which text the answer is about. force stores the answers
// anyway.
func (l *ledger) pulled(path string, answers map[string][]change.Problem, seq, refresh uint64, force bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if seq != l.seq && !force {
		return false
	}
	delete(l.pulledForProposal, path)
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

// outdated returns the paths whose last pull is about an older state.
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

// forget drops the reports on a deleted file.
func (l *ledger) forget(path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.files, path)
	if len(l.gone) >= maxGone {
		clear(l.gone)
	}
	l.gone[path] = true
}

// maxGone bounds the memory for files that come and go. Beyond it all are forgotten, and a server may miss one that comes back.
const maxGone = 10_000

// wasDeleted reports whether the server was told that a file is gone.
func (l *ledger) wasDeleted(path string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gone[path]
}

// isBack records that a deleted file exists again.
func (l *ledger) isBack(path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.gone, path)
}

// refreshed handles a refresh request. It returns false when the request only echoes a change of texts; echoes says whether the server
// sends such echoes.
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

// begin starts an overlay and returns the number of the state below it, which end needs.
func (l *ledger) begin() (seq uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	said := l.files
	if l.overlay != nil { // the previous roll-back is still being diagnosed, and servers publish only what differs from it
		said = l.overlay.files
	}
	l.overlay = &overlay{files: maps.Clone(said)}
	return l.seq
}

// rolledBack records that the documents are as before the overlay. The server's reports on that are still to come; promote accepts them.
func (l *ledger) rolledBack() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.overlay.over, l.overlay.seq = true, l.seq
}

// end removes an overlay at once, for servers whose earlier reports become right again without a new diagnosis: pushes have a version, and
// pulls are repeated. docs are the restored documents; below is what begin returned, and from is the state before the first of them was
// restored. missed are those of the open documents whose present text was sent before the overlay and reported on only while it was there:
// that report may be about the proposal, and there will be no other unless the text is sent again.
func (l *ledger) end(below, from uint64, docs, open map[string]document) (missed []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for p, f := range l.overlay.files {
		if d, ok := open[p]; ok && d.seq <= below && f.isVersioned() && f.publishedFor(d) && !l.files[p].publishedFor(d) {
			missed = append(missed, p)
		}
	}
	for p, f := range l.files {
		g := *f
		if v := docs[p].version; v > 0 && g.pushVer > 0 {
			g.pushVer = v
		}
		if g.hasPull && g.pullSeq == below {
			g.pullSeq = l.seq
			l.pulledForProposal[p] = true
		}
		l.files[p] = &g
	}
	// A server that sends no versions may have published about the old texts before all of them were restored. It will not do so again, and
	// a wait for it would be in vain.
	for p, f := range l.overlay.files {
		if !f.hasPush || f.pushVer > 0 || f.pushSeq <= from || f.pushSeq < docs[p].seq {
			continue
		}
		g := fileDiags{}
		if old := l.files[p]; old != nil {
			g = *old
		}
		g.pushed, g.pushVer, g.pushSeq, g.pushAt, g.hasPush = f.pushed, 0, f.pushSeq, f.pushAt, true
		l.files[p] = &g
	}
	l.overlay = nil
	return missed
}

// restored records that documents which were sent once more have the text, and all that they depend on, of the last reports on them. Those
// are right for the new versions too.
func (l *ledger) restored(docs map[string]document) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for p, d := range docs {
		if f := l.files[p]; f.isVersioned() {
			g := *f
			g.pushVer = d.version
			l.files[p] = &g
		}
	}
}

// promote makes the reports since the roll-back the project's. The caller has checked that every diagnosis has ended. It returns the files
// whose problems now differ; clear is false while a proposal is laid over the documents.
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

// overlaid reports whether there is an overlay, rolled back or not.
func (l *ledger) overlaid() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.overlay != nil
}

// stillFinal reports whether only an overlay and its roll-back were sent since the last final report. That report is still right, so there
// is no need to wait for the server to diagnose the same texts again.
func (l *ledger) stillFinal() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.overlay != nil && l.overlay.over && l.overlay.seq == l.seq
}

// setIdle records clangd's report that it has finished a file, or is working on it again.
func (l *ledger) setIdle(path string, idle bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idle[path] = 0
	if idle {
		l.idle[path] = l.seq
	}
}

// reportsIdle reports whether the server announces that it has finished a file.
func (l *ledger) reportsIdle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.idle) > 0
}

// idleSince reports whether the server has finished a file at or after the state seq.
func (l *ledger) idleSince(path string, seq uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.idle[path] >= seq
}

// unversioned reports whether the server has pushed without a version.
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

// delay returns how long the server usually takes from a change to its push.
func (l *ledger) delay() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.latency
}

// learn adds a measurement to delay; older ones fade, because the load of the machine changes.
func (l *ledger) learn(took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.latency = (3*l.latency + took) / 4
}

// learnAtLeast raises delay to the time of a wait in vain.
func (l *ledger) learnAtLeast(waited time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.latency = max(l.latency, waited)
}

// addUnanswered adds the time of a wait to every file about which the server has reported nothing.
func (l *ledger) addUnanswered(paths []string, waited time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range paths {
		if f := l.store()[p]; f == nil || !f.hasPush {
			l.unanswered[p] += waited
		}
	}
}

// isMute reports whether waiting for a file is pointless, because earlier waits were long enough and in vain. A server that has never
// published anything over several files offers names or completions, but no problems.
func (l *ledger) isMute(path string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	var sum time.Duration
	for _, d := range l.unanswered { // a push for a file removes its entry
		sum += d
	}
	return l.unanswered[path] >= muteAfter || sum >= 2*muteAfter && !l.publishes
}

// setFailure records why the server failed while it checked a file; "" when it did not fail.
func (l *ledger) setFailure(path, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if why == "" {
		delete(l.failures, path)
		return
	}
	l.failures[path] = why
}

// failure returns why the server failed while it checked a file; "" when it did not fail.
func (l *ledger) failure(path string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failures[path]
}

// isPulledForProposal reports whether the file's last pull was about a proposal.
func (l *ledger) isPulledForProposal(path string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pulledForProposal[path]
}

// isLoaded reports whether the server has answered for some file, and so has loaded its project.
func (l *ledger) isLoaded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.loaded
}

// setLoaded records that the server has answered for some file.
func (l *ledger) setLoaded() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.loaded = true
}
