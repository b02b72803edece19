//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// seccompFilter is the filter for contained commands. Landlock restricts access to paths; the filter denies system calls that
// Landlock does not cover, and allows all others up to lastKnownCall.
//
// It denies:
//   - sockets of every family and type, so a command reaches neither the network nor services of this machine. socketpair is
//     allowed for streams, whose ends can only talk to each other; a datagram pair could send to any Unix socket.
//   - changes of a file's metadata: mode, owner, times, attributes.
//   - other processes: their memory, limits, priorities, signals where Landlock cannot tell them apart, System V IPC.
//   - new namespaces, mounts, io_uring (it opens sockets without socket), keyrings, kernel administration.
func seccompFilter(landlockVersion int) []unix.SockFilter {
	var p []unix.SockFilter
	op := func(code uint16, jt, jf uint8, k uint32) {
		p = append(p, unix.SockFilter{Code: code, Jt: jt, Jf: jf, K: k})
	}
	calls := map[uint32][]unix.SockFilter{} // the instructions for each call, by its number; the last ones return a verdict
	const (
		load   = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		anyBit = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
		mask   = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
		ret    = unix.BPF_RET | unix.BPF_K
	)
	// arg is the offset of the lower half of an argument in struct seccomp_data, which has nr and arch (4 bytes each), the
	// instruction pointer (8 bytes) and six arguments of 8 bytes (seccomp(2)). Both architectures are little-endian.
	arg := func(n int) uint32 { return uint32(16 + 8*n) }
	fail := func(err syscall.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(err) }

	deny := func(err syscall.Errno, numbers ...uint32) {
		for _, nr := range numbers {
			calls[nr] = []unix.SockFilter{{Code: ret, K: fail(err)}}
		}
	}
	// when sets the instructions for a call to those that body emits; they must end with ret.
	when := func(nr uint32, body func()) {
		before := p
		p = nil
		body()
		calls[nr], p = p, before
	}
	// onlyZero allows a call only if argument n, a process id, is 0, which stands for the caller itself.
	onlyZero := func(nr uint32, n int) {
		when(nr, func() {
			op(load, 0, 0, arg(n))
			op(equal, 0, 1, 0)
			op(ret, 0, 0, unix.SECCOMP_RET_ALLOW)
			op(ret, 0, 0, fail(unix.EPERM))
		})
	}

	deny(unix.EACCES, unix.SYS_SOCKET, unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_LISTEN, unix.SYS_ACCEPT, unix.SYS_ACCEPT4)
	when(unix.SYS_SOCKETPAIR, func() {
		op(load, 0, 0, arg(1))
		op(mask, 0, 0, 0xf) // clears the flags SOCK_CLOEXEC and SOCK_NONBLOCK
		op(equal, 1, 0, unix.SOCK_STREAM)
		op(equal, 0, 1, unix.SOCK_SEQPACKET)
		op(ret, 0, 0, unix.SECCOMP_RET_ALLOW)
		op(ret, 0, 0, fail(unix.EACCES))
	})
	// After ENOSYS programs use ordinary calls, as on a kernel without io_uring.
	deny(unix.ENOSYS, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER)
	deny(unix.ENOSYS, unix.SYS_CLONE3) // a filter cannot read its flags, which are in memory; after ENOSYS the C library uses clone
	when(unix.SYS_CLONE, func() {
		op(load, 0, 0, arg(0))
		op(anyBit, 0, 1, unix.CLONE_NEWNS|unix.CLONE_NEWCGROUP|unix.CLONE_NEWUTS|unix.CLONE_NEWIPC|unix.CLONE_NEWUSER|unix.CLONE_NEWPID|unix.CLONE_NEWNET)
		op(ret, 0, 0, fail(unix.EPERM))
		op(ret, 0, 0, unix.SECCOMP_RET_ALLOW)
	})
	// In a new user namespace the command would have all capabilities there, and could mount.
	deny(unix.EPERM, unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR)

	// Landlock has no rights for metadata: chmod could make a key readable to other users, and a changed time could hide a change
	// from make.
	deny(unix.EROFS, unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT, unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_SETXATTRAT, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR, unix.SYS_REMOVEXATTRAT, unix.SYS_UTIMENSAT, unix.SYS_FILE_SETATTR, unix.SYS_TRUNCATE)
	deny(unix.EROFS, oldMetadataCalls...)
	when(unix.SYS_IOCTL, func() {
		op(load, 0, 0, arg(1))
		for _, request := range []uint32{0x5412 /* TIOCSTI, which types into the terminal */, 0x541c /* TIOCLINUX */} {
			op(equal, 0, 1, request)
			op(ret, 0, 0, fail(unix.EPERM))
		}
		for _, request := range askingCalls {
			op(equal, 0, 1, request)
			op(ret, 0, 0, unix.SECCOMP_RET_ALLOW)
		}
		// The ioctls of file systems can, on a file that is open for reading only, change flags, seal files, make or delete
		// snapshots; Landlock does not cover that. The second byte of a request is its family (ioctl(2)). After ENOTTY programs
		// work without them.
		op(mask, 0, 0, 0xff00)
		for _, family := range []uint32{'f', 'X', 'v', 'r', 0x94 /* btrfs, and FICLONE */} {
			op(equal, 0, 1, family<<8)
			op(ret, 0, 0, fail(unix.ENOTTY))
		}
		op(ret, 0, 0, unix.SECCOMP_RET_ALLOW)
	})
	if landlockVersion < 3 { // it does not restrict truncation: open with O_RDONLY|O_TRUNC empties a file
		deny(unix.ENOSYS, unix.SYS_OPENAT2)
		for nr, flags := range openCalls {
			when(nr, func() {
				op(load, 0, 0, arg(flags))
				op(mask, 0, 0, unix.O_TRUNC|unix.O_ACCMODE)
				op(equal, 0, 1, unix.O_TRUNC) // the access mode O_RDONLY is 0
				op(ret, 0, 0, fail(unix.EROFS))
				op(ret, 0, 0, unix.SECCOMP_RET_ALLOW)
			})
		}
	}

	if landlockVersion < 6 { // it does not restrict signals
		deny(unix.EPERM, unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO, unix.SYS_PIDFD_SEND_SIGNAL)
	}
	when(unix.SYS_PTRACE, func() { // package guard starts a child stopped (PTRACE_TRACEME) and then detaches from it
		op(load, 0, 0, arg(0))
		op(equal, 1, 0, unix.PTRACE_TRACEME)
		op(equal, 0, 1, unix.PTRACE_DETACH)
		op(ret, 0, 0, unix.SECCOMP_RET_ALLOW)
		op(ret, 0, 0, fail(unix.EPERM))
	})
	onlyZero(unix.SYS_PRLIMIT64, 0)
	onlyZero(unix.SYS_SETPRIORITY, 1)
	onlyZero(unix.SYS_IOPRIO_SET, 1)
	onlyZero(unix.SYS_SCHED_SETAFFINITY, 0)
	onlyZero(unix.SYS_SCHED_SETSCHEDULER, 0)
	onlyZero(unix.SYS_SCHED_SETPARAM, 0)
	onlyZero(unix.SYS_SCHED_SETATTR, 0)
	// These access other processes of the same user without ptrace; pidfd_getfd could copy an open socket of one.
	deny(unix.EPERM, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE, unix.SYS_PROCESS_MRELEASE, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP, unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES)
	// System V IPC and POSIX message queues have keys and names instead of paths, so Landlock does not restrict them.
	deny(unix.EPERM, ipcCalls...)
	// Keyrings hold the person's keys. open_by_handle_at opens a file without a path; it needs CAP_DAC_READ_SEARCH, the one
	// capability that root keeps. The others administer the kernel; its log (syslog) has messages of other programs.
	deny(unix.EPERM, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FANOTIFY_INIT,
		unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_SYSLOG, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_VHANGUP)

	return assemble(calls)
}

// askingCalls are ioctl requests of file systems that only read: the flags of a file, the positions of its blocks, the label
// of the file system (linux/fs.h, linux/fiemap.h).
var askingCalls = []uint32{0x80086601, 0x80046601, 0x80087601, 0x80047601, 0xc020660b, 0x801c581f, 0x81009431}

// assemble makes a filter from the instructions for each call. A call from another architecture, where the numbers have other
// meanings, kills the process. A call after lastKnownCall fails with ENOSYS, and one without instructions is allowed.
func assemble(calls map[uint32][]unix.SockFilter) []unix.SockFilter {
	p := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 4}, // arch, in struct seccomp_data
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, K: seccompArch},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_KILL_PROCESS},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the system call's number
		{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, Jf: 1, K: lastKnownCall + 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)}, // x32 calls too, whose numbers begin at 1<<30
	}
	return append(p, byNumber(slices.Sorted(maps.Keys(calls)), calls)...)
}

// byNumber emits a binary search for the call's number. When a filter is installed, the kernel runs it once for every number; with a
// linear list of a hundred comparisons that would be most of the cost of containing a command.
func byNumber(numbers []uint32, calls map[uint32][]unix.SockFilter) (p []unix.SockFilter) {
	if len(numbers) <= 2 {
		for _, nr := range numbers {
			p = append(p, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: uint8(len(calls[nr])), K: nr})
			p = append(p, calls[nr]...)
		}
		return append(p, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	}
	half := len(numbers) / 2
	low, high := byNumber(numbers[:half], calls), byNumber(numbers[half:], calls)
	// A conditional jump has an offset of 8 bits only, so it skips an unconditional one, which has 32 bits.
	p = append(p, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, Jf: 1, K: numbers[half]},
		unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JA, K: uint32(len(low))})
	return slices.Concat(p, low, high)
}

// lastKnownCall is rseq_slice_yield (Linux 6.19). Calls with higher numbers fail with ENOSYS, since a newer call may be
// another way to do what the filter denies.
const lastKnownCall = unix.SYS_RSEQ_SLICE_YIELD

// installFilter restricts the calling thread, and everything it starts, irrevocably. It needs no_new_privs.
func installFilter(filter []unix.SockFilter) error {
	_, err := installFilterWith(filter, 0)
	return err
}

// installFilterWith is installFilter with more SECCOMP_FILTER_FLAG_*. With NEW_LISTENER fd is the listener.
func installFilterWith(filter []unix.SockFilter, flags uintptr) (fd int, err error) {
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	// Without SPEC_ALLOW some kernels switch on mitigations of speculation, which slow the whole command down and are not needed here.
	n, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW|flags, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(filter)
	if errno != 0 {
		return -1, fmt.Errorf("seccomp: %w", errno)
	}
	return int(n), nil
}
