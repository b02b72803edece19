package run

import (
	"errors"
	"os"
)

// Start cannot do it here.
// The error names what to use in its place.
func (ts *Terminals) Start(TerminalCommand) (*Terminal, error) {
	return nil, errors.New("terminals are not there on Windows; use the bash tool")
}

// Resize tells the program the size of the window.
func (t *Terminal) Resize(rows, cols int) error { return ErrTerminalEnded }

func openPTY() (ours, theirs *os.File, err error) {
	return nil, nil, errors.New("there are none on Windows; run it without pty")
}

func resize(*os.File, int, int) error { return nil }
