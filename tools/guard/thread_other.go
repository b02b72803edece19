//go:build !linux

package guard

// threadID has no use: NewThread fails before it asks.
func threadID() int { return 0 }

// adoptOrphans does nothing: it serves Thread, which only Linux has.
func adoptOrphans() {}
