//go:build !linux && !darwin

package shell

// ProbeSandbox says what the system offers.
func ProbeSandbox() SandboxSupport {
	return SandboxSupport{Why: "there is a sandbox for commands on Linux and macOS only"}
}

// SandboxMain has nothing to do here.
func SandboxMain([]string) int { return 126 }
