package run

import (
	"errors"
	"os"
)

// Start always fails: this package does not use the interface that Windows has for pseudo-terminals. The error says what to use instead.
func (ts *Terminals) Start(TerminalCommand) (*Terminal, error) {
	return nil, errors.New("terminals are not available on Windows; use the bash tool")
}

// Resize fails, since there are no terminals to resize.
func (t *Terminal) Resize(rows, cols int) error { return ErrTerminalEnded }

// openPTY always fails, for the reason that Start gives.
func openPTY() (ours, theirs *os.File, err error) {
	return nil, nil, errors.New("pseudo-terminals are not available on Windows; run it without pty")
}

// resize is never called, because openPTY always fails.
func resize(*os.File, int, int) error { return nil }
