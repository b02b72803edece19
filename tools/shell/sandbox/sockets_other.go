//go:build linux && !amd64 && !arm64

package sandbox

import "os"

// Only Landlock and the mask over sockets restrict them here: the filter's numbers are those of two architectures.
func (b *Box) restrictSockets() error { return nil }

// ForHelper gives the helper nothing here.
func (b *Box) ForHelper() *os.File { return nil }

// Supervise has nothing to do here.
func (b *Box) Supervise() {}
