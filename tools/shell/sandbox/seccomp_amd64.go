//go:build linux

package sandbox

import "golang.org/x/sys/unix"

// seccompArch is the value of seccomp_data.arch for this architecture (linux/audit.h).
const seccompArch = unix.AUDIT_ARCH_X86_64

// oldMetadataCalls are system calls that arm64 does not have. seccompFilter denies them: most change metadata; the last three give
// access to I/O ports and segment descriptors.
var oldMetadataCalls = []uint32{unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT, unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT}

// openCalls maps the system calls that open a file to the index of their flags argument.
var openCalls = map[uint32]int{unix.SYS_OPEN: 1, unix.SYS_OPENAT: 2}
