package terminal

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"
)

// frame is the rows at the foot of a terminal that are drawn again and again, and the lines that are printed above them for good.
// Bubble Tea's own renderer loses lines and leaves copies of its rows behind when the window is resized while lines are printed: it
// counts rows of the size before. This one needs nothing of the screen but the row of its own cursor, so lines that are printed
// can neither be overwritten nor scroll too far. Its methods are called on the program's goroutine.
type frame struct {
	in  *os.File // the terminal; its size is asked for at each drawing
	out io.Writer
	// reflows: the terminal breaks rows anew when it gets narrower, as all but a few do.
	reflows bool

	before *term.State // the terminal's mode before start; nil: not started
	rows   []string    // as they are on the screen; nil: nothing is
	row    int         // of the cursor in rows
	column int         // of the cursor
	width  int         // of the screen when rows were drawn
}

// cursor is a place in rows; the zero cursor is the first row's first column.
type cursor struct{ row, column int }

// newFrame makes a frame that has not been started. xterm and GNU screen cut rows that do not fit instead of breaking them; both
// say who they are.
func newFrame(in *os.File, out io.Writer) *frame {
	return &frame{in: in, out: out, reflows: os.Getenv("XTERM_VERSION") == "" && os.Getenv("STY") == ""}
}

const (
	setRawKeys   = ansi.SetModeBracketedPaste + ansi.SetModifyOtherKeys2 + "\x1b[>1u" // kitty's keyboard, flag 1: keys are told apart
	resetRawKeys = ansi.ResetModeBracketedPaste + ansi.ResetModifyOtherKeys + "\x1b[<u" + ansi.SetModeTextCursorEnable
	// A terminal that knows the mode paints what is between these two at once; others ignore it.
	beginUpdate = ansi.SetModeSynchronizedOutput + ansi.ResetModeTextCursorEnable
	endUpdate   = ansi.SetModeTextCursorEnable + ansi.ResetModeSynchronizedOutput
)

// start takes the terminal: keys come one by one and are not echoed.
func (f *frame) start() error {
	before, err := rawMode(f.in)
	if err != nil {
		return fmt.Errorf("cannot read keys from the terminal: %w", err)
	}
	f.before = before
	_, err = io.WriteString(f.out, setRawKeys)
	return err
}

// stop takes the frame away and gives the terminal back as it was. Stopping twice does nothing.
func (f *frame) stop() {
	if f.before == nil {
		return
	}
	f.clear()
	_, _ = io.WriteString(f.out, resetRawKeys)
	_ = term.Restore(int(f.in.Fd()), f.before)
	f.before = nil
}

// lend gives the terminal to run, and takes it back afterwards.
func (f *frame) lend(run func() error) error {
	f.stop()
	err := run()
	if again := f.start(); err == nil {
		err = again
	}
	return err
}

// size is the terminal's columns and rows now; ok is false where it does not say.
func (f *frame) size() (columns, rows int, ok bool) {
	columns, rows, err := term.GetSize(int(f.in.Fd()))
	return columns, rows, err == nil && columns > 0 && rows > 0
}

// clear erases the rows; the cursor is where the first one began.
func (f *frame) clear() {
	if f.rows == nil {
		return
	}
	columns, _, ok := f.size()
	if !ok {
		columns = f.width
	}
	_, _ = io.WriteString(f.out, f.home(columns)+ansi.EraseScreenBelow)
	f.rows = nil
}

// wipe clears the whole screen, as Ctrl-L does in a shell.
func (f *frame) wipe() {
	_, _ = io.WriteString(f.out, ansi.CursorHomePosition+ansi.EraseEntireScreen)
	f.rows = nil
}

// home is what moves the cursor to the start of the first row on a screen of that many columns. Rows that do not fit any more have
// been broken by the terminal, so they are counted as it shows them.
func (f *frame) home(columns int) string {
	up := f.row
	if f.reflows && columns < f.width {
		up = f.column / columns
		for _, row := range f.rows[:f.row] {
			up += max(1, (ansi.StringWidth(row)+columns-1)/columns)
		}
	}
	if up == 0 { // CUU with 0 moves up by one (ECMA-48, 8.3.22)
		return "\r"
	}
	return "\r" + ansi.CursorUp(up)
}

// draw prints lines above the frame for good, and draws rows below them. Everything is written at once. rows must be fewer than the screen
// has; what is too wide is cut by the terminal and breaks no row, also where the window got narrower a moment ago.
func (f *frame) draw(above, rows []string, at cursor) {
	columns, _, ok := f.size()
	if !ok {
		columns = max(f.width, 1)
	}
	for i, row := range rows {
		rows[i] = strings.TrimRight(row, " ") // a terminal counts blanks when it breaks rows anew
	}
	whole := f.rows == nil || len(above) > 0 || columns != f.width
	if !whole && slices.Equal(rows, f.rows) && at == (cursor{f.row, f.column}) {
		return
	}
	var b strings.Builder
	b.WriteString(beginUpdate)
	if f.rows != nil {
		b.WriteString(f.home(columns))
	}
	if whole {
		b.WriteString(ansi.EraseScreenBelow)
	}
	for _, line := range above {
		b.WriteString(line + "\r\n")
	}
	b.WriteString(ansi.ResetModeAutoWrap)
	for i, row := range rows {
		if i > 0 {
			b.WriteString("\r\n")
		}
		switch {
		case whole:
			b.WriteString(row)
		// Only what has changed is drawn, so that nothing flickers in terminals without synchronized updates.
		case i >= len(f.rows) || row != f.rows[i]:
			b.WriteString(ansi.EraseEntireLine + row)
		}
	}
	if len(rows) < len(f.rows) && !whole {
		b.WriteString("\r\n" + ansi.EraseScreenBelow + ansi.CursorUp(1))
	}
	if up := len(rows) - 1 - at.row; up > 0 {
		b.WriteString(ansi.CursorUp(up))
	}
	b.WriteString("\r")
	if at.column > 0 {
		b.WriteString(ansi.CursorForward(at.column))
	}
	b.WriteString(ansi.SetModeAutoWrap + endUpdate)
	_, _ = io.WriteString(f.out, b.String())
	f.rows, f.row, f.column, f.width = slices.Clone(rows), at.row, min(at.column, columns-1), columns
}
