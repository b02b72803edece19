//go:build !unix

package share

const supported = false

func folder() (string, error) { return "", ErrUnsupported }

func refused(error) bool { return false }
