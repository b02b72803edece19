package patch

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// looksUnified reports whether the text has a header of a unified diff. A "---" alone is not enough, because Markdown has such lines.
func looksUnified(lines []string) bool {
	for i, line := range lines {
		if strings.HasPrefix(line, "diff --git ") || strings.HasPrefix(line, "diff --cc ") || strings.HasPrefix(line, "diff --combined ") ||
			strings.HasPrefix(line, "--- ") && i+1 < len(lines) && strings.HasPrefix(lines[i+1], "+++ ") {
			return true
		}
	}
	return false
}

// unified is the state of reading a diff; offset is how many lines of the patch text come before lines.
type unified struct {
	lines  []string
	offset int
	ops    []Op
	crlf   bool // the headers end in CR: the whole text came so
}

// parseUnified reads a unified diff, Git's or diff's. offset is where lines begins in the
// model's text, for the line numbers in errors. Carriage returns are dropped from a diff
// whose headers have them: the whole text was converted on its way here.
func parseUnified(lines []string, offset int) (*Patch, error) {
	u := &unified{lines: lines, offset: offset}
	// The first header decides for the whole text.
	for _, line := range lines {
		if strings.HasPrefix(line, "+++ ") || strings.HasPrefix(line, "diff --git ") {
			u.crlf = strings.HasSuffix(line, "\r")
			break
		}
	}
	if u.crlf {
		u.lines = make([]string, len(lines))
		for i, line := range lines {
			u.lines[i] = strings.TrimSuffix(line, "\r")
		}
	}
	for i := 0; i < len(u.lines); {
		line := u.lines[i]
		var err error
		switch {
		case strings.HasPrefix(line, "diff --git "):
			i, err = u.file(i, true)
		case strings.HasPrefix(line, "--- ") && i+1 < len(u.lines) && strings.HasPrefix(u.lines[i+1], "+++ "):
			i, err = u.file(i, false)
		case strings.HasPrefix(line, "diff --cc ") || strings.HasPrefix(line, "diff --combined ") || strings.HasPrefix(line, "@@@ "):
			err = bad(offset+i+1, "combined diffs (of a merge) cannot be applied; give the change against one version")
		case strings.HasPrefix(line, "Binary files ") && strings.HasSuffix(line, " differ"):
			err = bad(offset+i+1, "binary files cannot be patched as text")
		case strings.HasPrefix(line, "@@ -"):
			err = bad(offset+i+1, `a hunk without a file; put "--- path" and "+++ path" before it`)
		default:
			i++ // words around the diff, as in a mail
		}
		if err != nil {
			return nil, err
		}
	}
	return &Patch{Ops: u.ops, Unified: true}, nil
}

// file reads one file's part of the diff from line i and returns the line after it. Names come from rename lines, else
// from --- and +++, else from the header (git-diff(1), "Generating patch text with -p").
func (u *unified) file(i int, git bool) (int, error) {
	op := Op{Kind: Update, Line: u.offset + i + 1}
	var from, to, header string // paths; "" until known
	if git {
		header = u.lines[i][len("diff --git "):]
		i++
	}
	var created, deleted, moved, oldEmpty, newEmpty bool
	for ; git && i < len(u.lines); i++ {
		line := u.lines[i]
		key, value := extended(line)
		switch key {
		case "new file mode", "new mode", "deleted file mode", "old mode":
			mode, err := u.mode(value, i)
			if err != nil {
				return 0, err
			}
			// The old mode is information only.
			if strings.HasPrefix(key, "new") {
				op.Mode = mode
			}
			created, deleted = created || key == "new file mode", deleted || key == "deleted file mode"
		case "rename from", "copy from":
			from, moved, op.Copy = unquote(value), true, key == "copy from"
		case "rename to", "copy to":
			to = unquote(value)
		case "index", "similarity index", "dissimilarity index":
		case "GIT binary patch", "Binary files":
			return 0, bad(u.offset+i+1, "binary files cannot be patched as text")
		default:
			key = ""
		}
		if key == "" {
			break
		}
	}
	if i+1 < len(u.lines) && strings.HasPrefix(u.lines[i], "--- ") && strings.HasPrefix(u.lines[i+1], "+++ ") {
		old, oldTime := diffName(u.lines[i][4:])
		new, newTime := diffName(u.lines[i+1][4:])
		i += 2
		oldEmpty, newEmpty = old == "/dev/null" || epoch(oldTime), new == "/dev/null" || epoch(newTime)
		// rename and copy lines are exact; --- and +++ may have prefixes.
		if !moved {
			from, to = strip(old, new, git)
		}
	} else if git && !moved {
		if from, to = headerNames(header); from == "" {
			return 0, bad(op.Line, "the file's name cannot be told from %s", show("diff --git "+header))
		}
	}
	var err error
	if i, err = u.hunks(&op, i); err != nil {
		return 0, err
	}
	// diff -N does not say that a file is created or deleted: an empty side with the epoch as its time means that it does not exist.
	onlyAdds := len(op.Hunks) == 1 && op.Hunks[0].Top && len(op.Hunks[0].old()) == 0
	onlyCuts := len(op.Hunks) == 1 && len(op.Hunks[0].new()) == 0
	switch {
	case moved && op.Copy:
		op.Path, op.NewPath, op.Kind = from, to, Add
	case moved:
		op.Path, op.NewPath, op.Kind = from, to, Move
	case created || from == "/dev/null" || oldEmpty && onlyAdds:
		op.Path, op.Kind = to, Add
	case deleted || to == "/dev/null" || newEmpty && onlyCuts:
		op.Path, op.Kind = from, Delete
	default:
		if op.Path = to; from != to {
			op.Instead = from
		}
		if len(op.Hunks) == 0 && op.Mode == 0 {
			return 0, &Error{Kind: NoHunks, Path: op.Path, Line: op.Line, Message: fmt.Sprintf("the diff of %s has no hunks; add what changes, or leave the file out", op.Path)}
		}
	}
	if op.Path == "" || op.Path == "/dev/null" {
		return 0, bad(op.Line, "the diff names no file")
	}
	u.ops = append(u.ops, op)
	return i, nil
}

// extended splits one of git's header lines into its name and value.
func extended(line string) (key, value string) {
	for _, k := range []string{"new file mode", "deleted file mode", "old mode", "new mode", "rename from", "rename to",
		"copy from", "copy to", "similarity index", "dissimilarity index", "index", "GIT binary patch", "Binary files"} {
		if rest, ok := strings.CutPrefix(line, k); ok && (rest == "" || rest[0] == ' ') {
			return k, strings.TrimPrefix(rest, " ")
		}
	}
	return "", ""
}

// mode reads an octal mode of Git (gitformat-index(5)) and returns its permission bits. It refuses links (120000) and submodules (160000),
// whose "text" is a path or a commit.
func (u *unified) mode(value string, i int) (fs.FileMode, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(value), 8, 32)
	switch {
	case err != nil:
		return 0, bad(u.offset+i+1, "%q is no file mode", value)
	case n&0o170000 == 0o120000:
		return 0, bad(u.offset+i+1, "symbolic links cannot be patched as text; make the link with a command")
	case n&0o170000 == 0o160000:
		return 0, bad(u.offset+i+1, "submodules cannot be patched; use git")
	}
	return fs.FileMode(n & 0o777), nil
}

// hunks reads the hunks from line i on and returns the line after them. Models miscount, so the counts of a header only decide where a
// hunk ends when its text leaves that open.
func (u *unified) hunks(op *Op, i int) (int, error) {
	for i < len(u.lines) {
		line := u.lines[i]
		if strings.HasPrefix(line, "GIT binary patch") || strings.HasPrefix(line, "Binary files ") && strings.HasSuffix(line, " differ") {
			return 0, bad(u.offset+i+1, "binary files cannot be patched as text")
		}
		head, ok := parseRange(line)
		if !ok {
			if strings.HasPrefix(line, "@@@ ") {
				return 0, bad(u.offset+i+1, "combined diffs (of a merge) cannot be applied; give the change against one version")
			}
			if strings.HasPrefix(line, "@@") {
				h := Hunk{Line: u.offset + i + 1} // a model's @@ without numbers
				h.Context, _ = contextOf(line)
				var err error
				if i, err = u.body(&h, i+1, span{}); err != nil {
					return 0, err
				}
				op.Hunks = append(op.Hunks, h)
				continue
			}
			// A blank line between two hunks belongs to neither.
			if strings.TrimSpace(line) == "" && i+1 < len(u.lines) && strings.HasPrefix(u.lines[i+1], "@@") {
				i++
				continue
			}
			return i, nil
		}
		h := Hunk{Line: u.offset + i + 1, OldStart: head.oldStart, Top: head.oldStart == 0}
		var err error
		if i, err = u.body(&h, i+1, head); err != nil {
			return 0, err
		}
		op.Hunks = append(op.Hunks, h)
	}
	return i, nil
}

// contextOf is hunkContext in the form of Hunk.Context.
func contextOf(line string) ([]string, int) {
	context, at := hunkContext(line)
	if context == "" {
		return nil, at
	}
	return []string{context}, at
}

// body reads a hunk's lines from line i and returns the line after them. head has the counts of the header, all 0 where
// there are none.
func (u *unified) body(h *Hunk, i int, head span) (int, error) {
	old, new := head.oldLines, head.newLines
	for ; i < len(u.lines); i++ {
		line := u.lines[i]
		due := old > 0 || new > 0
		switch {
		case strings.HasPrefix(line, `\`):
			if len(h.Lines) > 0 {
				h.Lines[len(h.Lines)-1].NoEOL = true
			}
			continue
		case strings.HasPrefix(line, "@@") || strings.HasPrefix(line, "diff --git ") || strings.HasPrefix(line, "```"):
			return i, nil // a Markdown fence ends the diff that a model quotes
		// An empty context line whose blank was cut off, or the end.
		case line == "":
			if !due && !u.goesOn(i) {
				return i, nil
			}
			line = " "
		case !due && strings.HasPrefix(line, "--- ") && i+1 < len(u.lines) && strings.HasPrefix(u.lines[i+1], "+++ "):
			return i, nil
		case !due && (line == "-- " || line == "--") && !u.goesOn(i): // a mail's signature
			return i, nil
		// Once the counts are used up, anything else is text behind the diff.
		case !strings.ContainsRune(" +-", rune(line[0])):
			if !due {
				return i, nil
			}
			return 0, bad(u.offset+i+1, "%s begins with none of space, + and -, but the hunk of line %d is not over; put a space before a line that stays", show(line), h.Line)
		}
		if line[0] != '+' {
			old--
		}
		if line[0] != '-' {
			new--
		}
		h.Lines = append(h.Lines, Line{Op: line[0], Text: line[1:]})
	}
	return i, nil
}

// goesOn reports whether more lines of the same hunk follow line i, by the next line that is not empty. Editors and models remove the
// blank of empty context lines, so an empty line may belong to the hunk.
func (u *unified) goesOn(i int) bool {
	for i++; i < len(u.lines); i++ {
		line := u.lines[i]
		if line == "" {
			continue
		}
		header := strings.HasPrefix(line, "--- ") && i+1 < len(u.lines) && strings.HasPrefix(u.lines[i+1], "+++ ")
		return strings.ContainsRune(" +-", rune(line[0])) && !header && line != "-- "
	}
	return false
}

// span is the numbers of a hunk header; lines count from 1, and a start of 0 means before the first line.
type span struct{ oldStart, oldLines, newStart, newLines int }

// parseRange reads "@@ -a[,b] +c[,d] @@…"; a count that is left out is 1 (POSIX diff -u).
func parseRange(line string) (s span, ok bool) {
	rest, ok := strings.CutPrefix(line, "@@ -")
	if !ok {
		return s, false
	}
	numbers, _, ok := strings.Cut(rest, " @@")
	if !ok {
		return s, false
	}
	old, new, ok := strings.Cut(numbers, " +")
	if !ok {
		return s, false
	}
	one := func(text string, start, count *int) bool {
		a, b, two := strings.Cut(strings.TrimSpace(text), ",")
		*count = 1
		n, err := strconv.Atoi(a)
		if *start = n; err != nil || n < 0 {
			return false
		}
		if two {
			n, err = strconv.Atoi(b)
			*count = n
		}
		return err == nil && n >= 0
	}
	ok = one(old, &s.oldStart, &s.oldLines) && one(new, &s.newStart, &s.newLines)
	return s, ok
}

// side is the hunk without the lines of one kind; old and new are its two texts.
func (h *Hunk) side(not byte) []Line {
	var out []Line
	for _, l := range h.Lines {
		if l.Op != not {
			out = append(out, l)
		}
	}
	return out
}

// old are the lines before the change, new those after it.
func (h *Hunk) old() []Line { return h.side('+') }
func (h *Hunk) new() []Line { return h.side('-') }
