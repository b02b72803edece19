//go:build !linux

package lspbridge

// groupMemory returns 0, which means unknown: this platform is not supported.
func groupMemory(int) int64 { return 0 }

// memoryIsScarce is not known either.
func memoryIsScarce() bool { return false }
