package sandbox

import "os"

// Probe reports what the system offers: sandbox-exec or nothing.
func Probe() Support {
	if _, err := os.Stat("/usr/bin/sandbox-exec"); err != nil {
		return Support{Why: "sandbox-exec is not there"}
	}
	return Support{Profile: true}
}

// Main is never called on macOS, where sandbox-exec starts the shell.
func Main([]string) int { return 126 }
