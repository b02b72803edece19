//go:build unix && !linux

package files

import "testing"

// mount is for Linux only.
func mount(*testing.T, string, string) bool { return false }
