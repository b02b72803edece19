//go:build !linux || (!amd64 && !arm64)

package sandbox

import (
	"errors"
	"runtime"
)

// CanContain reports whether commands can be contained here, and why not.
func CanContain() (ok bool, why string) {
	return false, "commands are contained on Linux on amd64 and arm64 only, and this is " + runtime.GOOS + "/" + runtime.GOARCH
}

// Layers is empty: nothing contains commands here.
func Layers() string { return "" }

// Restrict is never reached: Contain has failed.
func (c *Contained) Restrict() error { return errors.New("commands cannot be contained here") }

// Same reports whether two commands are contained alike.
func (c *Contained) Same(*Contained) bool { return false }

// rule is what Contained holds of a restricted thread; there is none here.
type rule struct{}

// Limits are the resource limits of the command.
func (c *Contained) Limits() map[int]uint64 { return nil }
