//go:build !linux || (!amd64 && !arm64)

package sandbox

import (
	"errors"
	"runtime"
)

// CanContain reports that commands cannot be contained on this system, and why.
func CanContain() (ok bool, why string) {
	return false, "commands are contained on Linux on amd64 and arm64 only, and this is " + runtime.GOOS + "/" + runtime.GOARCH
}

// Layers is empty, since commands are not contained on this system.
func Layers() string { return "" }

// Restrict is never called, because Contain fails.
func (c *Contained) Restrict() error { return errors.New("commands cannot be contained here") }

// Same is never called, because Contain fails.
func (c *Contained) Same(*Contained) bool { return false }

// rule only exists so that Contained compiles.
type rule struct{}

// Limits are the resource limits of the command.
func (c *Contained) Limits() map[int]uint64 { return nil }

// confine is never called where there is no Landlock, and does nothing on processors for which its filters are not written.
func (b *Box) confine([]string, Options) {}
