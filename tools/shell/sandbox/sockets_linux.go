//go:build amd64 || arm64

package sandbox

import (
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A command must not connect to the Unix sockets of other programs: Docker, tmux, the session bus or an editor could do for the
// command what it may not do itself. Masking the sockets that exist when the command starts does not cover later ones, and
// Landlock restricts connections by path only from Linux 7.1 on. A seccomp filter cannot read the address of a call. So the
// filter passes connect to Pillion, which started the command (SECCOMP_RET_USER_NOTIF, seccomp_unotify(2)). Pillion copies the
// address and, if the listener belongs to the same command, connects the command's socket itself. So the command cannot
// change the address between the check and the connection.
//
// Unix datagram sockets can send without connect, so the command may not create any; socketpair is for streams only too.

// helperEnd is the file descriptor at which the helper gets its end of the pair from ForHelper: the first of exec.Cmd.ExtraFiles.
const helperEnd = 3

// socketFilter is the filter for sockets and keyrings of a command in a Box. With notify a supervisor carries out connect; without,
// the command cannot create Unix sockets at all. Without ownIPC, a namespace for them, it cannot use System V IPC and message queues: it
// would share those of all programs of the person.
func socketFilter(notify, ownIPC bool) []unix.SockFilter {
	const (
		load  = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		mask  = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
		ret   = unix.BPF_RET | unix.BPF_K
	)
	allow := unix.SockFilter{Code: ret, K: unix.SECCOMP_RET_ALLOW}
	refuse := func(err unix.Errno) unix.SockFilter {
		return unix.SockFilter{Code: ret, K: unix.SECCOMP_RET_ERRNO | uint32(err)}
	}
	// The offsets are those of struct seccomp_data (linux/seccomp.h): argument 0 is at byte 16, argument 1 at byte 24.
	streams := []unix.SockFilter{ // the type is argument 1, with SOCK_CLOEXEC and SOCK_NONBLOCK
		{Code: load, K: 24}, {Code: mask, K: 0xf},
		{Code: equal, Jt: 2, K: unix.SOCK_STREAM}, {Code: equal, Jt: 1, K: unix.SOCK_SEQPACKET},
		refuse(unix.EACCES), allow,
	}
	unixSockets := streams
	if !notify {
		unixSockets = []unix.SockFilter{refuse(unix.EACCES)}
	}
	calls := map[uint32][]unix.SockFilter{
		unix.SYS_SOCKETPAIR: streams,
		// The command could read the keys that other programs of the person keep in keyrings, which have no path (keyrings(7)).
		unix.SYS_ADD_KEY: {refuse(unix.EPERM)}, unix.SYS_REQUEST_KEY: {refuse(unix.EPERM)}, unix.SYS_KEYCTL: {refuse(unix.EPERM)},
		// io_uring creates and connects sockets without the system calls that the filter checks.
		unix.SYS_IO_URING_SETUP: {refuse(unix.ENOSYS)}, unix.SYS_IO_URING_ENTER: {refuse(unix.ENOSYS)}, unix.SYS_IO_URING_REGISTER: {refuse(unix.ENOSYS)},
	}
	// Other families, such as those for the host of a virtual machine or for the kernel's crypto, are not needed by builds. The
	// jump offsets count skipped instructions: AF_UNIX continues with unixSockets, after allow.
	calls[unix.SYS_SOCKET] = slices.Concat([]unix.SockFilter{
		{Code: load, K: 16},
		{Code: equal, Jt: 5, K: unix.AF_UNIX},
		{Code: equal, Jt: 3, K: unix.AF_INET}, {Code: equal, Jt: 2, K: unix.AF_INET6}, {Code: equal, Jt: 1, K: unix.AF_NETLINK},
		refuse(unix.EAFNOSUPPORT), allow,
	}, unixSockets)
	if !ownIPC {
		for _, nr := range ipcCalls {
			calls[nr] = []unix.SockFilter{refuse(unix.EPERM)}
		}
	}
	if notify {
		calls[unix.SYS_CONNECT] = []unix.SockFilter{{Code: ret, K: unix.SECCOMP_RET_USER_NOTIF}}
	}
	return assemble(calls)
}

// ipcCalls are System V IPC and POSIX message queues, which have keys and names instead of paths; Landlock does not restrict them.
var ipcCalls = []uint32{unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL, unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMCTL, unix.SYS_SEMTIMEDOP, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK}

// restrictSockets installs the filter in the helper and sends the listener, the descriptor for notifications, to Pillion. Without
// a supervisor the command gets no Unix sockets. That also holds inside another sandbox, whose filter has a listener already:
// a second one fails with EBUSY (seccomp(2)).
func (b *Box) restrictSockets() error {
	if !b.Supervised {
		return installFilter(socketFilter(false, b.Support.Mounts))
	}
	defer unix.Close(helperEnd)
	listener, err := installFilterWith(socketFilter(true, b.Support.Mounts), unix.SECCOMP_FILTER_FLAG_NEW_LISTENER)
	if err != nil {
		return installFilter(socketFilter(false, b.Support.Mounts))
	}
	defer unix.Close(listener)
	return unix.Sendmsg(helperEnd, []byte{0}, unix.UnixRights(listener), nil, 0)
}

// ForHelper returns the file that the next command's helper must get as the first of exec.Cmd.ExtraFiles, or nil if it needs none.
// It must be called before Argv, since it sets Supervised. After the start the caller closes the file and calls Supervise.
func (b *Box) ForHelper() *os.File {
	if !b.Support.Mounts { // sameView recognises a command by its mount namespace
		return nil
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	b.Supervised = true
	b.ours = os.NewFile(uintptr(pair[0]), "sandbox")
	return os.NewFile(uintptr(pair[1]), "sandbox helper")
}

// Supervise starts a goroutine that carries out the connections of the command. It ends with the command's last process. Without
// ForHelper it does nothing.
func (b *Box) Supervise() {
	if b.ours == nil {
		return
	}
	ours := b.ours
	b.ours = nil
	s := &supervisor{network: b.Network || b.Support.Netns, ownNet: !b.Network && b.Support.Netns, databases: b.Network}
	go func() {
		listener, err := receiveListener(ours)
		_ = ours.Close()
		if err != nil {
			return // the helper has ended; its error is in the command's output
		}
		defer unix.Close(listener)
		s.run(listener)
	}()
}

// receiveListener waits for the descriptor that the helper sends (SCM_RIGHTS, unix(7)). It fails with io.ErrUnexpectedEOF if the
// helper ends without sending one.
func receiveListener(from *os.File) (int, error) {
	var fds []int
	conn, err := from.SyscallConn()
	if err != nil {
		return -1, err
	}
	var failed error
	err = conn.Read(func(fd uintptr) bool {
		oob := make([]byte, unix.CmsgSpace(4))
		n, oobn, _, _, err := unix.Recvmsg(int(fd), make([]byte, 1), oob, unix.MSG_CMSG_CLOEXEC)
		if err == unix.EAGAIN || err == unix.EINTR {
			return false
		}
		if failed = err; err != nil || n == 0 {
			return true
		}
		messages, err := unix.ParseSocketControlMessage(oob[:oobn])
		if err == nil && len(messages) == 1 {
			fds, err = unix.ParseUnixRights(&messages[0])
		}
		failed = err
		return true
	})
	if err == nil {
		err = failed
	}
	if err == nil && len(fds) != 1 {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return -1, err
	}
	return fds[0], nil
}

// supervisor carries out the connect calls of one command.
type supervisor struct {
	network   bool // internet sockets may connect: the command has the network, or a network namespace of its own
	ownNet    bool // the command has a network namespace, and so its own abstract sockets
	databases bool // the command may connect to the sockets of local databases, see reachable
}

// notification is the kernel's struct seccomp_notif (linux/seccomp.h): a call that waits for its result.
type notification struct {
	id         uint64
	pid, flags uint32
	nr         int32
	arch       uint32
	ip         uint64
	args       [6]uint64
}

// response is the kernel's struct seccomp_notif_resp (linux/seccomp.h). id is that of the notification; errno is 0 on success.
type response struct {
	id    uint64
	val   int64
	errno int32 // negative
	flags uint32
}

// run handles notifications until the last process of the command has ended. Each connection gets a goroutine, because one that
// waits for its peer must not delay the others.
func (s *supervisor) run(listener int) {
	poll := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(poll, -1); err == unix.EINTR {
			continue
		} else if err != nil || poll[0].Revents&unix.POLLIN == 0 {
			return // POLLHUP: no process has the filter any more
		}
		var n notification
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n))); errno != 0 {
			continue // the calling thread was killed meanwhile
		}
		// The goroutine may outlive run, which closes listener, so it gets a duplicate.
		again, err := unix.FcntlInt(uintptr(listener), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			again = listener
		}
		go func() {
			r := response{id: n.id, errno: -int32(s.connect(again, n))}
			_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(again), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&r)))
			if again != listener {
				_ = unix.Close(again)
			}
		}()
	}
}

// connect carries out one connect call: it copies the address and the socket from the calling process, and connects that socket.
func (s *supervisor) connect(listener int, n notification) unix.Errno {
	// n.args are the arguments of connect(2): descriptor, address in the caller's memory, length of the address in bytes.
	pid := int(n.pid)
	size := n.args[2]
	if size > 128 { // larger than struct sockaddr_storage
		return unix.EINVAL
	}
	address := make([]byte, size)
	if size > 0 {
		local := []unix.Iovec{{Base: &address[0], Len: size}}
		if _, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: uintptr(n.args[1]), Len: int(size)}}, 0); err != nil {
			return unix.EFAULT
		}
	}
	socket, err := takeSocket(pid, int(n.args[0]))
	if err != nil {
		return errnoOf(err)
	}
	defer unix.Close(socket)
	id := n.id
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_ID_VALID, uintptr(unsafe.Pointer(&id))); errno != 0 {
		return unix.EINTR // the caller has ended, and another process may have its pid
	}
	domain, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_DOMAIN)
	switch {
	case err != nil:
		return errnoOf(err)
	// In struct sockaddr_un the name follows two bytes for the family (unix(7)).
	case domain == unix.AF_UNIX && len(address) > 2 && binary.NativeEndian.Uint16(address) == unix.AF_UNIX:
		return s.connectUnix(socket, pid, address)
	case (domain == unix.AF_INET || domain == unix.AF_INET6) && !s.network:
		return unix.EACCES
	}
	return connectTo(socket, address)
}

// connectTo is connect(2) with the bytes of a struct sockaddr.
func connectTo(socket int, address []byte) unix.Errno {
	var at unsafe.Pointer
	if len(address) > 0 {
		at = unsafe.Pointer(&address[0])
	}
	_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(socket), uintptr(at), uintptr(len(address)))
	return errno
}

// connectUnix connects to a Unix socket if its listener belongs to the same command, or if it is reachable; otherwise EACCES.
func (s *supervisor) connectUnix(socket, pid int, address []byte) unix.Errno {
	if address[2] == 0 { // an abstract socket, which has no path
		// Abstract names are local to a network namespace; in its own, the command finds only its own sockets.
		if !s.ownNet {
			if errno := s.sameCommand(address, pid); errno != 0 {
				return errno
			}
		}
		return connectTo(socket, address)
	}
	name, _, _ := strings.Cut(string(address[2:]), "\x00")
	if !filepath.IsAbs(name) {
		cwd, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/cwd")
		if err != nil {
			return unix.EACCES
		}
		name = filepath.Join(cwd, name)
	}
	root, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/root", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return unix.EACCES
	}
	defer unix.Close(root)
	// The open descriptor identifies the socket file, so replacing the file before the connection has no effect. IN_ROOT resolves
	// links as the command sees them; NO_MAGICLINKS refuses /proc/…/fd, through which the command could name a file of Pillion.
	file, err := unix.Openat2(root, strings.TrimPrefix(name, "/"), &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS})
	if err != nil {
		return errnoOf(err)
	}
	defer unix.Close(file)
	held := append([]byte{unix.AF_UNIX, 0}, "/proc/self/fd/"+strconv.Itoa(file)+"\x00"...)
	if real, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(file)); err != nil || !reachable(real, s.databases) {
		if errno := s.sameCommand(held, pid); errno != 0 {
			return errno
		}
	}
	return connectTo(socket, held)
}

// sameCommand connects a probe socket to find out who listens. It returns 0 if the listener is a process of the same command as
// pid, else the error for the command's connect. The listener sees the probe as a connection that ends at once.
func (s *supervisor) sameCommand(address []byte, pid int) unix.Errno {
	errno := unix.EPROTOTYPE
	// The listener's type is not known; the wrong one fails with EPROTOTYPE.
	for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_SEQPACKET} {
		probe, err := unix.Socket(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			return errnoOf(err)
		}
		defer unix.Close(probe)
		if errno = connectTo(probe, address); errno == unix.EPROTOTYPE {
			continue
		}
		if errno != 0 {
			return errno
		}
		peer, err := unix.GetsockoptUcred(probe, unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err != nil || !sameView(int(peer.Pid), pid) {
			return unix.EACCES
		}
		return 0
	}
	return errno
}

// sameView reports whether two processes are in the same mount namespace, and not in Pillion's own. Each command has a mount
// namespace, so they belong to the same command. It is false for a listener that has ended and left its socket to a child.
func sameView(a, b int) bool {
	view := func(pid string) string {
		to, _ := os.Readlink("/proc/" + pid + "/ns/mnt")
		return to
	}
	of := view(strconv.Itoa(b))
	return of != "" && of != view("self") && view(strconv.Itoa(a)) == of
}

// takeSocket duplicates a file descriptor of another process (pidfd_getfd(2), Linux 5.6). Both refer to the same socket, so
// connecting the duplicate connects the original.
func takeSocket(pid, fd int) (int, error) {
	process, err := unix.PidfdOpen(leaderOf(pid), 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(process)
	return unix.PidfdGetfd(process, fd, 0)
}

// leaderOf is the process id of a thread. Notifications have the id of the calling thread, but PidfdOpen needs the process.
func leaderOf(thread int) int {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(thread) + "/status")
	if err == nil {
		for line := range strings.Lines(string(status)) {
			if n, ok := strings.CutPrefix(line, "Tgid:"); ok {
				if leader, err := strconv.Atoi(strings.TrimSpace(n)); err == nil {
					return leader
				}
			}
		}
	}
	return thread
}

// errnoOf is the error number that the command's connect returns; EACCES if err has none.
func errnoOf(err error) unix.Errno {
	if errno, ok := err.(unix.Errno); ok {
		return errno
	}
	return unix.EACCES
}
