//go:build unix

package trust

import (
	"io/fs"
	"os"
	"syscall"
)

// onlyOurs reports a file that nobody else may write.
func onlyOurs(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return info.Mode().Perm()&0o022 == 0 && ok && int(st.Uid) == os.Getuid()
}
