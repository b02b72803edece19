package builtin

import "os/exec"

func ownGroup(*exec.Cmd) {}
