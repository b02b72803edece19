//go:build !linux

package shell

import (
	"os"
	"syscall"
)

func selfProgram() string {
	p, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return p
}

// attributes are only needed on Linux.
func (b *Sandbox) attributes(*syscall.SysProcAttr) {}

// release has nothing to clean up.
func (b *Sandbox) release(int) {}
