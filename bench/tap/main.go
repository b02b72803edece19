// Command tap stands between a program and its standard streams and writes down when each line passed: what it read and wrote stays the same.
// Behind Pillion in place of an agent it is the witness of what Pillion takes, in the same run, so that the agent's own time does not count.
//
//	tap LOG PROGRAM ARGUMENT…
//
// A line of LOG is the time in nanoseconds since 1970, "<" for a line to the program or ">" for one from it, and the line.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "tap LOG PROGRAM ARGUMENT…")
		os.Exit(2)
	}
	log, err := os.OpenFile(os.Args[1], os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	check(err)
	cmd := exec.Command(os.Args[2], os.Args[3:]...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	check(err)
	out, err := cmd.StdoutPipe()
	check(err)
	check(cmd.Start())
	var mu sync.Mutex // guards log
	pass := func(mark string, from io.Reader, to io.Writer) {
		r := bufio.NewReaderSize(from, 1<<20)
		for {
			line, err := r.ReadBytes('\n')
			at := time.Now()
			_, bad := to.Write(line)
			mu.Lock()
			fmt.Fprintf(log, "%d %s %s\n", at.UnixNano(), mark, bytes.TrimSpace(line))
			mu.Unlock()
			if err != nil || bad != nil {
				return
			}
		}
	}
	go func() {
		pass("<", os.Stdin, in)
		_ = in.Close()
	}()
	pass(">", out, os.Stdout)
	_ = cmd.Wait()
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "tap:", err)
		os.Exit(1)
	}
}
