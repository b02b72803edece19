//go:build !linux && !darwin

package sandbox

// Probe reports that there is no sandbox.
func Probe() Support {
	return Support{Why: "there is a sandbox for commands on Linux and macOS only"}
}

// Main is never called, since there is no sandbox.
func Main([]string) int { return 126 }
