package agent

import (
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/agent/provider"
)

// picturesIn are the names of the files in a request, in order.
func picturesIn(req provider.Request) string {
	var names []string
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			for _, f := range p.Files {
				names = append(names, f.Name)
			}
		}
	}
	return strings.Join(names, " ")
}

// A file that a provider refuses is left out with a note, now and in every later request; those it has accepted stay.
func TestARefusedFileDoesNotPoisonTheSession(t *testing.T) {
	h := newHarness(t, says("a cat"), fails(provider.ErrInvalid, "Could not process image."), says("I could not see it"), says("still here"), says("after a restart"))
	s := h.session()
	send := func(name string) TurnData {
		end, err := s.Prompt(t.Context(), Prompt{Parts: []provider.Part{{Type: provider.PartText, Text: "look"},
			{Type: provider.PartFile, Files: []provider.File{{Mime: "image/x-own", Name: name, Data: []byte("x")}}}}})
		if err != nil {
			t.Fatal(err)
		}
		return end
	}
	if end := send("good.x"); end.Stop != TurnEnd {
		t.Fatalf("%+v", end)
	}
	if end := send("bad.x"); end.Stop != TurnEnd {
		t.Errorf("%+v", end)
	}
	h.prompt(s, "and now?")
	h.consistent(s)
	h.restart() // another process does not send it again
	s = h.load(s.ID())
	h.prompt(s, "and here?")
	var got []string
	for _, r := range h.model.seen() {
		got = append(got, picturesIn(r))
	}
	if want := "good.x|good.x bad.x|good.x|good.x|good.x"; strings.Join(got, "|") != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, r := range h.model.seen()[3:] {
		if text := r.Messages[2].Parts[1].Text; !strings.Contains(text, "bad.x") || !strings.Contains(text, "Could not process image") {
			t.Errorf("no note: %q", text)
		}
	}
}

// A request that is refused for another reason keeps its files: another model may take them.
func TestARefusalWithoutItsFilesIsNotAboutThem(t *testing.T) {
	no := fails(provider.ErrInvalid, "tools: bad schema")
	h := newHarness(t, no, no, says("yes"))
	s := h.session()
	end, err := s.Prompt(t.Context(), Prompt{Parts: []provider.Part{{Type: provider.PartFile, Files: []provider.File{{Mime: "image/x-own", Name: "a.x", Data: []byte("x")}}}}})
	if err != nil || end.Stop != TurnError || !strings.Contains(end.Error, "bad schema") {
		t.Errorf("%+v %v", end, err)
	}
	h.consistent(s)
	h.prompt(s, "again")
	seen := h.model.seen()
	if got := picturesIn(seen[len(seen)-1]); len(seen) != 3 || got != "a.x" {
		t.Errorf("%d requests, the last with %q", len(seen), got)
	}
}
