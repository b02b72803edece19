package sandbox

import "os"

// Probe says what the system offers.
func Probe() Support {
	if _, err := os.Stat("/usr/bin/sandbox-exec"); err != nil {
		return Support{Why: "sandbox-exec is not there"}
	}
	return Support{Profile: true}
}

// Main is not needed here: sandbox-exec starts the shell.
func Main([]string) int { return 126 }
