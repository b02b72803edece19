//go:build !linux

package sandbox

import (
	"os"
	"syscall"
)

// selfProgram is the path of this program's file. After an update the file may be a newer version than the running program.
func selfProgram() string {
	p, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return p
}

// Attributes are only needed on Linux.
func (b *Box) Attributes(*syscall.SysProcAttr) {}

// ForHelper is only needed on Linux.
func (b *Box) ForHelper() *os.File { return nil }

// Supervise is only needed on Linux.
func (b *Box) Supervise() {}

// Release has nothing to clean up.
func (b *Box) Release(int) {}
