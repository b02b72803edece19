package share

import (
	"net"

	"golang.org/x/sys/unix"
)

// sameUser checks that the process at the other end of a connection is the same user's (LOCAL_PEERCRED, unix(4)).
func sameUser(c net.Conn) error {
	var peer *unix.Xucred
	return checkPeer(c, func(fd int) (err error) {
		peer, err = unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
		return err
	}, func() uint32 { return peer.Uid })
}
