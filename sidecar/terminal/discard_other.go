//go:build !unix && !windows

package terminal

// Discard does nothing: there is no way to see what was typed before.
func (k TTY) Discard() {}
