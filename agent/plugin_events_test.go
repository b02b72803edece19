package agent

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/agent/provider"
)

// What extensions hear of two turns, the second of which fails.
func TestWhatExtensionsHear(t *testing.T) {
	h := newHarness(t, calls(`write {"text":"a"}`, `todowrite {"todos":[{"content":"x","status":"pending","priority":"high"}]}`), says("ok"),
		func(context.Context, *provider.Request, func(provider.Event) error) error {
			return &provider.Error{Kind: provider.ErrAuth, Message: "no key"}
		})
	var mu sync.Mutex
	var heard []string
	h.with.extensions = func(string) *Extensions {
		return &Extensions{Event: func(kind string, p map[string]any) {
			mu.Lock()
			defer mu.Unlock()
			if kind != "session.updated" {
				heard = append(heard, kind)
			}
			if p["sessionID"] == "" {
				t.Errorf("%s without a session", kind)
			}
		}}
	}
	s := h.session()
	h.prompt(s, "go")
	h.prompt(s, "again")
	s.flush()
	h.rt.hearing.waitIdle(2 * time.Minute)
	mu.Lock()
	defer mu.Unlock()
	want := strings.Fields(`session.created session.status permission.asked permission.replied message.part.updated todo.updated message.part.updated session.status session.idle
		session.status session.error session.status session.idle`)
	if !slices.Equal(heard, want) {
		t.Errorf("heard %v", heard)
	}
}

// An extension that hangs holds no turn up, and what waits for it is bounded.
func TestAnExtensionThatHangs(t *testing.T) {
	h := newHarness(t, says("ok"))
	free := make(chan struct{})
	h.with.extensions = func(string) *Extensions {
		return &Extensions{Event: func(string, map[string]any) { <-free }}
	}
	s := h.session()
	if end := h.prompt(s, "go"); end.Stop != TurnEnd {
		t.Errorf("%+v", end)
	}
	for range 2 * hearingLimit {
		h.rt.hearing.enqueue(func() {})
	}
	h.rt.hearing.mu.Lock()
	n := len(h.rt.hearing.waiting)
	h.rt.hearing.mu.Unlock()
	if n > hearingLimit {
		t.Errorf("%d wait", n)
	}
	close(free)
	h.rt.hearing.waitIdle(2 * time.Minute)
}
