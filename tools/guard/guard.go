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
// the value of a limit nobody uses, and a variable. Elsewhere on Unix their process group is all that is known; Windows
// has job objects.
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

// Family is one process with all that descend from it.
type Family struct {
	// Thread, when set, starts the command, which inherits its restrictions. Linux only.
	Thread *Thread
	// Limits are resource limits (RLIMIT_*) that hold from the command's first instruction on. Linux only.
	Limits map[int]uint64

	id   int64
	os   familyMarks
	once sync.Once // Forget
}

var families atomic.Int64

// NewFamily makes one that nobody belongs to yet.
func NewFamily() *Family { return &Family{id: families.Add(1)} }

// Env is the mark in the environment: the command that is started needs it.
func (f *Family) Env() string { return fmt.Sprintf("%s=%d.%d", variable, os.Getpid(), f.id) }

// Start starts a command as the first of its family. Its SysProcAttr may be set; what is needed is added. What else
// is set up in cmd must be files, no readers or writers that exec would copy.
func (f *Family) Start(cmd *exec.Cmd) error {
	watch()
	if err := f.start(cmd); err != nil {
		f.Forget()
		return err
	}
	return nil
}

// Forget is called when nobody of the family is left.
func (f *Family) Forget() {
	f.once.Do(func() {
		f.forgetMarks()
		if f.Thread != nil {
			f.Thread.release()
		}
	})
}

// Start starts a command that ends with this program, and all it starts: a language server, a formatter.
func Start(cmd *exec.Cmd) error {
	watch()
	env := cmd.Env
	if env == nil {
		env = os.Environ()
	}
	cmd.Env = append(env[:len(env):len(env)], fmt.Sprintf("%s=%d.0", variable, os.Getpid()))
	return start(cmd)
}

// Enable says that this program hands over to Main when it is started with Arg. Without it nobody watches, as in tests.
func Enable() { enabled.Store(true); enable() }

var enabled atomic.Bool

// without takes the mark of another program around us out of an environment.
func without(env []string) []string {
	out := make([]string, 0, len(env))
	for _, e := range env {
		if !strings.HasPrefix(e, variable+"=") {
			out = append(out, e)
		}
	}
	return out
}
