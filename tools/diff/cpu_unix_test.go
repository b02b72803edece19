//go:build unix

package diff

import (
	"syscall"
	"time"
)

// cpuTime is the processor time that this process has used. Unlike the clock it does not depend on what else runs on the machine.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
