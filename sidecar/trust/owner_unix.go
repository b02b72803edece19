//go:build unix

package trust

import (
	"io/fs"
	"os"
	"syscall"
)

// onlyOurs reports whether a file is the person's and nobody else may write it: its group and others have no write permission.
func onlyOurs(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return info.Mode().Perm()&0o022 == 0 && ok && int(st.Uid) == os.Getuid()
}
