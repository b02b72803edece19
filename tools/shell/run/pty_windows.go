package run

import (
	"errors"
	"os"
)

// Start fails: a pseudo-terminal of Windows needs an interface that this package does not use. The error says what to use.
func (ts *Terminals) Start(TerminalCommand) (*Terminal, error) {
	return nil, errors.New("terminals are not available on Windows; use the bash tool")
}

// Resize fails, since there are no terminals to resize.
func (t *Terminal) Resize(rows, cols int) error { return ErrTerminalEnded }

// openPTY fails: see Start.
func openPTY() (ours, theirs *os.File, err error) {
	return nil, nil, errors.New("pseudo-terminals are not available on Windows; run it without pty")
}

// resize is never called, since openPTY gives nothing to resize.
func resize(*os.File, int, int) error { return nil }
