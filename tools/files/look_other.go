//go:build !unix

package files

import (
	"io/fs"
	"os"
)

// Look reports whether something has this name, a broken link too, and whether it is a symbolic link.
func Look(path string) (there, link bool) {
	fi, err := os.Lstat(path)
	return err == nil, err == nil && fi.Mode()&fs.ModeSymlink != 0
}
