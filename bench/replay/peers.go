package replay

import (
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/tools/replace"
	"github.com/pillion-dev/pillion/tools/replace/opencode"
	"github.com/pillion-dev/pillion/tools/symbol"
)

// Verdict of one case.
type Verdict int

// The verdicts: the right text, a refusal, another text.
const (
	Right Verdict = iota
	Refused
	Wrong
)

// Peer is somebody who makes edits.
type Peer struct {
	Name  string
	Apply func(c Case) (text string, ok bool)
}

// Judge says what a peer makes of a case.
func (p Peer) Judge(c Case) (Verdict, string) {
	text, ok := p.Apply(c)
	switch {
	case !ok || text == c.Text: // what changes nothing is not written, and the tool says so
		if c.Want == c.Text {
			return Right, "" // there is nothing to change
		}
		return Refused, ""
	case c.Fits != nil && c.Fits(text):
		return Right, text
	case text == c.Want || slices.Contains(c.Also, text):
		return Right, text
	}
	text = unblank(text)
	if text == unblank(c.Want) || slices.ContainsFunc(c.Also, func(s string) bool { return unblank(s) == text }) {
		return Right, text
	}
	return Wrong, text
}

// unblank is a text whose blank lines are empty: where several blank lines become one, it does not matter whose blanks that has.
func unblank(s string) string {
	all := strings.Split(s, "\n")
	for i, l := range all {
		if blank(l) {
			all[i] = l[len(strings.TrimSuffix(l, "\r")):]
		}
	}
	return strings.Join(all, "\n")
}

// Ours is the edit engine as the tool edit runs it.
var Ours = Peer{"edit", func(c Case) (string, bool) {
	reworded := false
	text, ok := inTurn(c, func(c Case) (string, bool) {
		literals := func(text string) ([][2]int, bool) { return symbol.LongLiterals(c.File, text) }
		r, err := replace.ApplyIn(literals, c.Text, c.Old, c.New, c.All)
		reworded = reworded || r.Reworded
		return r.Text, err == nil
	})
	if _, broken := symbol.Breaks(c.File, c.Text, text); ok && reworded && broken { // at the end, as the tool does
		return "", false
	}
	return text, ok
}}

// OursPatch is the edit engine as the tool apply_patch runs it.
var OursPatch = Peer{"apply_patch", applyHunks}

// OpenCode is the cascade of OpenCode's edit, rendered as an oracle.
var OpenCode = Peer{"OpenCode's edit", func(c Case) (string, bool) {
	return inTurn(c, func(c Case) (string, bool) {
		text, refused := opencode.Apply(c.Text, c.Old, c.New, c.All)
		return text, refused == ""
	})
}}

// Exact replaces a text that occurs exactly once.
var Exact = Peer{"exact match", func(c Case) (string, bool) {
	return inTurn(c, func(c Case) (string, bool) {
		if n := strings.Count(c.Text, c.Old); n == 0 || n > 1 && !c.All {
			return "", false
		}
		if c.All {
			return strings.ReplaceAll(c.Text, c.Old, c.New), true
		}
		return strings.Replace(c.Text, c.Old, c.New, 1), true
	})
}}

// Codex follows the rules of Codex's apply_patch: the lines are sought exactly, then with trailing white space ignored,
// then trimmed, then with typographic characters made plain; the first place counts, and the patch's own lines, context
// included, are written there. A file always ends in a newline afterwards.
var Codex = Peer{"Codex's patch", func(c Case) (string, bool) { return inTurn(c, codex) }}

func codex(c Case) (string, bool) {
	if c.All { // a patch has no such thing
		return "", false
	}
	have := strings.Split(c.Text, "\n")
	if have[len(have)-1] == "" {
		have = have[:len(have)-1]
	}
	old, new := strings.Split(c.Old, "\n"), strings.Split(c.New, "\n")
	at := codexSeek(have, old)
	if at < 0 && old[len(old)-1] == "" {
		old = old[:len(old)-1]
		if new[len(new)-1] == "" {
			new = new[:len(new)-1]
		}
		at = codexSeek(have, old)
	}
	if at < 0 {
		return "", false
	}
	out := append(append(append([]string{}, have[:at]...), new...), have[at+len(old):]...)
	return strings.Join(out, "\n") + "\n", true
}

func codexSeek(have, want []string) int {
	plain := strings.NewReplacer("‐", "-", "‑", "-", "‒", "-", "–", "-", "—", "-", "―", "-", "−", "-", "‘", "'", "’", "'", "‚", "'", "‛", "'",
		"“", `"`, "”", `"`, "„", `"`, "‟", `"`, "\u00a0", " ", "\u2002", " ", "\u2003", " ", "\u202f", " ", "\u3000", " ")
	for _, form := range []func(string) string{
		func(s string) string { return s },
		func(s string) string { return strings.TrimRight(s, " \t") },
		strings.TrimSpace,
		func(s string) string { return plain.Replace(strings.TrimSpace(s)) },
	} {
		for i := 0; i+len(want) <= len(have); i++ {
			k := 0
			for k < len(want) && form(have[i+k]) == form(want[k]) {
				k++
			}
			if k == len(want) {
				return i
			}
		}
	}
	return -1
}

// envelope is a patch with a hunk for each edit: what both texts begin and end with is context.
func envelope(steps []Step) string {
	var b strings.Builder
	b.WriteString("*** Begin Patch\n*** Update File: f\n")
	for _, s := range steps {
		b.WriteString(hunkOf(s))
	}
	b.WriteString("*** End Patch\n")
	return b.String()
}

func hunkOf(c Step) string {
	c.Old, c.New = strings.ReplaceAll(c.Old, "\r\n", "\n"), strings.ReplaceAll(c.New, "\r\n", "\n") // a patch has lines
	if strings.HasSuffix(c.Old, "\n") && strings.HasSuffix(c.New, "\n") {                           // the end of a line, not one more
		c.Old, c.New = c.Old[:len(c.Old)-1], c.New[:len(c.New)-1]
	}
	old, new := strings.Split(c.Old, "\n"), strings.Split(c.New, "\n")
	if c.New == "" && strings.HasSuffix(c.Old, "\n") { // all of the lines go; otherwise it is an empty line
		old, new = strings.Split(strings.TrimSuffix(c.Old, "\n"), "\n"), nil
	}
	top, end := 0, 0
	for top < min(len(old), len(new)) && old[top] == new[top] {
		top++
	}
	for end < min(len(old), len(new))-top && old[len(old)-1-end] == new[len(new)-1-end] {
		end++
	}
	var b strings.Builder
	b.WriteString("@@\n")
	put := func(mark string, lines []string) {
		for _, l := range lines {
			b.WriteString(mark + l + "\n")
		}
	}
	put(" ", old[:top])
	put("-", old[top:len(old)-end])
	put("+", new[top:len(new)-end])
	put(" ", old[len(old)-end:])
	return b.String()
}

// Peers are all, ours first.
var Peers = []Peer{Ours, OursPatch, OpenCode, Codex, Exact}
