//go:build !windows

package terminal

import (
	"os"

	"golang.org/x/term"
)

// rawMode makes keys come one by one; term.Restore takes it back.
func rawMode(in *os.File) (*term.State, error) { return term.MakeRaw(int(in.Fd())) }
