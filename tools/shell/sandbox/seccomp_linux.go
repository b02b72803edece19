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

// seccompFilter is the second half of containment: Landlock decides about paths, the filter about what has none. It
// forbids single system calls and lets the rest through, up to the last one that was known when it was written.
//
// It forbids:
//   - sockets, of every family and type: no network, no other program's service. socketpair stays for streams, whose
//     ends can only talk to each other; a datagram pair could send to any Unix socket.
//   - what changes a file's metadata, which Landlock does not cover: mode, owner, times, attributes.
//   - other processes: their memory, limits, priorities, signals where Landlock cannot tell them apart, System V IPC.
//   - new namespaces, mounts, io_uring (it opens sockets without socket), keyrings, kernel administration.
func seccompFilter(landlockVersion int) []unix.SockFilter {
	var p []unix.SockFilter
	op := func(code uint16, jt, jf uint8, k uint32) {
		p = append(p, unix.SockFilter{Code: code, Jt: jt, Jf: jf, K: k})
	}
	calls := map[uint32][]unix.SockFilter{} // what decides about a call, by its number
	const (
		load   = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		anyBit = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
		mask   = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
		ret    = unix.BPF_RET | unix.BPF_K
	)
	// Offsets into struct seccomp_data; both architectures are little-endian.
	// struct seccomp_data is nr, arch (4 bytes each), instruction pointer, then six arguments of 8 bytes (seccomp(2)); arg is the
	// lower half of one.
	arg := func(n int) uint32 { return uint32(16 + 8*n) }
	fail := func(err syscall.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(err) }

	deny := func(err syscall.Errno, numbers ...uint32) {
		for _, nr := range numbers {
			calls[nr] = []unix.SockFilter{{Code: ret, K: fail(err)}}
		}
	}
	// when decides about a call by its arguments: body ends in a verdict.
	when := func(nr uint32, body func()) {
		before := p
		p = nil
		body()
		calls[nr], p = p, before
	}
	// onlyZero forbids a call unless an argument (a process id: 0 is the caller) is 0.
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
		op(mask, 0, 0, 0xf) // without SOCK_CLOEXEC and SOCK_NONBLOCK
		op(equal, 1, 0, unix.SOCK_STREAM)
		op(equal, 0, 1, unix.SOCK_SEQPACKET)
		op(ret, 0, 0, unix.SECCOMP_RET_ALLOW)
		op(ret, 0, 0, fail(unix.EACCES))
	})
	// With ENOSYS a program takes the ordinary calls, as on a kernel without io_uring.
	deny(unix.ENOSYS, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER)
	deny(unix.ENOSYS, unix.SYS_CLONE3) // its flags are in memory; the C library then uses clone
	when(unix.SYS_CLONE, func() {
		op(load, 0, 0, arg(0))
		op(anyBit, 0, 1, unix.CLONE_NEWNS|unix.CLONE_NEWCGROUP|unix.CLONE_NEWUTS|unix.CLONE_NEWIPC|unix.CLONE_NEWUSER|unix.CLONE_NEWPID|unix.CLONE_NEWNET)
		op(ret, 0, 0, fail(unix.EPERM))
		op(ret, 0, 0, unix.SECCOMP_RET_ALLOW)
	})
	// In a user namespace of its own the command would have all capabilities again, over its own mounts.
	deny(unix.EPERM, unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR)

	// Landlock has no rights for metadata: chmod would open a key to other users, and a changed time hides a change from make.
	deny(unix.EROFS, unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT, unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_SETXATTRAT, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR, unix.SYS_REMOVEXATTRAT, unix.SYS_UTIMENSAT, unix.SYS_FILE_SETATTR, unix.SYS_TRUNCATE)
	deny(unix.EROFS, oldMetadataCalls...)
	when(unix.SYS_IOCTL, func() {
		op(load, 0, 0, arg(1))
		for _, request := range []uint32{0x5412 /* TIOCSTI: typing for the person */, 0x541c /* TIOCLINUX */} {
			op(equal, 0, 1, request)
			op(ret, 0, 0, fail(unix.EPERM))
		}
		for _, request := range askingCalls {
			op(equal, 0, 1, request)
			op(ret, 0, 0, unix.SECCOMP_RET_ALLOW)
		}
		// File systems' own calls take a file or folder that is open for reading only and change flags, seal files, make or delete
		// snapshots; Landlock knows of none of that. Their second byte is the family (ioctl(2)). With ENOTTY programs do without.
		op(mask, 0, 0, 0xff00)
		for _, family := range []uint32{'f', 'X', 'v', 'r', 0x94 /* btrfs, and sharing blocks of files */} {
			op(equal, 0, 1, family<<8)
			op(ret, 0, 0, fail(unix.ENOTTY))
		}
		op(ret, 0, 0, unix.SECCOMP_RET_ALLOW)
	})
	if landlockVersion < 3 { // it does not forbid emptying files: opening for reading with O_TRUNC does that
		deny(unix.ENOSYS, unix.SYS_OPENAT2)
		for nr, flags := range openCalls {
			when(nr, func() {
				op(load, 0, 0, arg(flags))
				op(mask, 0, 0, unix.O_TRUNC|unix.O_ACCMODE)
				op(equal, 0, 1, unix.O_TRUNC) // with O_RDONLY, which is 0
				op(ret, 0, 0, fail(unix.EROFS))
				op(ret, 0, 0, unix.SECCOMP_RET_ALLOW)
			})
		}
	}

	if landlockVersion < 6 { // it does not keep signals in
		deny(unix.EPERM, unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO, unix.SYS_PIDFD_SEND_SIGNAL)
	}
	when(unix.SYS_PTRACE, func() { // package guard stops a child before its first instruction, and lets it go
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
	// These reach into other processes of the same user without ptrace; pidfd_getfd would take an open socket out of one.
	deny(unix.EPERM, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE, unix.SYS_PROCESS_MRELEASE, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP, unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES)
	// System V IPC and POSIX message queues have keys and names, not paths that Landlock could judge.
	deny(unix.EPERM, unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL, unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMCTL, unix.SYS_SEMTIMEDOP, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK)
	// Keyrings hold the person's keys. open_by_handle_at names a file without a path and needs CAP_DAC_READ_SEARCH, the one
	// capability that root keeps. The rest administers the kernel, whose log tells of
	// other programs.
	deny(unix.EPERM, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FANOTIFY_INIT,
		unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_SYSLOG, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_VHANGUP)

	return assemble(calls)
}

// askingCalls are the file systems' calls that change nothing: the flags of a file, where its blocks lie, the name of the file
// system (linux/fs.h, linux/fiemap.h).
var askingCalls = []uint32{0x80086601, 0x80046601, 0x80087601, 0x80047601, 0xc020660b, 0x801c581f, 0x81009431}

// assemble makes a filter of what decides about each call. Calls of another architecture, whose numbers mean others, end
// the process; what is newer than this list fails as on a kernel that does not have it.
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

// byNumber decides about a call by a binary search for its number: the kernel runs the filter once for each number
// when it is installed, which a list of a hundred comparisons makes the most of the cost of containment.
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
	// The offset of a conditional jump has eight bits, that of a plain one has 32.
	p = append(p, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, Jf: 1, K: numbers[half]},
		unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JA, K: uint32(len(low))})
	return slices.Concat(p, low, high)
}

// lastKnownCall is rseq_slice_yield, of Linux 6.19. What comes later fails as on a kernel that does not have it.
// A number behind it may be a second way to do what is forbidden above.
const lastKnownCall = unix.SYS_RSEQ_SLICE_YIELD

// installFilter restricts the calling thread, and what it starts, for good. It needs no_new_privs.
func installFilter(filter []unix.SockFilter) error {
	_, err := installFilterWith(filter, 0)
	return err
}

// installFilterWith is installFilter with more SECCOMP_FILTER_FLAG_*. With NEW_LISTENER fd is the listener.
func installFilterWith(filter []unix.SockFilter, flags uintptr) (fd int, err error) {
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	// SPEC_ALLOW: without it some kernels slow all of the command down against speculation, which is not what it is for.
	n, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW|flags, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(filter)
	if errno != 0 {
		return -1, fmt.Errorf("seccomp: %w", errno)
	}
	return int(n), nil
}
