//go:build !unix

package search

import "os"

type file = *os.File

func open(path string) (file, error) { return os.Open(path) }
