//go:build !unix

package share

// supported is false where there are no Unix sockets.
const supported = false

// folder is never reached through Listen and List, which look at supported first.
func folder() (string, error) { return "", ErrUnsupported }

// isStale is not reached either.
func isStale(error) bool { return false }
