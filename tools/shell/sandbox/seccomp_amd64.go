//go:build linux

package sandbox

import "golang.org/x/sys/unix"

// seccompArch is the architecture as struct seccomp_data names it (linux/audit.h).
const seccompArch = unix.AUDIT_ARCH_X86_64

// oldMetadataCalls exist beside their *at forms on old architectures only.
var oldMetadataCalls = []uint32{unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT, unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT}

// openCalls are the calls that open a file, with the number of their argument that holds the flags.
var openCalls = map[uint32]int{unix.SYS_OPEN: 1, unix.SYS_OPENAT: 2}
