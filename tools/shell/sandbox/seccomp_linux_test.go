//go:build amd64 || arm64

package sandbox

import (
	"encoding/binary"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// runFilter is what the kernel makes of a system call (seccomp(2)): the filter's verdict. It knows the instructions that the filter has.
func runFilter(t *testing.T, filter []unix.SockFilter, arch, nr uint32, args []uint64) uint32 {
	t.Helper()
	data := make([]byte, 64)
	binary.LittleEndian.PutUint32(data, nr)
	binary.LittleEndian.PutUint32(data[4:], arch)
	for i, a := range args {
		binary.LittleEndian.PutUint64(data[16+8*i:], a)
	}
	var a uint32
	for pc := 0; ; pc++ {
		in := filter[pc]
		jump := func(yes bool) {
			if yes {
				pc += int(in.Jt)
			} else {
				pc += int(in.Jf)
			}
		}
		switch in.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			a = binary.LittleEndian.Uint32(data[in.K:])
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			a &= in.K
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			jump(a == in.K)
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			jump(a >= in.K)
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			jump(a&in.K != 0)
		case unix.BPF_JMP | unix.BPF_JA:
			pc += int(in.K)
		case unix.BPF_RET | unix.BPF_K:
			return in.K
		default:
			t.Fatalf("instruction %d has the unknown code %#x", pc, in.Code)
		}
	}
}

// Each system call has the verdict that the comment of seccompFilter promises, whatever the version of Landlock leaves to it.
func TestSystemCallsOfAContainedCommand(t *testing.T) {
	const (
		newest = 7
		allow  = uint32(unix.SECCOMP_RET_ALLOW)
	)
	fails := func(err syscall.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(err) }
	filters := map[int][]unix.SockFilter{}
	for _, version := range []int{2, 3, 5, 6, newest} {
		filters[version] = seccompFilter(version)
	}
	verdict := func(version int, nr uint32, want uint32, args ...uint64) {
		t.Helper()
		if got := runFilter(t, filters[version], seccompArch, nr, args); got != want {
			t.Errorf("with Landlock %d, call %d %x: verdict %#x, want %#x", version, nr, args, got, want)
		}
	}
	// One of each kind that is always denied.
	for err, list := range map[syscall.Errno][]uint32{
		unix.EACCES: {unix.SYS_SOCKET, unix.SYS_CONNECT, unix.SYS_ACCEPT4},
		unix.ENOSYS: {unix.SYS_IO_URING_SETUP, unix.SYS_CLONE3, lastKnownCall + 1, 1 << 30},
		unix.EROFS:  {unix.SYS_FCHMOD, unix.SYS_FCHMODAT2, unix.SYS_FCHOWNAT, unix.SYS_SETXATTR, unix.SYS_UTIMENSAT, unix.SYS_TRUNCATE},
		unix.EPERM:  {unix.SYS_UNSHARE, unix.SYS_MOUNT, unix.SYS_MOVE_MOUNT, unix.SYS_CHROOT, unix.SYS_PROCESS_VM_READV, unix.SYS_PIDFD_GETFD, unix.SYS_SHMGET, unix.SYS_MQ_OPEN, unix.SYS_KEYCTL, unix.SYS_BPF, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_SYSLOG},
	} {
		for _, nr := range list {
			verdict(newest, nr, fails(err))
		}
	}
	for _, nr := range oldMetadataCalls {
		verdict(newest, nr, fails(unix.EROFS))
	}
	for _, nr := range []uint32{unix.SYS_READ, unix.SYS_WRITE, unix.SYS_OPENAT, unix.SYS_EXECVE, unix.SYS_FTRUNCATE, unix.SYS_GETPRIORITY, unix.SYS_SHUTDOWN, lastKnownCall} {
		verdict(newest, nr, allow)
	}
	// Another process can be neither slowed down nor limited. The process itself can.
	for nr, id := range map[uint32]int{unix.SYS_PRLIMIT64: 0, unix.SYS_SETPRIORITY: 1, unix.SYS_IOPRIO_SET: 1, unix.SYS_SCHED_SETAFFINITY: 0, unix.SYS_SCHED_SETSCHEDULER: 0, unix.SYS_SCHED_SETPARAM: 0, unix.SYS_SCHED_SETATTR: 0} {
		args := []uint64{1, 1, 1}
		args[id] = 0
		verdict(newest, nr, allow, args...)
		args[id] = 4711
		verdict(newest, nr, fails(unix.EPERM), args...)
	}
	for request, want := range map[uint64]uint32{unix.PTRACE_TRACEME: allow, unix.PTRACE_DETACH: allow, unix.PTRACE_ATTACH: fails(unix.EPERM), unix.PTRACE_SEIZE: fails(unix.EPERM), unix.PTRACE_PEEKDATA: fails(unix.EPERM)} {
		verdict(newest, unix.SYS_PTRACE, want, request)
	}
	for kind, want := range map[uint64]uint32{
		unix.SOCK_STREAM: allow, unix.SOCK_SEQPACKET: allow, unix.SOCK_STREAM | unix.SOCK_CLOEXEC: allow, unix.SOCK_SEQPACKET | unix.SOCK_NONBLOCK: allow,
		unix.SOCK_DGRAM: fails(unix.EACCES), unix.SOCK_DGRAM | unix.SOCK_CLOEXEC: fails(unix.EACCES), unix.SOCK_RAW: fails(unix.EACCES),
	} {
		verdict(newest, unix.SYS_SOCKETPAIR, want, unix.AF_UNIX, kind)
	}
	verdict(newest, unix.SYS_CLONE, allow, unix.CLONE_VM|unix.CLONE_VFORK|uint64(unix.SIGCHLD))
	for _, flag := range []uint64{unix.CLONE_NEWNS, unix.CLONE_NEWCGROUP, unix.CLONE_NEWUTS, unix.CLONE_NEWIPC, unix.CLONE_NEWUSER, unix.CLONE_NEWPID, unix.CLONE_NEWNET} {
		verdict(newest, unix.SYS_CLONE, fails(unix.EPERM), unix.CLONE_VM|flag)
	}
	for request, want := range map[uint64]uint32{
		unix.TCGETS: allow, 0x541b /* FIONREAD */ : allow, unix.TIOCSTI: fails(unix.EPERM), unix.TIOCLINUX: fails(unix.EPERM),
		unix.FS_IOC_GETFLAGS: allow, unix.FS_IOC_SETFLAGS: fails(unix.ENOTTY), unix.FICLONE: fails(unix.ENOTTY), unix.FS_IOC_ENABLE_VERITY: fails(unix.ENOTTY),
		0xc0045878 /* FITHAW */ : fails(unix.ENOTTY), 0x40187602: fails(unix.ENOTTY), 0x40047211: fails(unix.ENOTTY),
	} {
		verdict(newest, unix.SYS_IOCTL, want, 3, request)
	}
	// What Landlock restricts only since a version is denied before it.
	for version := range filters {
		signals, opens := allow, allow
		if version < 6 {
			signals = fails(unix.EPERM)
		}
		if version < 3 {
			opens = fails(unix.EROFS)
			verdict(version, unix.SYS_OPENAT2, fails(unix.ENOSYS))
		} else {
			verdict(version, unix.SYS_OPENAT2, allow)
		}
		for _, nr := range []uint32{unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_PIDFD_SEND_SIGNAL} {
			verdict(version, nr, signals)
		}
		for nr, at := range openCalls {
			args := make([]uint64, at+1)
			for flags, want := range map[uint64]uint32{unix.O_RDONLY | unix.O_TRUNC: opens, unix.O_WRONLY | unix.O_TRUNC: allow, unix.O_RDWR | unix.O_TRUNC: allow, unix.O_RDONLY: allow} {
				args[at] = flags | unix.O_CLOEXEC
				verdict(version, nr, want, args...)
			}
		}
	}
	for _, arch := range []uint32{unix.AUDIT_ARCH_I386, unix.AUDIT_ARCH_ARM, 0} {
		if got := runFilter(t, filters[newest], arch, unix.SYS_READ, nil); got != unix.SECCOMP_RET_KILL_PROCESS {
			t.Errorf("a call of another architecture: %#x", got)
		}
	}
}
