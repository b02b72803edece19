package tools

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"
)

// The cap of one call's output; OpenCode's figures, so its prompts behave alike here.
const (
	MaxLines  = 2000               // lines one call returns to the model
	MaxBytes  = 50 << 10           // bytes one call returns to the model
	KeepSpill = 7 * 24 * time.Hour // how long the whole text of a capped output stays on disk
)

// Keep says which part of a long output the model sees.
type Keep string

// Head is the default; commands want their tail, or both ends.
const (
	Head     Keep = "head"
	Tail     Keep = "tail"
	HeadTail Keep = "head+tail"
)

// CapOptions say how to cap. The zero value caps with the usual limits and saves nothing. Both limits hold at once; the mark and the hint
// come on top of them.
type CapOptions struct {
	Dir         string // where whole texts go: StateDir/tool-output; empty saves nothing
	Whole       *Whole // the text is only the beginning of this one; nil: it is whole. Only for Head
	MaxLines    int    // 0: MaxLines
	MaxBytes    int    // 0: MaxBytes
	Keep        Keep   // empty: Head
	CanDelegate bool   // the agent has the task tool
}

// Whole is a long text of which an output is only the beginning, because nobody wanted to hold it in memory.
type Whole struct {
	Path         string // the file that has it; empty: none
	Err          error  // why there is no file; nil: none was wanted
	Bytes, Lines int
}

// Capped is a text that fits.
type Capped struct {
	Text      string // with mark and hint when truncated
	Truncated bool
	Path      string // the whole text; empty when nothing was cut or it could not be saved
}

// Cap cuts a text to its limits, at a line's end and never inside a character. A single line longer than the
// limit is cut, not dropped. The whole text goes to a file of its own (mode 0600), old ones are swept.
func Cap(text string, o CapOptions) Capped {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if o.MaxLines <= 0 {
		o.MaxLines = MaxLines
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = MaxBytes
	}
	lines, size := countLines(text), len(text)
	if lines <= o.MaxLines && size <= o.MaxBytes && o.Whole == nil {
		return Capped{Text: text}
	}

	c := Capped{Truncated: true}
	var unsaved error
	if o.Whole != nil {
		c.Path, unsaved, lines, size = o.Whole.Path, o.Whole.Err, o.Whole.Lines, o.Whole.Bytes
	} else if o.Dir != "" {
		c.Path, unsaved = spill(o.Dir, text)
	}
	var head, tail string
	switch o.Keep {
	case Tail:
		tail = keepTail(text, o.MaxLines, o.MaxBytes)
	case HeadTail:
		head = keepHead(text, o.MaxLines/2, o.MaxBytes/2)
		tail = keepTail(text[len(head):], o.MaxLines-o.MaxLines/2, o.MaxBytes-o.MaxBytes/2)
	default:
		head = keepHead(text, o.MaxLines, o.MaxBytes)
	}
	cut := text[len(head) : len(text)-len(tail)]
	removed := size - len(head) - len(tail)
	// A cut within a line: a number of lines would be wrong by one, so bytes are named.
	inside := head != "" && !strings.HasSuffix(head, "\n") || tail != "" && !strings.HasSuffix(cut, "\n")
	mark := "...1 line truncated..."
	if n := lines - countLines(head) - countLines(tail); inside {
		mark = fmt.Sprintf("...%d bytes truncated...", removed)
	} else if n != 1 {
		mark = fmt.Sprintf("...%d lines truncated...", n)
	}
	hint := o.hint(c.Path, unsaved, lines, size, removed)
	head, tail = strings.TrimSuffix(head, "\n"), strings.TrimSuffix(tail, "\n")
	switch {
	case tail == "":
		c.Text = head + "\n\n" + mark + "\n\n" + hint
	case head == "":
		c.Text = mark + "\n\n" + hint + "\n\n" + tail
	default:
		c.Text = head + "\n\n" + mark + "\n\n" + tail + "\n\n" + hint
	}
	return c
}

// hint tells the model how to get at the rest. It must not read the whole file again: that is what the cap prevents.
func (o CapOptions) hint(path string, unsaved error, lines, size, removed int) string {
	all := fmt.Sprintf("The call succeeded, but its output was truncated: %d of %d bytes (%d lines in all) are left out.", removed, size, lines)
	switch {
	case unsaved != nil:
		return all + fmt.Sprintf(" The whole text could not be saved (%v); narrow the call to see the rest.", unsaved)
	case path == "":
		return all + " Narrow the call to see the rest."
	case o.CanDelegate:
		return all + " The whole text is in " + path + "\nDelegate to a task that goes through this file with grep, or read with offset/limit; reading all of it yourself would fill the context."
	}
	return all + " The whole text is in " + path + "\nUse grep, or read with offset/limit, on that file to see the rest."
}

// countLines counts the last line whether or not it ends.
func countLines(s string) int {
	n := strings.Count(s, "\n")
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}

// keepHead returns the longest run of whole lines from the start within both limits. A line that could never fit
// is cut to what room is left, so that one giant line does not hide itself.
func keepHead(s string, lines, size int) string {
	end := 0
	for ; lines > 0 && end < len(s); lines-- {
		n := strings.IndexByte(s[end:], '\n') + 1
		if n == 0 {
			n = len(s) - end
		}
		if end+n > size {
			// A line longer than the whole limit; a shorter one that no longer fits is left to the rest.
			if n > size {
				end = size
				for end > 0 && !utf8.RuneStart(s[end]) {
					end--
				}
			}
			break
		}
		end += n
	}
	return s[:end]
}

// keepTail is keepHead from the other end.
func keepTail(s string, lines, size int) string {
	start := len(s)
	for ; lines > 0 && start > 0; lines-- {
		line := strings.LastIndexByte(strings.TrimSuffix(s[:start], "\n"), '\n') + 1
		if len(s)-line > size {
			if start-line > size {
				start = len(s) - size
				for start < len(s) && !utf8.RuneStart(s[start]) {
					start++
				}
			}
			break
		}
		start = line
	}
	return s[start:]
}

// spillPrefix marks the files that SweepOutput may delete: it leaves everything else in the folder alone.
const spillPrefix = "tool_"

// spill writes a whole output to a new file that only the user can read: outputs hold what commands print, secrets too.
func spill(dir, text string) (string, error) {
	f, err := CreateSaved(dir)
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

// CreateSaved makes the file for a whole output, and removes old ones from the folder.
func CreateSaved(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	_ = SweepOutput(dir, time.Now()) // what cannot be removed today is tried with the next file
	path := filepath.Join(dir, spillPrefix+strings.ToLower(ulid.Make().String()))
	// O_EXCL follows no link that another program has put there.
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// SweepOutput removes the saved outputs older than KeepSpill. A missing folder is fine.
func SweepOutput(dir string, now time.Time) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, e := range entries {
		// A link or a folder with such a name is not ours.
		if !strings.HasPrefix(e.Name(), spillPrefix) || !e.Type().IsRegular() {
			continue
		}
		if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > KeepSpill {
			errs = append(errs, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}
