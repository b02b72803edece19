//go:build unix && !linux

package store

import "syscall"

func dieWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
