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
		_, err = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeRoom)
	})
	return err == nil
}

// splice moves at most so many bytes from a pipe to a file (splice(2)): 0 at the end of the pipe, again while it is empty.
func splice(pipe, file uintptr, most int) (n int, again bool, err error) {
	for {
		moved, err := unix.Splice(int(pipe), nil, int(file), nil, most, unix.SPLICE_F_NONBLOCK|unix.SPLICE_F_MOVE)
		switch err {
		case nil:
			return int(moved), false, nil
		case unix.EINTR:
		case unix.EAGAIN:
			return 0, true, nil
		default:
			return 0, false, err
		}
	}
}
