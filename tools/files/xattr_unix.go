//go:build linux || darwin

package files

import (
	"strings"

	"golang.org/x/sys/unix"
)

// copyXattrs copies the extended attributes that this user may set, ACLs among them (xattr(7)). Errors are ignored, since only the
// system may set some of them, and a file without an attribute is better than one that cannot be saved.
func copyXattrs(from, to string) {
	n, err := unix.Llistxattr(from, nil)
	if err != nil || n <= 0 {
		return
	}
	names := make([]byte, n)
	if n, err = unix.Llistxattr(from, names); err != nil {
		return
	}
	for _, name := range strings.Split(string(names[:n]), "\x00") {
		if name == "" || name == "security.capability" { // the kernel drops capabilities when a file is written (capabilities(7))
			continue
		}
		n, err := unix.Lgetxattr(from, name, nil)
		if err != nil {
			continue
		}
		v := make([]byte, n)
		if n, err = unix.Lgetxattr(from, name, v); err == nil {
			_ = unix.Lsetxattr(to, name, v[:n], 0)
		}
	}
}
