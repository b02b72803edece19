//go:build linux

package sandbox

import "golang.org/x/sys/unix"

// seccompArch is the architecture as struct seccomp_data names it (linux/audit.h).
const seccompArch = unix.AUDIT_ARCH_AARCH64

// oldMetadataCalls exist beside their *at forms on old architectures only.
var oldMetadataCalls []uint32

// openCalls are the calls that open a file, with the number of their argument that holds the flags.
var openCalls = map[uint32]int{unix.SYS_OPENAT: 2}
