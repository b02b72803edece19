package run

import (
	"os"

	"golang.org/x/sys/unix"
)

// growPipe gives a pipe the room for a megabyte, the most that anyone may ask for by default (pipe-max-size in pipe(7)), and reports
// whether it has it. Whoever has many such pipes may be refused.
func growPipe(f *os.File) (ok bool) {
	conn, err := f.SyscallConn()
	if err != nil {
		return false
	}
	_ = conn.Control(func(fd uintptr) {
		_, err = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, 1<<20)
	})
	return err == nil
}
