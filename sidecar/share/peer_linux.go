package share

import (
	"net"

	"golang.org/x/sys/unix"
)

// sameUser checks that the process at the other end of a connection is the same user's, as the kernel noted it when the connection
// was made (SO_PEERCRED, unix(7)). It guards what the mode of the folder guards, in case that was changed or the folder is one of a
// file system without modes.
func sameUser(c net.Conn) error {
	var peer *unix.Ucred
	return checkPeer(c, func(fd int) (err error) {
		peer, err = unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		return err
	}, func() uint32 { return peer.Uid })
}
