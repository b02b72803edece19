//go:build unix

package share

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// supported is true where there are Unix sockets.
const supported = true

// folder is where the sockets are: a folder that only the person can enter. XDG_RUNTIME_DIR is preferred,
// because it is emptied at logout. It refuses a folder of another user: the one below the temporary folder has a name
// that can be guessed.
func folder() (string, error) {
	dir := os.Getenv("XDG_RUNTIME_DIR")
	if filepath.IsAbs(dir) {
		dir = filepath.Join(dir, "pillion")
	}
	// A socket cannot be made at a path that does not fit into sockaddr_un (unix(7)), so the temporary folder is used instead.
	// The name in the condition is the longest one that Listen makes: seven digits, eight hexadecimal digits.
	if !filepath.IsAbs(dir) || len(dir)+len("/1234567-12345678.sock") > maxPath {
		dir = filepath.Join(os.TempDir(), fmt.Sprintf("pillion-%d", os.Getuid()))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("sessions cannot be shared: %w", err)
	}
	// Lstat, not Stat: a symbolic link that another user has placed there must not be followed.
	info, err := os.Lstat(dir)
	if err != nil {
		return "", err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || int(owner.Uid) != os.Getuid() {
		return "", fmt.Errorf("sessions cannot be shared: %s is not a folder of yours; remove it, or set XDG_RUNTIME_DIR", dir)
	}
	if info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(dir, 0o700); err != nil {
			return "", fmt.Errorf("sessions cannot be shared: other users can read %s: %w", dir, err)
		}
	}
	return dir, nil
}

// isStale reports that no process listens on a socket any more, or that it does not exist.
func isStale(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, os.ErrNotExist)
}
