package provider

import (
	"encoding/json"
	"strings"
)

// chatCall is a call whose pieces are still coming. Servers disagree on how pieces are numbered and
// repeated; each field below is there because some server needs it.
type chatCall struct {
	index int // the server's, -1 when it gives none
	at    int // ours
	id    string
	// Servers repeat the id in later pieces or leave it out; it is compared as it was written, before unique
	// changed it.
	rawID  string // as the server wrote it
	name   string
	args   []byte
	last   int // where the last piece begins in args
	pieces int
	// grows and repeats are guesses until the arguments end, since a real argument may look alike; arguments
	// decides.
	grows   bool // each piece so far repeats the one before and adds to it
	repeats bool // the last piece is everything before it, once more
}

// call adds a piece of a call. A piece belongs to the call with its index or, where servers give none or the same to
// all, to the one with its id; without either it belongs to the last call, unless that one is whole and the piece
// names a tool again.
func (a *chatAnswer) call(d *chatToolDelta) error {
	a.said = true
	id := jsonText(d.ID)
	// a number stands for an id at some servers, and must be the same text each time
	if id == "" && len(d.ID) > 0 && d.ID[0] != '"' && string(d.ID) != "null" {
		id = string(d.ID) // a number
	}
	index := -1
	if d.Index != nil {
		index = *d.Index
	}
	args := d.Function.Arguments
	piece := jsonText(args)
	// Small servers send the arguments as an object, as a call in one piece.
	if piece == "" && len(args) > 0 && args[0] == '{' {
		piece = string(args) // an object instead of a string
	}
	c := a.find(index, id, d.Function.Name, piece)
	if c == nil {
		c = &chatCall{index: index, at: len(a.calls), rawID: id, id: a.ids.unique(id), name: d.Function.Name}
		a.calls = append(a.calls, c)
		if err := a.out.send(Event{Type: EventToolStart, Index: c.at, CallID: c.id, Name: c.name}); err != nil {
			return err
		}
	} else if name := d.Function.Name; name != "" && name != c.name && len(c.args) == 0 {
		// A name may come in pieces only before the arguments begin; afterwards another name would be another
		// call.
		c.name += name // a name in pieces; a repeated one is equal
	}
	a.last = c
	if piece == "" {
		return nil
	}
	return a.piece(c, piece)
}

// piece adds to a call's arguments. Some servers repeat all that was said with every piece, or once
// more at the end; that is noted here and resolved in arguments.
// The piece is emitted in any case but the last, as it may be new; EventToolEnd has the arguments without
// repetition.
func (a *chatAnswer) piece(c *chatCall, piece string) error {
	previous := c.args[c.last:]
	c.repeats = c.pieces > 0 && piece == string(c.args)
	c.grows = c.pieces > 0 && (c.pieces == 1 || c.grows) && len(piece) >= len(previous) && piece[:len(previous)] == string(previous)
	if c.repeats && json.Valid(c.args) {
		return nil // everything once more at the end
	}
	c.last = len(c.args)
	c.pieces++
	c.args = append(c.args, piece...)
	return a.out.send(Event{Type: EventToolDelta, Index: c.at, Text: piece})
}

// find is the call that a piece belongs to; nil when it begins a new one. index is -1 when the server gives none.
func (a *chatAnswer) find(index int, id, name, piece string) *chatCall {
	if len(a.calls) == 0 {
		return nil
	}
	last := a.calls[len(a.calls)-1]
	if index < 0 {
		if id != "" {
			// Matching an id beats the order: pieces of two calls may alternate.
			for _, c := range a.calls {
				if c.rawID == id {
					return c
				}
			}
			return nil
		}
		if name != "" && (last.followedBy(piece) || name != last.name && (len(last.args) > 0 || last.rawID != "")) {
			return nil
		}
		return last
	}
	for i := len(a.calls) - 1; i >= 0; i-- {
		c := a.calls[i]
		if c.index != index {
			continue
		}
		// Several calls under one index differ by their ids alone.
		if id != "" && c.rawID != "" && c.rawID != id { // all calls at index 0
			for _, o := range a.calls {
				if o.index == index && o.rawID == id {
					return o
				}
			}
			return nil
		}
		if id == "" && name != "" && c.followedBy(piece) {
			continue // another call under the same index
		}
		return c
	}
	return nil
}

// followedBy reports whether a piece that names a tool begins another call: this one is whole, and the piece is not
// its arguments once more.
func (c *chatCall) followedBy(piece string) bool {
	n := len(c.args)
	return n > 0 && c.args[n-1] == '}' && strings.HasPrefix(piece, "{") && !strings.HasPrefix(piece, string(c.args)) && json.Valid(c.args)
}

// arguments are a call's arguments as written, without the repetitions some servers add.
func (c *chatCall) arguments() string {
	whole := string(c.args)
	// Valid JSON is taken as it is: repairs are only for what could not be run anyway.
	if c.pieces < 2 || json.Valid(c.args) {
		return wrapArguments(whole)
	}
	if rest, ok := strings.CutPrefix(whole, "{}"); ok && json.Valid([]byte(rest)) {
		return rest // begun as none, and then told in pieces
	}
	// The last piece is the whole where each repeats the one before, or where all of it came once more.
	if last := whole[c.last:]; (c.grows || c.repeats || last == whole[:c.last]) && strings.HasPrefix(last, "{") && json.Valid([]byte(last)) {
		return last
	}
	return whole
}
