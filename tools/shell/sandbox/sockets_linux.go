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

// A Unix socket leads out of the sandbox: Docker, tmux, the session bus or an editor would do for the command what it may
// not. Masking those that listen when the command starts leaves out those made later, and Landlock knows sockets by path
// only from Linux 7.1 on. A seccomp filter cannot read an address. So it hands connect over to the program that started
// the command (SECCOMP_RET_USER_NOTIF), which connects the command's socket itself where the listener belongs to the same
// command. Nothing of the call is left to the command, so it cannot change the address between the look and the connection.
//
// Datagram sockets need no connection to send, so the command gets none of them; socketpair keeps to streams likewise.

// helperEnd is the file descriptor on which the helper gets its end of ForHelper's pair: the first of exec.Cmd.ExtraFiles.
const helperEnd = 3

// socketFilter is what the command may do with sockets, and with keyrings. notify: connect is carried out by a supervisor; otherwise there
// are no Unix sockets at all.
func socketFilter(notify bool) []unix.SockFilter {
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
		// Keyrings belong to the person and have no path: what a program keeps there could be read (keyrings(7)).
		unix.SYS_ADD_KEY: {refuse(unix.EPERM)}, unix.SYS_REQUEST_KEY: {refuse(unix.EPERM)}, unix.SYS_KEYCTL: {refuse(unix.EPERM)},
		// It opens and connects sockets without these calls.
		unix.SYS_IO_URING_SETUP: {refuse(unix.ENOSYS)}, unix.SYS_IO_URING_ENTER: {refuse(unix.ENOSYS)}, unix.SYS_IO_URING_REGISTER: {refuse(unix.ENOSYS)},
	}
	// Other families lead elsewhere (a virtual machine's host, the kernel's crypto), and no build needs them. The offsets
	// count the instructions that are skipped: AF_UNIX goes to its own part behind allow.
	calls[unix.SYS_SOCKET] = slices.Concat([]unix.SockFilter{
		{Code: load, K: 16},
		{Code: equal, Jt: 5, K: unix.AF_UNIX},
		{Code: equal, Jt: 3, K: unix.AF_INET}, {Code: equal, Jt: 2, K: unix.AF_INET6}, {Code: equal, Jt: 1, K: unix.AF_NETLINK},
		refuse(unix.EAFNOSUPPORT), allow,
	}, unixSockets)
	if notify {
		calls[unix.SYS_CONNECT] = []unix.SockFilter{{Code: ret, K: unix.SECCOMP_RET_USER_NOTIF}}
	}
	return assemble(calls)
}

// restrictSockets installs the filter on the helper, which then becomes the command, and sends the listener to the program
// that started it. Where there is no supervisor, or a filter around us has one already, there are no Unix sockets.
// A second listener in a process fails with EBUSY (seccomp(2)).
func (b *Box) restrictSockets() error {
	if !b.Supervised {
		return installFilter(socketFilter(false))
	}
	defer unix.Close(helperEnd)
	listener, err := installFilterWith(socketFilter(true), unix.SECCOMP_FILTER_FLAG_NEW_LISTENER)
	if err != nil {
		return installFilter(socketFilter(false))
	}
	defer unix.Close(listener)
	return unix.Sendmsg(helperEnd, []byte{0}, unix.UnixRights(listener), nil, 0)
}

// ForHelper is the file that the helper of the next command must get as the first of exec.Cmd.ExtraFiles, before Argv is
// called; Supervise goes with it. The caller closes it after the start. Nil: the helper gets none.
func (b *Box) ForHelper() *os.File {
	if !b.Support.Mounts { // a command is known by its view of the file system
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

// Supervise carries out the connections of a command that was started with ForHelper, in the background, until nothing of
// it is left.
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
			return // the helper has ended, or told why it cannot begin
		}
		defer unix.Close(listener)
		s.run(listener)
	}()
}

// receiveListener waits for the one descriptor that the helper sends (SCM_RIGHTS, unix(7)). It fails with io.ErrUnexpectedEOF
// when the helper ended without sending one.
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

// supervisor answers the connections of one command.
type supervisor struct {
	network   bool // internet sockets may be connected: the network is open, or the command's own
	ownNet    bool // the command has a network of its own, and with it abstract sockets of its own
	databases bool // those of this machine may be reached by their sockets
}

// notification and response are the kernel's struct seccomp_notif and seccomp_notif_resp (linux/seccomp.h).
type notification struct {
	id         uint64
	pid, flags uint32
	nr         int32
	arch       uint32
	ip         uint64
	args       [6]uint64
}

// response carries the id of the notification that it answers; errno is 0 for a connection that was made.
type response struct {
	id    uint64
	val   int64
	errno int32 // negative
	flags uint32
}

// run answers until the last process of the command has ended.
// Each connection gets a goroutine: one that waits for its peer must not stop the others.
func (s *supervisor) run(listener int) {
	poll := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(poll, -1); err == unix.EINTR {
			continue
		} else if err != nil || poll[0].Revents&unix.POLLIN == 0 {
			return // hung up: nothing is filtered any more
		}
		var n notification
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n))); errno != 0 {
			continue // who called has been killed meanwhile
		}
		// A connection may take minutes, and the command may make others meanwhile.
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

// connect connects the caller's own socket to the address that it gave, both as they were when it called.
func (s *supervisor) connect(listener int, n notification) unix.Errno {
	// n.args are those of connect(2): descriptor, address in the memory of the caller, length of the address in bytes.
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
		return unix.EINTR // pid may be another process by now
	}
	domain, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_DOMAIN)
	switch {
	case err != nil:
		return errnoOf(err)
	// struct sockaddr_un begins with two bytes of family; the name follows (unix(7)).
	case domain == unix.AF_UNIX && len(address) > 2 && binary.NativeEndian.Uint16(address) == unix.AF_UNIX:
		return s.connectUnix(socket, pid, address)
	case (domain == unix.AF_INET || domain == unix.AF_INET6) && !s.network:
		return unix.EACCES
	}
	return connectTo(socket, address)
}

// connectTo is connect with an address as it stands in memory.
func connectTo(socket int, address []byte) unix.Errno {
	var at unsafe.Pointer
	if len(address) > 0 {
		at = unsafe.Pointer(&address[0])
	}
	_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(socket), uintptr(at), uintptr(len(address)))
	return errno
}

// connectUnix connects to a listener of the same command, and to nothing else.
func (s *supervisor) connectUnix(socket, pid int, address []byte) unix.Errno {
	if address[2] == 0 { // abstract: it has a name and no place
		// Abstract names belong to a network namespace, so in one of its own the command can only meet itself.
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
	// The socket file is held from here on, so that no other can take its name before the connection.
	// IN_ROOT resolves links as the command sees them, NO_MAGICLINKS refuses /proc/…/fd, by which it could name a file of Pillion.
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

// sameCommand connects a socket of its own, to see who listens: 0 when it is a process of the command that pid belongs to.
// The listener sees that connection end at once.
func (s *supervisor) sameCommand(address []byte, pid int) unix.Errno {
	errno := unix.EPROTOTYPE
	// A socket of the other kind is refused with EPROTOTYPE, and the kind of the listener cannot be asked for.
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

// sameView reports whether two processes see the file system in the same namespace, which is not ours: it was made for one
// command. A listener that has ended, and left its socket to a child, counts as a stranger.
func sameView(a, b int) bool {
	view := func(pid string) string {
		to, _ := os.Readlink("/proc/" + pid + "/ns/mnt")
		return to
	}
	of := view(strconv.Itoa(b))
	return of != "" && of != view("self") && view(strconv.Itoa(a)) == of
}

// takeSocket makes a copy of a file descriptor of another process (pidfd_getfd(2), Linux 5.6). Both share the socket, so the
// copy connects the original.
func takeSocket(pid, fd int) (int, error) {
	process, err := unix.PidfdOpen(leaderOf(pid), 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(process)
	return unix.PidfdGetfd(process, fd, 0)
}

// leaderOf is the process of a thread: the kernel names the thread that called.
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

// errnoOf is what the command gets as the error of its connect; EACCES where there is no number.
func errnoOf(err error) unix.Errno {
	if errno, ok := err.(unix.Errno); ok {
		return errno
	}
	return unix.EACCES
}
