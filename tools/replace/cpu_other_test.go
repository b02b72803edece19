//go:build !unix

package replace

import "time"

var began = time.Now()

func cpuTime() time.Duration { return time.Since(began) }
