package main

import (
	"github.com/pillion-dev/pillion/sidecar/config"
	"github.com/pillion-dev/pillion/tools/builtin"
	"github.com/pillion-dev/pillion/tools/shell/sandbox"
)

// sandboxFinding is the doctor's line: what the system offers, and whether it is used.
func sandboxFinding(c *config.Config) finding {
	support := sandbox.Probe()
	mode := c.Sandbox
	if mode == "" {
		mode = builtin.SandboxOff
	}
	f := finding{Name: "sandbox", OK: support.Usable(), Needed: mode == builtin.SandboxOn, Detail: mode + " (" + support.String() + ")"}
	switch {
	case !f.OK && mode != builtin.SandboxOff:
		f.Fix = `set "sandbox" to "off", or run where it is there`
	case f.OK && mode == builtin.SandboxOff:
		f.Detail = "off, available (" + support.String() + `); set "sandbox" to "ask" or "on" to use it`
	}
	return f
}
