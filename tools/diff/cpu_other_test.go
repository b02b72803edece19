//go:build !unix

package diff

import "time"

var began = time.Now()

func cpuTime() time.Duration { return time.Since(began) }
