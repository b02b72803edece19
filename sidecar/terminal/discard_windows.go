package terminal

import "golang.org/x/sys/windows"

// Discard forgets what was typed before.
func (k TTY) Discard() { _ = windows.FlushConsoleInputBuffer(windows.Handle(k.File.Fd())) }
