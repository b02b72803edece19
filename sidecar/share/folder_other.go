//go:build !unix

package share

// supported is false where there are no Unix sockets.
const supported = false

func folder() (string, error) { return "", ErrUnsupported }

func isStale(error) bool { return false }
