package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// memory is what the kernel says of a process, in MB of 2^20 bytes. dirty is the part of
// private that was written to; the rest are unchanged pages of files.
type memory struct{ rss, private, dirty, peak float64 }

// memoryOf reads /proc; elsewhere than on Linux it fails, and the rows are left out.
func memoryOf(pid int) (m memory, err error) {
	kb := func(file string, into map[string]*float64) error {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
		if err != nil {
			return err
		}
		for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
			f := strings.Fields(s.Text())
			if len(f) >= 2 && into[f[0]] != nil {
				n, _ := strconv.ParseFloat(f[1], 64)
				*into[f[0]] += n / 1024
			}
		}
		return nil
	}
	var clean float64
	if err := kb("smaps_rollup", map[string]*float64{"Rss:": &m.rss, "Private_Clean:": &clean, "Private_Dirty:": &m.dirty}); err != nil {
		return m, err
	}
	m.private = clean + m.dirty
	return m, kb("status", map[string]*float64{"VmHWM:": &m.peak})
}

// forgetPeak makes memoryOf's peak start again from now.
func forgetPeak(pid int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
}

// cpuOf is the time a process's present threads have run, to the nanosecond; children do not count.
func cpuOf(pid int) (time.Duration, error) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(tasks) == 0 {
		return 0, fmt.Errorf("the kernel does not tell the threads' time: %v", err)
	}
	var sum time.Duration
	for _, t := range tasks {
		data, err := os.ReadFile(t)
		if err != nil {
			continue // the thread has ended
		}
		first, _, _ := strings.Cut(string(data), " ")
		n, _ := strconv.ParseInt(first, 10, 64)
		sum += time.Duration(n)
	}
	return sum, nil
}

// processorTime is the time that this process and the children that it waits for in f have run, in milliseconds; of the children to 10 ms.
func processorTime(f func()) float64 {
	now := func() time.Duration {
		own, err := cpuOf(os.Getpid())
		check(err)
		data, err := os.ReadFile("/proc/self/stat")
		check(err)
		_, rest, _ := strings.Cut(string(data), ") ") // the name before it may have blanks
		fields := strings.Fields(rest)
		for _, field := range fields[13:15] { // cutime and cstime (proc(5)), in ticks of 1/100 s
			n, err := strconv.Atoi(field)
			check(err)
			own += time.Duration(n) * 10 * time.Millisecond
		}
		return own
	}
	before := now()
	f()
	return ms(now() - before)
}

// familyOf is the memory of a process, resident, and of its children, what each has alone.
func familyOf(pid int) float64 {
	m, err := memoryOf(pid)
	check(err)
	sum := m.rss
	for _, n := range childrenOf(pid) {
		if c, err := memoryOf(n); err == nil {
			sum += c.private
		}
	}
	return sum
}

// childrenOf are the ids of a process's children.
func childrenOf(pid int) (out []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		data, _ := os.ReadFile(list)
		for child := range strings.FieldsSeq(string(data)) {
			if n, err := strconv.Atoi(child); err == nil {
				out = append(out, n)
			}
		}
	}
	return out
}
