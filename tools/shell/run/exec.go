// Package run runs shell commands: to their end, in the background, or on pseudo-terminals. It limits the output that it keeps, and
// can end a command with all processes that it started. It does not decide whether a command may run: packages scan and programs
// and the permission rules do that before. Package sandbox limits what a running command can write and reach.
//
//	runner := &run.Runner{}
//	defer runner.Close()
//	out, err := runner.Run(ctx, run.Command{Text: "make", Dir: dir, Timeout: time.Minute})
package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/tools/guard"
	"github.com/pillion-dev/pillion/tools/shell/sandbox"
)

// Grace is the time between TERM and KILL when a command is ended.
const Grace = 200 * time.Millisecond

// Command is what to run.
type Command struct {
	Text    string
	Shell   string        // path of the shell; empty: the one that Detect finds
	Reason  guard.Reason  // which setting names Shell and whose it is; the zero value: the user's own
	Dir     string        // absolute, must exist
	Env     []string      // nil: Environ()
	Timeout time.Duration // 0: none
	// SpillDir is the folder for a file with the whole output, if that is too long to be returned. It is created when needed. Empty:
	// the middle of long output is lost, and Output.SpillErr says so.
	SpillDir string
	// OnOutput, if set, is called with the readable end of the output so far, at most LiveOutput characters: while output comes, at
	// most ten times a second, and once at the end.
	OnOutput func(tail string)
	// Raw, if set, is called with all output in order, control codes included. It must neither keep the bytes nor block.
	Raw func(output []byte)
	// Sandbox, if set, limits what the command can write and reach.
	Sandbox *sandbox.Box
	// Contained, if set, says what the command may read. The command then runs contained, since it runs without approval. Sandbox
	// must be nil.
	Contained *sandbox.ContainOptions
	// Stdin, if set, is the command's input; only an *os.File is used. It is closed when the command ends.
	Stdin io.ReadCloser
	// PTY runs the command on a pseudo-terminal, which is its input and both outputs, for programs that talk to a person. Only
	// Background supports it; BackgroundJob.Input types into the terminal.
	PTY bool
}

// LiveOutput is the most that OnOutput gets, in characters. OpenCode uses the same number.
const LiveOutput = 30_000

// Outcome is how a command ended.
type Outcome struct {
	Output   Output
	Exit     int    // exit code; -1 when a signal ended it or it still runs
	Signal   string // name of the signal that ended it
	TimedOut bool
	Canceled bool
	Left     int // number of processes that it left running
	// Kept is the path that containment did not let the command use, if that seems to be why it failed; else empty.
	Kept string
	Took time.Duration
}

// ForSandbox returns what package sandbox needs to tell whether a restriction made the command fail. Of long output it has the
// beginning and the end.
func (o Outcome) ForSandbox() sandbox.Result {
	return sandbox.Result{Exit: o.Exit, Canceled: o.Canceled, Output: o.Output.Head + "\n" + o.Output.Tail}
}

// Runner runs commands and keeps track of the processes that they leave running. The zero value is ready. Callers must call Close,
// or these processes outlive the session.
type Runner struct {
	mu    sync.Mutex
	jobs  map[*job]bool // those with a process that still runs; guarded by mu
	cells cells         // start contained commands
	wg    sync.WaitGroup
}

// job is one command with all processes that descend from it. It is in Runner.jobs from its start until gone is called.
type job struct {
	family *guard.Family
	cmd    *exec.Cmd
	pid    int
	done   chan struct{} // closed when the shell has ended
	gone   func()        // removes the job from its runner; called when no process of it is left
	box    *sandbox.Box  // nil: none
	cell   *cell         // nil: not contained
	exited sync.Once     // calls cells.leave once
	tty    bool          // its standard input becomes its terminal
	hand   *os.File      // Pillion's end of its pseudo-terminal; the collector closes it

	mu   sync.Mutex
	seen map[int]bool // ids of the processes found to belong to it; guarded by mu
}

// Run runs a command until it ends, its time limit is over or ctx is done, whichever comes first. It returns when the shell exits, even
// if processes that the shell started still run and keep the output open: Left counts them, and Close ends them. After the time limit
// Run ends all processes before it returns. If ctx is done, Run returns at once, and the processes get TERM, then KILL after Grace.
//
// An error means that the command could not be started. How a command failed is in the Outcome.
func (r *Runner) Run(ctx context.Context, c Command) (Outcome, error) {
	if err := ctx.Err(); err != nil {
		return Outcome{Exit: -1, Canceled: true}, nil
	}
	j, out, err := r.start(c)
	if err != nil {
		return Outcome{}, err
	}
	began := time.Now()
	live := out.report(c.OnOutput)
	var limit <-chan time.Time
	if c.Timeout > 0 {
		t := time.NewTimer(c.Timeout)
		defer t.Stop()
		limit = t.C
	}
	res := Outcome{Exit: -1}
	select {
	case <-j.done:
	case <-limit:
		res.TimedOut = true
		r.end(j)
	// The user wants to type the next prompt at once, so another goroutine ends the processes. Close waits for it.
	case <-ctx.Done():
		res.Canceled = true
		j.signal(termSignal)
		r.wg.Add(1)
		go func() { defer r.wg.Done(); r.end(j) }()
	}
	out.settle(res.Canceled)
	live()
	res.Took = time.Since(began)
	if !res.Canceled {
		<-j.done
		res.Exit, res.Signal = exitOf(j.cmd.ProcessState)
		// A shell that traps TERM may exit with 0 all the same, which is not a success.
		if res.TimedOut {
			res.Exit = -1
		}
		res.Left = r.leave(j)
	}
	res.Output = out.result()
	if j.cell != nil && res.Exit != 0 {
		res.Kept = j.cell.contained.Blamed(res.ForSandbox())
	}
	if c.OnOutput != nil {
		c.OnOutput(out.tail(LiveOutput))
	}
	return res, nil
}

// start starts the shell with both outputs on one pipe, so that they arrive in order. The caller must call end or leave for the job, or
// its processes run until Close.
func (r *Runner) start(c Command) (*job, *collector, error) {
	shell := c.Shell
	if shell == "" {
		var err error
		if shell, err = Detect(""); err != nil {
			return nil, nil, err
		}
	}
	// Checked here for a clear message: exec reports a failed chdir as "no such file", which seems to mean the shell.
	info, err := os.Stat(c.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, fmt.Errorf("the directory %s does not exist (any more); give another workdir", c.Dir)
	case err != nil:
		return nil, nil, fmt.Errorf("the directory %s cannot be used: %w", c.Dir, err)
	case !info.IsDir():
		return nil, nil, fmt.Errorf("%s is not a directory; give another workdir", c.Dir)
	}
	pr, pw, err := outputs(c.PTY)
	if err != nil {
		return nil, nil, err
	}
	j := &job{family: guard.NewFamily(), done: make(chan struct{})}
	name, args := shell, shellArgs(shell, c.Text)
	var helperEnd *os.File
	if c.Sandbox != nil {
		helperEnd = c.Sandbox.ForHelper()
		defer helperEnd.Close() // a nil *os.File returns an error and does nothing
		if name, args, err = c.Sandbox.Argv(name, args); err != nil {
			pr.Close()
			pw.Close()
			return nil, nil, err
		}
		j.box = c.Sandbox
	}
	if c.Contained != nil {
		if j.cell, err = r.cells.enter(*c.Contained); err != nil {
			pr.Close()
			pw.Close()
			return nil, nil, err
		}
		j.family.Thread, j.family.Limits, j.family.Admit = j.cell.thread, j.cell.contained.Limits(), j.cell.limit.Admit
	}
	c.Reason.Who = guard.Bash
	cmd := guard.CommandFor(context.Background(), c.Reason, append([]string{name}, args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.Dir, pw, pw
	cmd.Env = c.Env
	if cmd.Env == nil {
		cmd.Env = Environ(os.Environ())
	}
	if c.Sandbox != nil {
		cmd.Env = c.Sandbox.Environ(cmd.Env)
	}
	if j.cell != nil {
		cmd.Env = j.cell.contained.Environ(cmd.Env)
	}
	// The capped slice makes append copy, since Env belongs to the caller. With PWD set, pwd prints the path with its symbolic links.
	cmd.Env = append(cmd.Env[:len(cmd.Env):len(cmd.Env)], j.family.Env(), "PWD="+c.Dir)
	if f, ok := c.Stdin.(*os.File); ok {
		cmd.Stdin = f
	}
	if c.PTY { // editors and pagers work on a terminal, so noEditor and cat are taken out
		cmd.Env = cleaned(cmd.Env, withEditors...)
		cmd.Stdin, j.tty, j.hand = pw, true, pr
		cmd.Env = append(cmd.Env, "TERM=xterm-256color")
	}
	if helperEnd != nil {
		cmd.ExtraFiles = []*os.File{helperEnd}
	}
	j.cmd = cmd
	err = spawn(j)
	if c.Sandbox != nil {
		c.Sandbox.Supervise() // also after a failed start: its goroutine then ends
	}
	// From here on only the command's processes hold the writing end, so the reader gets EOF when they have closed it.
	pw.Close()
	if err != nil {
		pr.Close()
		if j.cell != nil {
			r.cells.leave(j.cell)
		}
		return nil, nil, fmt.Errorf("%s cannot be started: %w", shell, err)
	}
	r.add(j)
	if j.cell != nil && !j.cell.limit.Held() {
		r.wg.Add(1)
		go func() {
			defer r.wg.Done()
			j.watchTasks(j.cell.limit.Most, func() bool {
				r.mu.Lock()
				defer r.mu.Unlock()
				return !r.jobs[j]
			})
		}()
	}
	out := newCollector(pr, c)
	r.wg.Add(2)
	go func() { defer r.wg.Done(); out.read() }()
	go func() {
		defer r.wg.Done()
		_ = j.cmd.Wait() // the result is in ProcessState
		if c.Stdin != nil {
			c.Stdin.Close()
		}
		close(j.done)
	}()
	return j, out, nil
}

// outputs opens the pipe or pseudo-terminal that a command prints to: the command gets theirs, the collector reads from ours. The
// caller closes theirs after the start, and the collector closes ours.
func outputs(terminal bool) (ours, theirs *os.File, err error) {
	if terminal {
		if ours, theirs, err = openPTY(); err != nil {
			return nil, nil, fmt.Errorf("no pseudo-terminal: %w", err)
		}
		_ = resize(ours, 0, 0)
		return ours, theirs, nil
	}
	if ours, theirs, err = pipe(); err != nil {
		return nil, nil, fmt.Errorf("no pipe for the command's output: %w", err)
	}
	return ours, theirs, nil
}

// add puts a started job into r.jobs and sets gone. gone may be called more than once and by several goroutines, so j.exited makes sure
// that the cell is left only once.
func (r *Runner) add(j *job) {
	r.mu.Lock()
	if r.jobs == nil {
		r.jobs = map[*job]bool{}
	}
	r.jobs[j] = true
	r.mu.Unlock()
	j.gone = func() {
		if j.box != nil {
			j.box.Release(j.pid)
		}
		if j.cell != nil {
			j.exited.Do(func() { r.cells.leave(j.cell) })
		}
		j.family.Forget()
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.jobs, j)
	}
}

// end kills all processes of a job, and returns when the shell has ended.
func (r *Runner) end(j *job) {
	j.kill()
	<-j.done
	j.gone()
}

// leave counts the processes of a job that still run after its shell has ended. If there are none, it removes the job.
func (r *Runner) leave(j *job) int {
	left := 0
	// A contained command cannot leave its control group. If that is empty, /proc need not be searched.
	if j.cell == nil || !j.cell.limit.Idle() {
		left = j.left()
	}
	if left == 0 {
		j.gone()
	}
	return left
}

// Close ends all processes that commands left running, and waits for them. It ends jobs in parallel, since each may take Grace.
func (r *Runner) Close() {
	r.mu.Lock()
	var jobs []*job
	for j := range r.jobs {
		jobs = append(jobs, j)
	}
	r.mu.Unlock()
	var wg sync.WaitGroup
	for _, j := range jobs {
		wg.Go(func() { r.end(j) })
	}
	wg.Wait()
	r.wg.Wait()
	r.cells.close()
}

// noEditor is the editor that commands get. They have no terminal, and vim would wait forever without one. noEditor prints what to do
// and fails, so that git commit without -m ends with a reason. For the list of commits of a rebase the editor is ":", which
// accepts the list unchanged.
const noEditor = `sh -c 'echo "no editor can be used in this command: give the text as an argument (git commit -m, git rebase without -i)" >&2; exit 1' --`

// Environ returns the environment that commands get. It is env without API keys and without variables that make bash read or run more
// than the command. Editors, pagers and prompts would wait for a person, so they are turned off: without GIT_TERMINAL_PROMPT=0, git
// fetch over https would wait for a password until the time limit. With GIT_OPTIONAL_LOCKS=0, git status does not lock out the
// user's own Git, and runs no hook.
func Environ(env []string) []string {
	return append(cleaned(guard.WithoutKeys(env, guard.Bash, "bash"), withEditors...), "PILLION=1", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "PAGER=cat", "GIT_PAGER=cat", "MANPAGER=cat",
		"EDITOR="+noEditor, "VISUAL="+noEditor, "GIT_EDITOR="+noEditor, "GIT_SEQUENCE_EDITOR=:")
}

// withEditors are the variables by which programs find an editor or a pager. Environ replaces them; the user's own terminals keep them.
var withEditors = []string{"GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "EDITOR", "VISUAL", "PAGER", "GIT_PAGER", "MANPAGER"}

// personEnviron returns the environment of the user's own terminals. It keeps API keys, editors and pagers.
func personEnviron(env []string) []string { return append(cleaned(env), "PILLION=1") }

// cleaned returns an environment without the variables that make bash read or run more than the command, and without those named by
// more. BASH_ENV and ENV name a file that a shell reads first, SHELLOPTS and BASHOPTS turn options on, CDPATH and GLOBIGNORE change
// what cd and wildcards find, PS4 is expanded in traces, BASH_FUNC_… defines functions that replace programs (bash(1)). The analysis
// of a command assumes that none of these is set.
func cleaned(env []string, more ...string) []string {
	out := make([]string, 0, len(env)+12)
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=")
		switch name {
		case "BASH_ENV", "ENV", "CDPATH", "PROMPT_COMMAND", "SHELLOPTS", "BASHOPTS", "GLOBIGNORE", "PS4", "PWD", "OLDPWD", "PILLION_JOB", "GIT_TERMINAL_PROMPT", "GIT_OPTIONAL_LOCKS":
			continue
		}
		if strings.HasPrefix(name, "BASH_FUNC_") || slices.Contains(more, name) {
			continue
		}
		out = append(out, e)
	}
	return out
}

// Detect returns the path of the shell for commands: the configured one, else the first of shells. The error says what to install or
// configure.
func Detect(configured string) (string, error) {
	if configured != "" {
		p, err := exec.LookPath(configured)
		if err != nil {
			return "", fmt.Errorf("the configured shell %s does not exist: %w; change shell in the configuration", configured, err)
		}
		return p, nil
	}
	for _, name := range shells() {
		if p, err := exec.LookPath(name); err == nil {
			return p, nil
		}
	}
	return "", errors.New(noShell)
}

// Bash reports that a shell understands commands as the analysis does: it is bash, or one of the smaller shells, whose languages are parts of
// bash's, and its paths are the system's. For any other shell the caller must treat every command as opaque.
func Bash(shell string) bool {
	switch strings.TrimSuffix(strings.ToLower(filepath.Base(shell)), ".exe") {
	case "bash", "sh", "dash", "ash":
		return !ForeignPaths
	}
	return false
}
