//go:build !linux

package run

import (
	"errors"
	"os"
)

// growPipe reports false: pipes have the size that the system gives them.
func growPipe(*os.File) bool { return false }

// splice fails: only Linux has it.
func splice(_, _ uintptr, _ int) (n int, again bool, err error) {
	return 0, false, errors.ErrUnsupported
}
