package builtin

import "os/exec"

// ownGroup does nothing: Windows has no process groups that can be signalled.
func ownGroup(*exec.Cmd) {}
