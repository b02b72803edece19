//go:build !linux && !darwin

package sandbox

// Probe says what the system offers.
func Probe() Support {
	return Support{Why: "there is a sandbox for commands on Linux and macOS only"}
}

// Main has nothing to do here.
func Main([]string) int { return 126 }
