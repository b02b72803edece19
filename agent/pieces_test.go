package agent

import (
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/agent/provider"
)

// The arguments of a call come in pieces. Whole ones are run whether or not the provider says that they are, or repeats them; others are not,
// and the model reads why.
func TestArgumentsInPieces(t *testing.T) {
	start := provider.Event{Type: provider.EventToolStart, CallID: "id0", Name: "read"}
	piece := func(text string) provider.Event { return provider.Event{Type: provider.EventToolDelta, Text: text} }
	end := provider.Event{Type: provider.EventToolEnd, CallID: "id0", Name: "read"}
	for _, c := range []struct {
		name   string
		events []provider.Event
		stop   provider.StopReason
		ran    string
		reads  string
	}{
		{"and an end that does not repeat them", []provider.Event{start, piece(`{"te`), piece(`xt":"a"}`), end}, provider.StopTools, "read a", "read says a"},
		{"and no end", []provider.Event{start, piece(`{"text":`), piece(`"a"}`)}, provider.StopTools, "read a", "read says a"},
		{"and the answer broke off", []provider.Event{start, piece(`{"text":`), piece(`"a`)}, provider.StopTools, "", brokenText},
		{"and the answer reached its limit at the end of a value", []provider.Event{start, piece(`{"text":"a"}`)}, provider.StopMaxTokens, "", cutText},
		{"and none came", []provider.Event{start}, provider.StopTools, "", brokenText},
	} {
		h := newHarness(t, emits(append(c.events, provider.Event{Type: provider.EventStop, Stop: c.stop})...), says("ok"))
		s := h.session()
		h.prompt(s, "go")
		if h.order() != c.ran {
			t.Errorf("%s: ran %q, want %q", c.name, h.order(), c.ran)
		}
		if seen := h.model.seen(); len(seen) != 2 || !strings.Contains(seen[1].Messages[2].Parts[0].Text, c.reads) {
			t.Errorf("%s: the model reads %+v, want %q", c.name, seen[len(seen)-1].Messages, c.reads)
		}
		h.consistent(s)
	}
}

// Where the machine's settings allow no automatic mode, none is offered.
func TestPermissionModesThatHaveAnEffect(t *testing.T) {
	h := newHarness(t)
	for _, noAuto := range []bool{false, true} {
		h.rt.o.Configuration = preferring{h.with, Preferences{NoAuto: noAuto}}
		got := strings.Join(h.rt.Permissions(SessionInfo{Cwd: h.dir, Permission: PermissionAuto}), " ")
		if want := map[bool]string{false: "ask auto", true: "ask"}[noAuto]; got != want {
			t.Errorf("no auto %t: %s, want %s", noAuto, got, want)
		}
	}
}
