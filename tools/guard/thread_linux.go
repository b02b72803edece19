package guard

import "golang.org/x/sys/unix"

// threadID is the kernel's number of the calling thread; that of the first thread is the process id.
func threadID() int { return unix.Gettid() }
