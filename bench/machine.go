package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// machine is what the figures depend on.
func machine() string {
	cpu := runtime.GOARCH
	if data, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(data)) {
			if name, ok := strings.CutPrefix(line, "model name"); ok {
				cpu = strings.TrimSpace(strings.TrimLeft(name, "\t :"))
				break
			}
		}
	}
	s := fmt.Sprintf("%s, %d cores, %s/%s", cpu, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)
	if out, err := exec.Command("uname", "-r").Output(); err == nil {
		s += " " + strings.TrimSpace(string(out))
	}
	for _, tool := range [][]string{{"go", "version"}, {"rg", "--version"}, {"git", "--version"}, {"gopls", "version"}} {
		if out, err := exec.Command(tool[0], tool[1:]...).Output(); err == nil {
			first, _, _ := strings.Cut(string(out), "\n")
			if tool[0] == "gopls" {
				_, first, _ = strings.Cut(first, " ")
				first = "gopls " + first
			}
			s += "; " + strings.TrimSpace(strings.TrimPrefix(first, "go version "))
		}
	}
	return s
}

func load() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	one, _, _ := strings.Cut(string(data), " ")
	return one
}

func versionOf(bin string) string {
	out, err := exec.Command(bin, "version").Output()
	if err != nil {
		return "unknown version"
	}
	first, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimSpace(first)
}
