//go:build linux || darwin

package share

import (
	"errors"
	"fmt"
	"net"
	"os"
)

// checkPeer reads the credentials of a Unix socket's other end and compares the user. It fails where they cannot be read.
func checkPeer(c net.Conn, read func(fd int) error, uid func() uint32) error {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return errors.New("the connection is no Unix socket")
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return err
	}
	if outer := raw.Control(func(fd uintptr) { err = read(int(fd)) }); outer != nil {
		return outer
	}
	if err != nil {
		return fmt.Errorf("whose process this is cannot be told: %w", err)
	}
	if int(uid()) != os.Getuid() {
		return errors.New("this process is another user's")
	}
	return nil
}
