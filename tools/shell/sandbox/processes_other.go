//go:build !linux

package sandbox

// ProcessLimit has no effect: commands are contained on Linux only.
type ProcessLimit struct{ Most int }

// NewProcessLimit returns a limit without an effect.
func NewProcessLimit() *ProcessLimit { return &ProcessLimit{} }

// Held is true, so that the caller does not count processes.
func (l *ProcessLimit) Held() bool { return true }

// Idle is false, which stands for not known.
func (l *ProcessLimit) Idle() bool { return false }

// Admit does nothing.
func (l *ProcessLimit) Admit(int) error { return nil }

// Close does nothing.
func (l *ProcessLimit) Close() {}
