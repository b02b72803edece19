package guard

import "golang.org/x/sys/unix"

func threadID() int { return unix.Gettid() }
