//go:build unix && !linux && !darwin

package files

// copyXattrs does nothing: extended attributes have another interface on these systems.
func copyXattrs(from, to string) {}
