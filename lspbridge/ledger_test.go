package lspbridge

import (
	"slices"
	"testing"

	"github.com/pillion-dev/pillion/tools/change"
)

// A report on a document that is no part of a proposal may come while the proposal is laid over the others. It must not count for the
// project, and a later wait for it must not last for ever: the text is sent once more.
func TestAReportThatCameDuringAProposalIsMissed(t *testing.T) {
	broken := []change.Problem{{Path: "b.c", Message: "of the proposal"}}
	for name, c := range map[string]struct {
		version int32 // of the report on b.c during the proposal; 0: without one
		sent    bool  // b.c is sent again during the proposal, as what uses it is
		known   bool  // the report on b.c had come before
		want    []string
	}{
		"it was waited for":           {version: 2, want: []string{"b.c"}},
		"of an older text":            {version: 1},
		"no report":                   {version: -1},
		"the server sends no version": {version: 0},
		"it was there before":         {version: 2, known: true},
		"it was sent once more":       {version: 2, sent: true},
	} {
		l := newLedger(new(broadcast))
		a, b := document{version: 1, seq: l.mark(causeOpen)}, document{version: 1, seq: l.mark(causeOpen)}
		l.published("a.c", nil, a.version)
		l.published("b.c", nil, b.version)
		b = document{version: 2, seq: l.mark(causeChange)}
		if c.known {
			l.published("b.c", nil, b.version)
		}
		below := l.begin()
		a = document{version: 2, seq: l.mark(causeChange)}
		if c.sent {
			b.seq = l.mark(causeChange)
		}
		l.published("a.c", broken, a.version)
		if c.version >= 0 {
			l.published("b.c", broken, c.version)
		}
		from, _ := l.state()
		a = document{version: 3, seq: l.mark(causeChange)}
		missed := l.end(below, from, map[string]document{"a.c": a}, map[string]document{"a.c": a, "b.c": b})
		if !slices.Equal(missed, c.want) {
			t.Errorf("%s: missed %v, want %v", name, missed, c.want)
		}
		if f := l.project("b.c"); len(c.want) > 0 && (len(f.items()) > 0 || f.publishedFor(b)) {
			t.Errorf("%s: what was said during the proposal counts for the project: %+v", name, f)
		}
		if f := l.project("a.c"); !f.publishedFor(a) || len(f.items()) > 0 {
			t.Errorf("%s: the report from before the proposal is not right again: %+v", name, f)
		}
	}
}

// What a proposal's users were sent once more after it was taken back needs no new report.
func TestARestoredDocumentNeedsNoReport(t *testing.T) {
	l := newLedger(new(broadcast))
	before := document{version: 4, seq: l.mark(causeOpen)}
	said := []change.Problem{{Path: "b.c", Message: "as before"}}
	l.published("b.c", said, before.version)
	l.published("c.c", nil, 0)
	again := document{version: 6, seq: l.mark(causeChange)}
	l.restored(map[string]document{"b.c": again, "c.c": again, "never.c": again})
	if f := l.project("b.c"); !f.publishedFor(again) || !sameProblems(f.items(), said) {
		t.Errorf("%+v", f)
	}
	if l.project("c.c").publishedFor(again) || l.project("never.c") != nil {
		t.Error("a report without a version, or none, passes for one of the new text")
	}
}
