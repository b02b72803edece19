//go:build unix && !linux

package files

// isMount is false: single files are mounted by Linux's containers.
func isMount(path string) bool { return false }
