// Package guard starts processes that end with this program, whatever they do and however it ends: kill -9 included.
// A parent-death signal reaches children only, so a second process watches: it holds the end of a pipe that closes when
// we die, and then kills what descends from us. It is started with the first process, not before.
//
//	func main() {
//		if len(os.Args) > 1 && os.Args[1] == guard.Arg {
//			os.Exit(guard.Main())
//		}
//		guard.Enable()
//		defer guard.Close()
//		…
//		err := guard.Start(exec.Command("gopls"))
//
// On Linux descendants are known by marks that they inherit, in a session of their own and without an environment too:
// the value of a resource limit that programs do not use, and an environment variable. Elsewhere on Unix their process group is
// all that is known; Windows has job objects.
package guard

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
)

// Arg is the first argument of the watching process: this program, started again.
const Arg = "__guard"

// variable carries the mark in the environment.
const variable = "PILLION_JOB"

// Family is one process with all that descend from it. It is made by NewFamily and serves one Start.
type Family struct {
	// Thread, when set, starts the command, which inherits its restrictions. Linux only.
	Thread *Thread
	// Limits are resource limits (RLIMIT_*) that hold from the command's first instruction on. Linux only.
	Limits map[int]uint64
	// Admit, when set, is called with the id of the first process before its first instruction, where the system allows
	// tracing, else right after its start. An error kills the process, and Start returns it. Linux only.
	Admit func(pid int) error

	id   int64       // unique in this program; with its process id it is the mark in the environment
	os   familyMarks // what the operating system knows it by; written by start, read-only afterwards
	once sync.Once   // Forget may be called by the one who waits and by a failed start
}

// families numbers the families of this program; the last number that was given.
var families atomic.Int64

// NewFamily makes a family without members. The caller appends Env to the command's environment, calls Start, and calls
// Forget when the family's processes have ended.
func NewFamily() *Family { return &Family{id: families.Add(1)} }

// Env is the mark in the environment, NAME=value: append it to the command's Env before Start, which does not do it.
func (f *Family) Env() string { return fmt.Sprintf("%s=%d.%d", variable, os.Getpid(), f.id) }

// Start starts a command as the first of its family. Its SysProcAttr may be set; what is needed is added. Stdin, Stdout
// and Stderr must be *os.File or nil: when the start must be tried again without tracing, the command is copied, and
// pipes that exec.Cmd made for other readers and writers would be lost. After an error the family is forgotten.
func (f *Family) Start(cmd *exec.Cmd) error {
	watch()
	if err := f.start(cmd); err != nil {
		f.Forget()
		return err
	}
	return nil
}

// Forget tells the watcher that no process of the family is left, so that it kills nothing of that mark later: the value
// of the mark may be used again. Calling it again does nothing.
func (f *Family) Forget() {
	f.once.Do(func() {
		f.forgetMarks()
		if f.Thread != nil {
			f.Thread.release()
		}
	})
}

// Start starts a command that ends with this program, as all that it starts: a language server, a formatter. Other than a
// Family its processes cannot be found one by one. It sets cmd.Env and SysProcAttr.
func Start(cmd *exec.Cmd) error {
	watch()
	env := cmd.Env
	if env == nil {
		env = os.Environ()
	}
	cmd.Env = append(env[:len(env):len(env)], fmt.Sprintf("%s=%d.0", variable, os.Getpid()))
	return start(cmd)
}

// Enable turns the watcher on. A program calls it once, before it starts processes, and only when it calls Main for the
// argument Arg: the watcher is this program started again, and one that ignored Arg would start itself without end.
// Without Enable, as in most tests, no process watches.
func Enable() { enabled.Store(true); enable() }

// enabled is set by Enable and never taken back.
var enabled atomic.Bool

// without returns an environment without marks. Pillion may run inside Pillion (a test of Pillion, a terminal of the agent); what
// the inner one starts belongs to the inner one, and dies with it when the outer one kills it.
func without(env []string) []string {
	out := make([]string, 0, len(env))
	for _, e := range env {
		if !strings.HasPrefix(e, variable+"=") {
			out = append(out, e)
		}
	}
	return out
}
