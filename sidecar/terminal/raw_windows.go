package terminal

import (
	"os"

	"golang.org/x/sys/windows"
	"golang.org/x/term"
)

// rawMode makes keys come one by one; term.Restore takes it back. A console acts on escape sequences only when it is told to; that
// mode stays, because everything that Pillion prints later uses them too.
func rawMode(in *os.File) (*term.State, error) {
	out := windows.Handle(os.Stdout.Fd())
	var mode uint32
	if windows.GetConsoleMode(out, &mode) == nil {
		_ = windows.SetConsoleMode(out, mode|windows.ENABLE_PROCESSED_OUTPUT|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING)
	}
	return term.MakeRaw(int(in.Fd()))
}
