package agent

import "fmt"

// The permission modes of a session. With ask, each command that the rules do not allow needs approval. With auto, the sandbox and the
// analysis decide: a command whose effects stay in the project and can be undone runs; one that deletes, overrides a check or reaches
// another server needs approval. Rules that name a command count in both modes.
const (
	PermissionAsk  = "ask"
	PermissionAuto = "auto"
)

// Permission returns the mode of a session with this head: its own choice, or the configured one. A sub-agent has no choice of its own and
// follows the session that it works for.
func (r *Runtime) Permission(info SessionInfo) string {
	for info.Parent != "" {
		parent, ok := r.Session(info.Parent)
		if !ok {
			return PermissionAsk // the session that made the choice is closed
		}
		info = parent.Info()
	}
	p := r.o.Configuration.Preferences(info.Cwd)
	if p.NoAuto {
		return PermissionAsk
	}
	if info.Permission == "" && p.Auto {
		return PermissionAuto
	}
	if info.Permission == PermissionAuto {
		return PermissionAuto
	}
	return PermissionAsk
}

// Permissions are the modes that have an effect on a session with this head: ask alone, where the machine's settings allow no other.
func (r *Runtime) Permissions(info SessionInfo) []string {
	if r.o.Configuration.Preferences(info.Cwd).NoAuto {
		return []string{PermissionAsk}
	}
	return []string{PermissionAsk, PermissionAuto}
}

// SetPermission changes the mode from the session's next command on. Only the person may cause this: no tool calls it.
func (h *Head) SetPermission(mode string) error {
	if mode != PermissionAsk && mode != PermissionAuto {
		return fmt.Errorf("the permission mode must be %s or %s, not %q", PermissionAsk, PermissionAuto, mode)
	}
	h.change(func(i *SessionInfo) { i.Permission = mode })
	return nil
}
