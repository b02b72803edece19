package custom

import "os/exec"

// ownGroup: what a program starts is not followed here; the job object that Start gives it ends all.
func ownGroup(*exec.Cmd) {}

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
