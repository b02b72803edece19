package mcp

import "os/exec"

// startGroup starts a program; what it starts itself is not followed here.
func startGroup(cmd *exec.Cmd) (kill func(), err error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() { _ = cmd.Process.Kill() }, nil
}
