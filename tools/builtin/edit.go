package builtin

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/diff"
	"github.com/pillion-dev/pillion/tools/files"
	"github.com/pillion-dev/pillion/tools/replace"
	"github.com/pillion-dev/pillion/tools/symbol"
)

//go:embed edit.txt
var editText string

// editParams are those of one replacement in one file; multiedit takes a list of them.
type editParams struct {
	FilePath string `json:"filePath"`
	replacement
}

// replacement is one passage and the text that replaces it. Both may have \n or \r\n; what is written has the file's line ending.
type replacement struct {
	OldString  string `json:"oldString"`
	NewString  string `json:"newString"`
	ReplaceAll bool   `json:"replaceAll,omitempty"`
}

// Edit replaces one passage of a file. The passage may be quoted loosely; see package replace.
func Edit(env Env) tools.Tool {
	c := env.changes()
	return tools.New("edit", editText, func(ctx context.Context, p editParams, call *tools.Call) (tools.Result, error) {
		return c.edit(ctx, call, p.FilePath, []replacement{p.replacement})
	}, tools.WithPermission("edit"), tools.WithKind(tools.KindEdit), editNames)
}

// edit makes replacements in one file, each on the result of those before: all or none, in one
// proposal. An empty oldString creates the file, as in OpenCode's tool.
func (c changes) edit(ctx context.Context, call *tools.Call, path string, rs []replacement) (tools.Result, error) {
	// Names one of several edits in an error; a single one needs no number.
	which := func(i int) string {
		if len(rs) == 1 {
			return ""
		}
		return fmt.Sprintf("edit %d of %d: ", i+1, len(rs))
	}
	for i, r := range rs { // before a person is asked about the file
		if equalButLineEnds(r.OldString, r.NewString) {
			return tools.Result{}, &tools.Error{Kind: replace.Identical, Message: which(i) + "No changes to apply: oldString and newString are identical."}
		}
		// Only the first edit may create the file; for a later one there is a text.
		if i > 0 && r.OldString == "" {
			return tools.Result{}, emptyOld(which(i))
		}
	}
	f, err := c.open(ctx, call, path)
	if err != nil {
		return tools.Result{}, err
	}
	m := member{File: change.File{Path: f.Path, Kind: change.Edit, Old: f.Text}, base: f}
	exists := f.Exists || f.Dirty
	text := f.Text
	if !exists {
		if rs[0].OldString != "" {
			return tools.Result{}, missing(f.Path)
		}
		// Where the file was read and has been deleted since, the model must learn that before it creates the file again.
		if err := c.requireRead(f); err != nil {
			return tools.Result{}, err
		}
		m.Kind, text = change.Create, rs[0].NewString
	} else if rs[0].OldString == "" { // before the check below: reading the file first would not help
		return tools.Result{}, emptyOld(c.rel(f.Path) + ": " + which(0))
	}
	var notes []string
	whole := true // the model knows the whole file, not only the lines that it quotes
	if exists {
		if err := c.askUnseen(ctx, call, f); err != nil {
			return tools.Result{}, err
		}
		if err := c.Tracker.Check(f); err != nil {
			note, all, ok := c.quotesExactly(f, err, rs)
			if !ok {
				// Never nil here: it words the error that Check found, and says what changed.
				return tools.Result{}, c.requireRead(f)
			}
			whole, notes = all, append(notes, note...)
		}
	}
	// reworded is the last passage in which the quotation has other words than the file, for the error of unbroken.
	replaced, reworded := 0, ""
	for i, r := range rs {
		if i == 0 && !exists {
			replaced++
			continue
		}
		// Each edit works on the result of those before it.
		res, err := replacePassage(f.Path, text, r)
		if err != nil {
			return tools.Result{}, inFile(c.rel(f.Path), which(i), err)
		}
		text = res.Text
		replaced += len(res.Spans)
		if res.Reworded {
			s := res.Spans[0]
			reworded = fmt.Sprintf("%s, which are:\n%s", replace.LineRange(s.StartLine, s.EndLine), capLines(res.Replaced, 60))
		}
		if n := describeMatch(res); n != "" {
			notes = append(notes, which(i)+n)
		}
	}
	// Checked once, at the end: one edit may break the syntax and the next one repair it.
	if reworded != "" {
		if err := c.unbroken(f, text, reworded); err != nil {
			return tools.Result{}, err
		}
	}
	m.New = text
	return c.propose(ctx, call, proposal{
		done: "Edit applied successfully.", note: strings.Join(notes, "\n"), members: []member{m}, told: whole,
		meta: map[string]any{"replacements": replaced},
	})
}

// unbroken refuses a loosely matched edit after which the file cannot be parsed any more: the quotation has other words than the
// file, so the passage may be the wrong one, or wrongly merged. Where only white space differs, the new text itself is to blame; the
// edit is then proposed with a note, see syntaxNote.
func (c changes) unbroken(f *files.File, text, at string) error {
	line, broken := symbol.Breaks(f.Path, f.Text, text)
	if !broken {
		return nil
	}
	return &tools.Error{Kind: replace.Conflict, Message: fmt.Sprintf("%s: nothing was changed, because the file would have a syntax error at or before line %d, and the quotation is not what the file has at %s\nQuote these lines exactly and repeat the call.",
		c.rel(f.Path), line, at)}
}

// quotesExactly reports, as ok, that every oldString occurs in the file exactly and only once. A model that can quote so has seen the
// lines (by grep, in a command's output), and they have not changed since; so the edit is allowed although the file was not read, or
// has changed elsewhere. why is the error of Tracker.Check. whole says that with notes, which show the changes, the model knows all of
// the file.
func (c changes) quotesExactly(f *files.File, why error, rs []replacement) (notes []string, whole, ok bool) {
	text := strings.ReplaceAll(f.Text, "\r\n", "\n")
	for i, r := range rs {
		old := strings.ReplaceAll(strings.TrimPrefix(r.OldString, "\ufeff"), "\r\n", "\n")
		first := strings.Index(text, old)
		if first < 0 || strings.TrimSpace(old) == "" || strings.LastIndex(text, old) != first {
			return nil, false, false
		}
		if i+1 < len(rs) { // a file may be long
			text = text[:first] + strings.ReplaceAll(r.NewString, "\r\n", "\n") + text[first+len(old):]
		}
	}
	var stale *files.StaleError
	switch {
	case errors.Is(why, files.ErrUnread):
		return nil, false, !isBinary(f)
	case !errors.As(why, &stale):
		return nil, false, false
	}
	note, whole := c.sinceRead(stale, "The file has changed since it was last read, elsewhere: oldString is still in it exactly, so the edit was made in the file as it is now.")
	return []string{note}, whole, true
}

// sinceRead tells the model what has changed in a file since it was last read, after the words that say so. whole says that with this the
// model knows all of the file.
func (c changes) sinceRead(stale *files.StaleError, words string) (note string, whole bool) {
	if !stale.HasThen {
		return words + " Read it again before you write the whole of it.", false
	}
	rel := c.rel(stale.Path)
	changed, all := firstLines(diff.Unified(rel, rel, stale.Then, stale.Now.Text), 200)
	if !all {
		changed += "\n… (cut)"
	}
	return words + " What had changed:\n" + changed, all
}

// equalButLineEnds reports that two texts differ at most in their line endings. Such an edit changes nothing: the file decides those.
func equalButLineEnds(a, b string) bool {
	return strings.ReplaceAll(a, "\r\n", "\n") == strings.ReplaceAll(b, "\r\n", "\n")
}

// emptyOld is the error for an empty oldString where the file exists: there is no telling where newString belongs.
func emptyOld(which string) error {
	return &tools.Error{Kind: replace.EmptyOld,
		Message: which + "oldString cannot be empty when editing an existing file. Provide the exact text to replace, or use write for an intentional full-file replacement."}
}

// replacePassage makes one replacement in the text of a file. A byte order mark in the quotation is dropped: the text has been read without one.
func replacePassage(path, text string, r replacement) (replace.Result, error) {
	literals := func(text string) ([][2]int, bool) { return symbol.LongLiterals(path, text) }
	return replace.ApplyIn(literals, text, strings.TrimPrefix(r.OldString, "\ufeff"), strings.TrimPrefix(r.NewString, "\ufeff"), r.ReplaceAll)
}

// inFile adds the file and the number of the edit to an error of the edit engine, and keeps its kind, which the event of the call
// records. Other errors pass unchanged.
func inFile(rel, which string, err error) error {
	var r *replace.Error
	if errors.As(err, &r) {
		return &tools.Error{Kind: r.Kind, Message: fmt.Sprintf("%s: %s%s", rel, which, r.Message), Err: err}
	}
	return err
}

// describeMatch tells which passage a loose quotation matched, so that the model learns what the file really
// has and quotes it exactly next time. Empty for an exact match.
func describeMatch(r replace.Result) string {
	var sb strings.Builder
	// "simple" is the exact match; the other stages of package replace are named after what they ignore.
	if r.Stage != "simple" && len(r.Spans) > 0 {
		s := r.Spans[0]
		fmt.Fprintf(&sb, "oldString does not stand in the file exactly as quoted; it was found at %s by the %s match.", replace.LineRange(s.StartLine, s.EndLine), r.Stage)
	}
	if r.Replaced != "" {
		fmt.Fprintf(&sb, " These lines were really replaced:\n%s", capLines(r.Replaced, 60))
	}
	if r.Written != "" {
		fmt.Fprintf(&sb, "\nnewString was adapted to fit; this was written:\n%s", capLines(r.Written, 60))
	}
	return strings.TrimSpace(sb.String())
}
