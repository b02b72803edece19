package lspbridge

import (
	"maps"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/tools/textutil"
)

// The causes of gopls' diagnoses: its progress titles are "diagnosing " and one of these. They are no part of a protocol. A diagnosis with
// another title is never counted, and giveUp ends the wait for it.
const (
	causeOpen    = "opened files"
	causeChange  = "changed files"
	causeSave    = "saved files"
	causeClose   = "closed files"
	causeWatched = "files changed on disk"
	causeReload  = "regenerate cgo"
	causeInitial = "initial workspace load"
)

const diagnosing = "diagnosing " // prefix of gopls' progress titles; the cause follows

// progress tracks the work that a server reports. For gopls, which reports a progress for every diagnosis, it also counts how many of the
// diagnoses caused by this client have ended.
type progress struct {
	mu      sync.Mutex        // guards what follows
	tokens  map[string]string // running work: token → title
	details map[string]string // running work: token → latest message
	sent    map[string]int    // notifications sent, by cause
	ended   map[string]int    // ended diagnoses, by cause
	done    map[string]bool   // lower-case titles of work that has ended at least once
	failing string            // why the running diagnosis has failed; "" when it has not
	failed  string            // why the last diagnosis that has ended has failed
}

// newProgress makes all maps, since a server may end work that it never began.
func newProgress() *progress {
	return &progress{tokens: map[string]string{}, details: map[string]string{}, sent: map[string]int{}, ended: map[string]int{}, done: map[string]bool{}}
}

// update handles a $/progress notification. It returns false for a mere report of progress, which ends no wait.
func (p *progress) update(token, kind, title, detail string) bool {
	// A token is in its JSON form, so the number 1 and the string "1" differ.
	p.mu.Lock()
	defer p.mu.Unlock()
	switch kind {
	case "begin":
		p.tokens[token] = title
		p.details[token] = detail
		return true
	case "report":
		if _, open := p.tokens[token]; open && detail != "" {
			p.details[token] = detail
		}
		return false
	case "end":
		if cause, ok := strings.CutPrefix(p.tokens[token], diagnosing); ok {
			if strings.HasPrefix(cause, "close") { // gopls has called it "close files" and "closed files"
				cause = causeClose
			}
			p.ended[cause]++
			p.failed, p.failing = p.failing, ""
		}
		if title, open := p.tokens[token]; open {
			p.done[strings.ToLower(title)] = true
		}
		delete(p.tokens, token)
		delete(p.details, token)
		return true
	}
	return false
}

// cause counts a notification that starts a diagnosis.
func (p *progress) cause(cause string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent[cause]++
}

// loaded reports whether the first diagnosis of the whole workspace has ended. Before that the counts mean nothing.
func (p *progress) loaded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended[causeInitial] > 0
}

// allEnded reports whether every diagnosis that this client caused has ended. It counts by cause, because the title names nothing else.
func (p *progress) allEnded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended[causeInitial] == 0 {
		return false
	}
	for cause, n := range p.sent {
		if p.ended[cause] < n {
			return false
		}
	}
	return true
}

// fail records that the server could not finish a diagnosis, which it ends all the same.
func (p *progress) fail(why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failing = why
}

// failure returns why the last diagnosis has failed, so that what the server has published is not what it found; "" when it has not.
func (p *progress) failure() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

// giveUp counts the diagnoses that never began as ended, if the server is loaded and idle. It returns the counts before that, for the log;
// ok is false while the server is busy.
func (p *progress) giveUp() (sent, ended map[string]int, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended[causeInitial] == 0 || len(p.tokens) > 0 {
		return nil, nil, false
	}
	sent, ended = maps.Clone(p.sent), maps.Clone(p.ended)
	maps.Copy(p.ended, p.sent)
	return sent, ended, true
}

// index returns the state of a server's indexing, found by a lower-case part of its title: running, with the latest message in
// detail, or done at least once.
func (p *progress) index(title string) (running, done bool, detail string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for token, t := range p.tokens {
		if strings.Contains(strings.ToLower(t), title) {
			return true, false, clipped(p.details[token])
		}
	}
	for t := range p.done {
		done = done || strings.Contains(t, title)
	}
	return false, done, ""
}

// loading returns the title of running work that is not a diagnosis; "" when there is none.
func (p *progress) loading() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for token, title := range p.tokens {
		if !strings.HasPrefix(title, diagnosing) {
			if title == "" {
				title = "working"
			}
			if d := p.details[token]; d != "" {
				title += " (" + clipped(d) + ")"
			}
			return title
		}
	}
	return ""
}

// clipped returns a server's message as one line, short enough for a status line.
func clipped(s string) string {
	s, _, _ = strings.Cut(strings.Join(strings.Fields(s), " "), ". (") // gopls adds a hint in parentheses
	return strings.ToValidUTF8(textutil.Shorten(s, 60), "")
}
