package builtin

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/files"
	"github.com/pillion-dev/pillion/tools/replace"
	"github.com/pillion-dev/pillion/tools/search"
	"github.com/pillion-dev/pillion/tools/symbol"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// write sends the file's new text through the change pipeline. Old is the text in which the symbol was found, so the pipeline merges or
// refuses what has changed since.
func (c *symbolCall) write(ctx context.Context, title string, t *target, text string) (tools.Result, error) {
	// Checked before the write, because the tracker knows the new text afterwards.
	whole := c.Tracker.Check(t.file) == nil
	r, err := c.changeFiles(ctx, c.call, fmt.Sprintf("%s %s in %s", title, t.sym, c.rel(t.path)), []lspbridge.FileEdit{{Path: t.path, Kind: "edit", Old: t.text, New: text}})
	if err != nil {
		return r, err
	}
	if !whole { // the session knows the declaration that it wrote
		list, _ := symbol.Outline(t.path, text)
		for _, s := range list {
			if slices.Equal(s.Path, t.sym.Path) {
				decl, _ := symbol.Read(text, s)
				c.Tracker.Saw(t.file.Real, decl)
			}
		}
	}
	r.Output = c.noted(r.Output)
	return r, nil
}

// replaced is the file's text with the declaration replaced by body. A name does not quote what it replaces, so the session must have seen
// that: the whole file, or the declaration as it is now. When the declaration has changed since it was read, body is merged with it.
func (c *symbolCall) replaced(t *target, body string) (string, error) {
	whole := func(text string, s symbol.Symbol) string { decl, _ := symbol.Read(text, s); return decl }
	now := whole(t.text, t.sym)
	known := c.Tracker.Check(t.file)
	if known == nil || c.Tracker.HasSeen(t.file.Real, now) {
		return symbol.Replace(t.text, t.sym, body)
	}
	// A refusal shows the declaration as it is and counts as having seen it: the repeated call passes without another read.
	refuse := func(why string) (string, error) {
		c.Tracker.Saw(t.file.Real, now)
		_, line := symbol.Read(t.text, t.sym)
		return "", &tools.Error{Kind: replace.Conflict, Message: fmt.Sprintf("%s %s: %s; nothing was written. It is now:\n%s\nRepeat the call with a body that is based on these lines.",
			c.call.Tool, t.sym, why, strings.TrimSuffix(numbered(now, line+1), "\n"))}
	}
	var stale *files.StaleError
	if errors.As(known, &stale) && stale.HasThen {
		list, _ := symbol.Outline(t.path, stale.Then)
		then := slices.DeleteFunc(list, func(s symbol.Symbol) bool { return !slices.Equal(s.Path, t.sym.Path) || s.Kind != t.sym.Kind })
		// Fixed is why a symbol cannot be cut out whole; then there is nothing to compare with.
		if len(then) != 1 || then[0].Fixed != "" {
			return refuse("the file has changed since it was last read, and it had no such declaration then")
		}
		was := whole(stale.Then, then[0])
		if lf(was) == lf(now) {
			c.note("the file has changed since it was last read, elsewhere")
			return symbol.Replace(t.text, t.sym, body)
		}
		wanted, err := symbol.Replace(stale.Then, then[0], body)
		if err != nil {
			return "", err
		}
		// The wanted declaration is what symbol.Replace put between the two ends of the old text that it left alone.
		head := strings.Index(stale.Then, was)
		wanted = wanted[head : len(wanted)-(len(stale.Then)-head-len(was))]
		merged, ok := replace.Merge(strings.Split(lf(was), "\n"), strings.Split(lf(now), "\n"), strings.Split(lf(wanted), "\n"))
		if !ok {
			return refuse("it has changed since it was last read, in the same lines")
		}
		lines := make([]string, len(merged))
		for i, l := range merged {
			lines[i] = l.Text
		}
		c.note("it had changed since it was last read; what had changed was kept and body was merged with it")
		// Merging is done on \n, as models write; what goes into the file has the file's line endings.
		eol := "\n"
		if strings.Contains(now, "\r\n") {
			eol = "\r\n"
		}
		at := strings.LastIndexByte(t.text[:t.sym.Start], '\n') + 1
		return t.text[:at] + strings.Join(lines, eol) + t.text[t.sym.End:], nil
	}
	if replace.Keeps(strings.Split(lf(now), "\n"), strings.Split(lf(body), "\n")) {
		return symbol.Replace(t.text, t.sym, body) // body repeats every line, so nothing unseen is lost
	}
	return refuse("it was not read in this session, so replacing it could remove lines that you have not seen")
}

// lf is a text with \n line endings, as models see and write it.
func lf(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// checkShape refuses a replacement that is not a whole declaration: there must be a declaration where one was, and a text that could be
// parsed must still be parseable. Models send a body without its signature, or half of it. Syntax that is newer than the grammar passes
// when the language server finds no error.
func (c *symbolCall) checkShape(asking context.Context, t *target, text string) error {
	list, err := symbol.Outline(t.path, text)
	if err != nil || text == t.text {
		return nil // no grammar, so only the language server's check of the proposal can tell
	}
	before, beforeErr := symbol.Outline(t.path, t.text)
	if twice, ok := symbol.Doubled(t.text, text, before, list); ok && beforeErr == nil {
		return &tools.Error{Kind: "not_whole", Message: fmt.Sprintf("%s %s: the file has %s already, and with this body it would be there twice; give the one declaration only. Nothing was written.", c.call.Tool, t.sym, twice)}
	}
	// The body may rename the symbol, so any declaration in the same container that touches the changed bytes [from, to) will do, as long as
	// there are not fewer of the kind than before: a doc comment alone touches the next one.
	up := t.sym.Path[:len(t.sym.Path)-1]
	from := len(commonHead(t.text, text))
	to := len(text) - len(commonTail(t.text[from:], text[from:]))
	declared := slices.ContainsFunc(list, func(s symbol.Symbol) bool {
		return s.Start < to && s.End > from && len(s.Path) > len(up) && slices.Equal(s.Path[:len(up)], up)
	}) && (beforeErr != nil || t.sym.Declares(t.text, text, before, list))
	was, _ := symbol.Broken(t.path, t.text)
	is, ok := symbol.Broken(t.path, text)
	// In a file that had syntax errors before, an error does not prove that the body is wrong.
	if declared && (was || !is || !ok) {
		return nil
	}
	why := "body is not a whole declaration; give it with its signature, as symbol_read shows it"
	if declared {
		why = "with this body the file would have a syntax error"
		if c.Bridge != nil {
			d := c.Bridge.Check(asking, []lspbridge.Proposal{{Path: t.path, Text: text}})
			if d.Certainty == change.Fresh && !slices.ContainsFunc(d.Introduced, func(x change.Problem) bool { return x.Severity == change.SeverityError }) {
				return nil
			}
			for _, x := range d.Introduced {
				why += fmt.Sprintf("\nERROR [%d:%d] %s", lspbridge.ProblemRange(x).Start.Line+1, lspbridge.ProblemRange(x).Start.Character+1, x.Message)
				// Five errors tell what is wrong; the body is sent again anyway.
				if strings.Count(why, "\n") == 5 {
					break
				}
			}
		}
	}
	return &tools.Error{Kind: "not_whole", Message: fmt.Sprintf("%s %s: %s. Nothing was written.", c.call.Tool, t.sym, why)}
}

// commonHead is the text that both begin with, in whole bytes.
func commonHead(a, b string) string {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return a[:n]
}

// commonTail is the text that both end with. The caller cuts the common head off first, or the two could overlap ("aa" and "aaa").
func commonTail(a, b string) string {
	n := 0
	for n < min(len(a), len(b)) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return a[len(a)-n:]
}

// rename renames everywhere through the language server. There is no fallback by name, which would change other symbols of that name. What
// the server may have missed is named in a note and not changed.
func (c *symbolCall) rename(ctx, asking context.Context, t *target, name string) (tools.Result, error) {
	if c.lsp == nil {
		return tools.Result{}, &tools.Error{Kind: "unsupported", Message: "No language server is configured, so the uses are unknown. Find them with grep and change them with edit."}
	}
	edits, err := c.lsp.Rename(asking, t.path, t.position(), name)
	if err != nil {
		return tools.Result{}, err
	}
	if len(edits) == 0 {
		return tools.Result{}, &tools.Error{Kind: "lsp", Message: fmt.Sprintf("the language server changes nothing for %s → %s", t.sym, name)}
	}
	r, err := c.changeFiles(ctx, c.call, fmt.Sprintf("Rename %s to %s", t.sym, name), edits)
	if err != nil {
		return r, err
	}
	c.leftOver(ctx, asking, t)
	r.Output = c.noted(r.Output)
	return r, nil
}

// maxLeftOver is in how many files the old name may still occur to be worth a note: a common word occurs everywhere, and a long list of
// other symbols would send the model off to change them.
const maxLeftOver = 3

// leftOver notes where the old name of a renamed symbol still occurs. Servers leave out what they do
// not build: files for other systems, under other tags, of projects that they have not loaded.
func (c *symbolCall) leftOver(ctx, asking context.Context, t *target) {
	// Errors are ignored: the rename has been made, and a missing note must not read as its failure.
	at, err := c.place(c.Cwd)
	ext := filepath.Ext(t.path)
	if err != nil || ext == "" {
		return
	}
	found, err := c.search.Grep(asking, search.GrepQuery{Root: at.real, Pattern: `\b` + regexp.QuoteMeta(t.sym.Name()) + `\b`, Include: "*" + ext, Show: c.visible(ctx, c.call, at, true), Buffers: c.unsaved()})
	if err != nil {
		return
	}
	var files, places []string
	for _, m := range found.Matches {
		if path := at.named(m.Path); !slices.Contains(files, path) {
			files = append(files, path)
			places = append(places, fmt.Sprintf("%s:%d", c.show(path), m.Line))
		}
	}
	if len(files) > 0 && len(files) <= maxLeftOver {
		slices.Sort(places)
		c.note("%s still occurs at %s: another symbol of that name, a comment, or a use that the language server does not build; look whether it is meant", t.sym.Name(), strings.Join(places, ", "))
	}
}

// remove deletes a symbol when nothing uses it. Where no server can tell, its name must not occur anywhere else in the project: a false use
// costs the model a look, a missed one breaks the build. The error lists at most maxAmbiguous uses.
func (c *symbolCall) remove(ctx, asking context.Context, t *target) (tools.Result, error) {
	text, err := symbol.Delete(t.text, t.sym)
	if err != nil {
		return tools.Result{}, err
	}
	if symbol.Own(t.path) { // keys of data files and CSS rules: no server knows their uses
		return c.write(ctx, "Delete", t, text)
	}
	uses, err := c.uses(ctx, asking, t)
	if err != nil {
		return tools.Result{}, err
	}
	if len(uses) > 0 {
		var b strings.Builder
		fmt.Fprintf(&b, "%s is still used in %s; nothing was deleted. Change these first:", t.sym, textutil.Plural(len(uses), "place"))
		for i, u := range uses {
			if i == maxAmbiguous {
				fmt.Fprintf(&b, "\n… and %d more", len(uses)-i)
				break
			}
			b.WriteString("\n" + u)
		}
		return tools.Result{}, &tools.Error{Kind: "referenced", Message: c.noted(b.String())}
	}
	return c.write(ctx, "Delete", t, text)
}

// uses are the places outside the declaration where the symbol is named, one line each: by the server, or by its name in all files where
// no server supports that. Any other failure of a server is an error, because an empty list would mean "not used".
func (c *symbolCall) uses(ctx, asking context.Context, t *target) ([]string, error) {
	quote := c.lineReader()
	err := fmt.Errorf("no language server is configured: %w", lspbridge.ErrUnsupported)
	if c.lsp != nil {
		var list []lspbridge.Location
		if list, err = c.lsp.References(asking, t.path, t.position()); err == nil {
			var out []string
			for _, l := range list {
				// A function that calls itself is not used by that.
				if at := lspbridge.PositionOffset(t.text, l.Range.Start); l.Path == t.path && t.sym.Start <= at && at < t.sym.End {
					continue
				}
				out = append(out, fmt.Sprintf("%s:%d:%d%s", c.show(l.Path), l.Range.Start.Line+1, l.Range.Start.Character+1, quote(l.Path, l.Range.Start.Line)))
			}
			return out, nil
		}
		if !errors.Is(err, lspbridge.ErrUnsupported) && !errors.Is(err, lspbridge.ErrUnavailable) {
			return nil, fmt.Errorf("cannot find out whether %s is used: %w", t.sym, err)
		}
	}
	c.note("uses were looked for by name only: %v", err)
	at, err := c.place(c.Cwd)
	if err != nil {
		return nil, err
	}
	found, err := c.search.Grep(asking, search.GrepQuery{Root: at.real, Pattern: `\b` + regexp.QuoteMeta(t.sym.Name()) + `\b`, Limit: 1000, Show: c.visible(ctx, c.call, at, true), Buffers: c.unsaved()})
	if err != nil {
		return nil, searchError(at, err)
	}
	var out []string
	from, to := t.lines()
	for _, m := range found.Matches {
		if path := at.named(m.Path); path != t.path || m.Line < from || m.Line > to {
			out = append(out, fmt.Sprintf("%s:%d  %s", c.show(path), m.Line, strings.TrimSpace(m.Text)))
		}
	}
	return out, nil
}
