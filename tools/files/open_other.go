//go:build !unix

package files

import (
	"io/fs"
	"os"
)

// OpenRaw opens a regular file for reading.
func OpenRaw(path string) (*Raw, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if err := kind(path, fi); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if fi, err = f.Stat(); err == nil {
		err = kind(path, fi)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &Raw{Size: fi.Size(), Mode: fi.Mode(), Info: fi, file: f, read: f.Read}, nil
}

// OpenExact opens the file at a path without symbolic links. A link that took its place is not noticed on this system.
func OpenExact(real string) (*Raw, error) { return OpenRaw(real) }

// noFollow has no counterpart here.
const noFollow = 0

// openName, readName and chmod follow links here.
func openName(path string) (*Raw, error) { return OpenRaw(path) }

func readName(path string) ([]byte, error) { return os.ReadFile(path) }

func chmod(path string, mode fs.FileMode) error { return os.Chmod(path, mode) }
