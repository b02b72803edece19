//go:build linux

package sandbox

import "golang.org/x/sys/unix"

// seccompArch is the value of seccomp_data.arch for this architecture (linux/audit.h).
const seccompArch = unix.AUDIT_ARCH_AARCH64

// oldMetadataCalls is empty: arm64 has only the *at forms, such as fchmodat.
var oldMetadataCalls []uint32

// openCalls maps the system calls that open a file to the index of their flags argument.
var openCalls = map[uint32]int{unix.SYS_OPENAT: 2}
