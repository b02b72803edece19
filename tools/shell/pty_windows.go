package shell

import "errors"

// Start cannot do it here.
func (ts *Terminals) Start(TerminalCommand) (*Terminal, error) {
	return nil, errors.New("terminals are not there on Windows; use the bash tool")
}

// Resize tells the program the size of the window.
func (t *Terminal) Resize(rows, cols int) error { return ErrTerminalEnded }
