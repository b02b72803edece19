package provider

import (
	"encoding/json"
	"hash/maphash"
	"strings"
)

// chatCall is a call while its pieces arrive. Servers number and repeat pieces in different ways; the fields are what is needed to tell
// their habits apart.
type chatCall struct {
	index int // the server's number, -1 where it gives none
	at    int // the call's Index in our events
	id    string
	// Some servers repeat the id in later pieces, others leave it out. It is compared as the server wrote it, before unique changed it.
	rawID  string
	name   string
	args   []byte
	long   longCall
	last   int // where the last piece begins in args
	pieces int
	// grows and repeats are guesses while pieces arrive, because real arguments may look the same; arguments decides at the end.
	grows   bool // each piece so far repeats the one before and adds to it
	repeats bool // the last piece repeats everything before it
}

// call adds a piece of a call. The piece belongs to the call with its index, or with its id where a server gives no index or the same one
// to all. With neither it belongs to the last call, unless that one is complete and the piece names a tool again.
func (a *chatAnswer) call(d *chatToolDelta) error {
	a.said = true
	id := jsonText(d.ID)
	// Some servers send a number as the id. It is kept as it is written, so that it is the same text each time.
	if id == "" && len(d.ID) > 0 && d.ID[0] != '"' && string(d.ID) != "null" {
		id = string(d.ID)
	}
	index := -1
	if d.Index != nil {
		index = *d.Index
	}
	args := d.Function.Arguments
	piece := jsonText(args)
	// Small servers send the arguments at once, as an object instead of a string.
	if piece == "" && len(args) > 0 && args[0] == '{' {
		piece = string(args)
	}
	c := a.find(index, id, d.Function.Name, piece)
	if c == nil {
		c = &chatCall{index: index, at: len(a.calls), rawID: id, id: a.ids.unique(id), name: d.Function.Name}
		a.calls = append(a.calls, c)
		if err := a.out.send(Event{Type: EventToolStart, Index: c.at, CallID: c.id, Name: c.name}); err != nil {
			return err
		}
	} else if name := d.Function.Name; name != "" && name != c.name && !c.begun() {
		// A name comes in pieces only before the arguments begin; a repeated name is equal.
		c.name += name
	}
	a.last = c
	if piece == "" {
		return nil
	}
	return a.piece(c, piece)
}

// piece adds to a call's arguments. Some servers repeat with every piece everything before it, or send everything once more at the end.
// Here that is only noted, since a piece may be new after all; EventToolEnd has the arguments without repetition, see arguments.
func (a *chatAnswer) piece(c *chatCall, piece string) error {
	if c.long.n > 0 {
		if c.long.again(piece) {
			return nil // everything once more at the end
		}
		c.long.add(piece)
		return a.out.send(Event{Type: EventToolDelta, Index: c.at, Text: piece})
	}
	previous := c.args[c.last:]
	c.repeats = c.pieces > 0 && piece == string(c.args)
	c.grows = c.pieces > 0 && (c.pieces == 1 || c.grows) && len(piece) >= len(previous) && piece[:len(previous)] == string(previous)
	if c.repeats && json.Valid(c.args) {
		return nil // everything once more at the end
	}
	c.last = len(c.args)
	c.pieces++
	c.args = append(c.args, piece...)
	if len(c.args) >= longArguments && c.pieces > 1 && !c.grows && !c.repeats {
		c.long.add(string(c.args))
		c.args, c.last = nil, 0
	}
	return a.out.send(Event{Type: EventToolDelta, Index: c.at, Text: piece})
}

// begun reports whether a part of the arguments has come.
func (c *chatCall) begun() bool { return len(c.args) > 0 || c.long.n > 0 }

// longCall stands for arguments of a megabyte and more: they are in the pieces that were sent, and keeping them here as well would only
// serve to find repetitions. A server that repeats with each piece what came before was recognised by then; one that sends everything once
// more at the end is recognised by the hash.
type longCall struct {
	n    int // bytes so far; 0: the arguments are not long
	hash maphash.Hash
	end  byte // the last byte
}

// add adds a piece, which is not empty.
func (l *longCall) add(piece string) {
	l.n += len(piece)
	_, _ = l.hash.WriteString(piece) // never fails
	l.end = piece[len(piece)-1]
}

// again reports whether a piece is everything that came before it.
func (l *longCall) again(piece string) bool {
	return len(piece) == l.n && maphash.String(l.hash.Seed(), piece) == l.hash.Sum64()
}

// find returns the call that a piece belongs to; nil when the piece begins a new one. index is -1 where the server gives none.
func (a *chatAnswer) find(index int, id, name, piece string) *chatCall {
	if len(a.calls) == 0 {
		return nil
	}
	last := a.calls[len(a.calls)-1]
	if index < 0 {
		if id != "" {
			// An equal id counts more than the order, because pieces of two calls may alternate.
			for _, c := range a.calls {
				if c.rawID == id {
					return c
				}
			}
			return nil
		}
		if name != "" && (last.followedBy(piece) || name != last.name && (last.begun() || last.rawID != "")) {
			return nil
		}
		return last
	}
	for i := len(a.calls) - 1; i >= 0; i-- {
		c := a.calls[i]
		if c.index != index {
			continue
		}
		// Some servers give all calls the index 0, so only their ids differ.
		if id != "" && c.rawID != "" && c.rawID != id {
			for _, o := range a.calls {
				if o.index == index && o.rawID == id {
					return o
				}
			}
			return nil
		}
		if id == "" && name != "" && c.followedBy(piece) {
			continue // a call before it may have the same index
		}
		return c
	}
	return nil
}

// followedBy reports whether a piece that names a tool begins another call: this one is complete, and the piece is not a repetition of
// its arguments.
func (c *chatCall) followedBy(piece string) bool {
	if c.long.n > 0 {
		return c.long.end == '}' && strings.HasPrefix(piece, "{") && !c.long.again(piece)
	}
	n := len(c.args)
	return n > 0 && c.args[n-1] == '}' && strings.HasPrefix(piece, "{") && !strings.HasPrefix(piece, string(c.args)) && json.Valid(c.args)
}

// arguments are the call's arguments as the model wrote them, without the repetitions that some servers add; "" for long ones, which the
// pieces have said.
func (c *chatCall) arguments() string {
	if c.long.n > 0 {
		return ""
	}
	// Valid JSON is kept: repairs are for arguments that could not be used anyway.
	if c.pieces < 2 || json.Valid(c.args) {
		return endArguments(c.args)
	}
	whole := string(c.args)
	if rest, ok := strings.CutPrefix(whole, "{}"); ok && json.Valid([]byte(rest)) {
		return rest // first {} for "none", then the pieces
	}
	// Where each piece repeats the one before, or everything came once more, the last piece is the whole.
	if last := whole[c.last:]; (c.grows || c.repeats || last == whole[:c.last]) && strings.HasPrefix(last, "{") && json.Valid([]byte(last)) {
		return last
	}
	return whole
}
