package agent

import "fmt"

// How a session asks for commands. With ask each command that the rules do not allow is asked. With auto the sandbox and
// the analysis decide: what stays in the project and can be taken back runs, what deletes, overrides a check or reaches
// another server is asked. Rules that name a command count in both.
const (
	PermissionAsk  = "ask"
	PermissionAuto = "auto"
)

// Permission is how a session with this head asks: its own choice or the configured one. Sub-agents have none of their own
// and follow the session that they work for.
func (r *Runtime) Permission(info SessionInfo) string {
	for info.Parent != "" {
		parent, ok := r.Session(info.Parent)
		if !ok {
			return PermissionAsk // whoever chose is gone
		}
		info = parent.Info()
	}
	if info.Permission == "" && r.o.Configuration.Preferences(info.Cwd).Auto {
		return PermissionAuto
	}
	if info.Permission == PermissionAuto {
		return PermissionAuto
	}
	return PermissionAsk
}

// SetPermission changes how the session asks, from its next command on. Only the person calls it: no tool does.
func (h *Head) SetPermission(mode string) error {
	if mode != PermissionAsk && mode != PermissionAuto {
		return fmt.Errorf("commands are asked about by %s or %s, not %q", PermissionAsk, PermissionAuto, mode)
	}
	h.change(func(i *SessionInfo) { i.Permission = mode })
	return nil
}
