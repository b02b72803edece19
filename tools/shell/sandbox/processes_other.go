//go:build !linux

package sandbox

// ProcessLimit bounds the processes of contained commands, of which there are none here.
type ProcessLimit struct{ Most int }

// NewProcessLimit makes a limit that holds nothing.
func NewProcessLimit() *ProcessLimit { return &ProcessLimit{} }

// Held is true, since there is nothing to hold.
func (l *ProcessLimit) Held() bool { return true }

// Idle is not known.
func (l *ProcessLimit) Idle() bool { return false }

// Admit does nothing.
func (l *ProcessLimit) Admit(int) error { return nil }

// Close does nothing.
func (l *ProcessLimit) Close() {}
