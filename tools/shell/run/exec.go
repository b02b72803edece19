// Package run runs shell commands: to their end, in the background, on pseudo-terminals. It bounds their output and ends
// them with everything they started. What a command may run and touch is decided before, by packages scan and programs and by
// the permission rules; what it can, by package sandbox.
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

// Grace is how long a command that must end has between TERM and KILL.
const Grace = 200 * time.Millisecond

// Command is what to run. The zero Shell is the one Detect finds.
type Command struct {
	Text    string
	Shell   string        // path of the shell
	Reason  guard.Reason  // of the setting that names Shell; the zero value: the person's own
	Dir     string        // absolute, must exist
	Env     []string      // nil: Environ()
	Timeout time.Duration // 0: none
	// SpillDir is where output that is too long for memory goes, in a file of its own; made when needed. Empty: the
	// middle is lost, and the result says so.
	SpillDir string
	// OnOutput hears of new output, with the last LiveOutput bytes of it made readable, at most ten times a second
	// and once at the end.
	OnOutput func(tail string)
	// Raw gets all output as it was printed, control codes included, in order; it must not keep the bytes, nor block.
	Raw func(output []byte)
	// Sandbox, when set, is what the command may do.
	Sandbox *sandbox.Box
	// Contained, when set, is what the command may read: it runs contained, since the person was not asked about it. It excludes
	// Sandbox.
	Contained *sandbox.ContainOptions
	// Stdin, when set, is the command's input; it is closed when the command ends.
	Stdin io.ReadCloser
	// PTY runs it on a pseudo-terminal, for programs that talk to a person: both outputs and the input are that. Only
	// for Background, whose Input types into it.
	PTY bool
}

// LiveOutput is how much of the output OnOutput gets, in characters; OpenCode's figure.
const LiveOutput = 30_000

// Outcome is how a command ended.
type Outcome struct {
	Output   Output
	Exit     int    // exit code; -1 when a signal ended it or it still runs
	Signal   string // name of the signal that ended it
	TimedOut bool
	Canceled bool
	Left     int // processes it left running in the background
	// Kept is the place that containment kept the command from, when it failed over that; empty otherwise.
	Kept string
	Took time.Duration
}

// ForSandbox is what the sandbox looks at to say whether it stopped the command.
// Of long output the middle is not looked at.
func (o Outcome) ForSandbox() sandbox.Result {
	return sandbox.Result{Exit: o.Exit, Canceled: o.Canceled, Output: o.Output.Head + "\n" + o.Output.Tail}
}

// Runner runs commands and knows what they left behind. The zero value is ready.
// Close must be called: processes in the background would otherwise outlive the session.
type Runner struct {
	mu    sync.Mutex
	jobs  map[*job]bool // running, or with processes left; guarded by mu
	cells cells         // of contained commands
	wg    sync.WaitGroup
}

// job is one command with all processes that descend from it.
// It is in Runner.jobs from its start until gone.
type job struct {
	family *guard.Family
	cmd    *exec.Cmd
	pid    int
	done   chan struct{} // the shell has ended
	gone   func()        // called when nothing of it is left
	box    *sandbox.Box  // nil: none
	cell   *cell         // nil: not contained
	exited sync.Once     // from its cell
	tty    bool          // its standard input becomes its terminal
	hand   *os.File      // our end of its pseudo-terminal; closed with its output

	mu   sync.Mutex
	seen map[int]bool // processes found to belong to it; guarded by mu
}

// Run runs a command to its end, its time limit or the end of ctx, whichever is first. It returns when the shell
// exits, even if something it started keeps the output open; that is counted in Left and ended by Close. After a
// time-out nothing is left. After a cancel Run returns at once and what is left gets Grace to end, then is killed.
//
// The error is for commands that could not be started; how a command fails is in the Outcome.
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
	// The person wants the prompt back at once, so the wait for the processes continues in the background; Close waits for it.
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
		// The shell may have trapped TERM and returned 0: that is not a success.
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

// start starts the shell with both outputs on one pipe, so that they arrive in order.
// The caller owns the job: it must call end or leave, or the processes stay until Close.
func (r *Runner) start(c Command) (*job, *collector, error) {
	shell := c.Shell
	if shell == "" {
		var err error
		if shell, err = Detect(""); err != nil {
			return nil, nil, err
		}
	}
	// Checked here for the sake of the message: a failed chdir in the child would read "no such file" and seem to mean the shell.
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
		defer helperEnd.Close() // of nil too: it then does nothing
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
	// The capped slice makes append copy: Env belongs to the caller. PWD, so that pwd prints the path as given, with its links.
	cmd.Env = append(cmd.Env[:len(cmd.Env):len(cmd.Env)], j.family.Env(), "PWD="+c.Dir)
	if f, ok := c.Stdin.(*os.File); ok {
		cmd.Stdin = f
	}
	if c.PTY { // a person can type there, so editors and pagers work
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
		c.Sandbox.Supervise() // also after a failed start: it ends then
	}
	// Only the command holds the writing end from here on, so the reader sees its end.
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
		_ = j.cmd.Wait() // how it ended is in ProcessState; it may have been started again
		if c.Stdin != nil {
			c.Stdin.Close()
		}
		close(j.done)
	}()
	return j, out, nil
}

// outputs are where a command prints, and where that is read.
// The caller closes theirs after the start, and the collector closes ours.
func outputs(terminal bool) (ours, theirs *os.File, err error) {
	if terminal {
		if ours, theirs, err = openPTY(); err != nil {
			return nil, nil, fmt.Errorf("no pseudo-terminal: %w", err)
		}
		_ = resize(ours, 0, 0)
		return ours, theirs, nil
	}
	if ours, theirs, err = os.Pipe(); err != nil {
		return nil, nil, fmt.Errorf("no pipe for the command's output: %w", err)
	}
	return ours, theirs, nil
}

// add remembers a job that has been started.
// gone may run more than once and from several goroutines; the cell is left only once.
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

// end makes sure that nothing of a job is left.
// It blocks until the shell has been waited for.
func (r *Runner) end(j *job) {
	j.kill()
	<-j.done
	j.gone()
}

// leave forgets a job that has nothing running any more, and counts what is.
func (r *Runner) leave(j *job) int {
	left := 0
	// A contained command cannot leave its control group: where that is empty, no look through /proc is needed.
	if j.cell == nil || !j.cell.limit.Idle() {
		left = j.left()
	}
	if left == 0 {
		j.gone()
	}
	return left
}

// Close ends everything that commands left running and waits for it.
// Processes die in parallel: each may take the whole of Grace.
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

// noEditor is the editor of commands: there is no terminal to edit in, and vim without one waits for ever. It says so
// and fails, so that git commit without -m ends with a reason. A list of commits to rebase is taken as it is.
const noEditor = `sh -c 'echo "no editor can be used in this command: give the text as an argument (git commit -m, git rebase without -i)" >&2; exit 1' --`

// Environ is the environment that commands get: that of this program without keys, without what makes bash read or run
// more than the command, and without editors, pagers and questions that wait for an answer. Git takes no optional
// locks: it does not get in the way of the person's own git, and no hook runs after git status.
// Without GIT_TERMINAL_PROMPT=0 a git fetch over https would wait for a password until the time limit.
func Environ(env []string) []string {
	return append(cleaned(guard.WithoutKeys(env, guard.Bash, "bash"), withEditors...), "PILLION=1", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "PAGER=cat", "GIT_PAGER=cat", "MANPAGER=cat",
		"EDITOR="+noEditor, "VISUAL="+noEditor, "GIT_EDITOR="+noEditor, "GIT_SEQUENCE_EDITOR=:")
}

// withEditors are the variables by which programs find an editor or a pager.
// The agent's commands get them replaced; the person's own terminals keep theirs.
var withEditors = []string{"GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "EDITOR", "VISUAL", "PAGER", "GIT_PAGER", "MANPAGER"}

// personEnviron is the environment of the person's own terminals: theirs, keys, editors and pagers included.
func personEnviron(env []string) []string { return append(cleaned(env), "PILLION=1") }

// cleaned takes out of an environment what makes bash read or run more than the command, and more variables by name.
// BASH_ENV and ENV name a file that a shell reads first, SHELLOPTS and BASHOPTS switch options on, CDPATH and GLOBIGNORE change
// what cd and wildcards find, PS4 is expanded in traces, BASH_FUNC_… are functions that take the place of programs (bash(1)).
// The analysis of the command assumes that none of them is set.
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

// Detect finds the shell: the configured one, else bash, since commands are written and analysed as bash; else the
// person's own or sh. fish, nu and other shells with a grammar of their own are never taken by themselves.
// The error says what to install or to configure.
func Detect(configured string) (string, error) {
	if configured != "" {
		p, err := exec.LookPath(configured)
		if err != nil {
			return "", fmt.Errorf("the configured shell %s does not exist: %w; change shell in the configuration", configured, err)
		}
		return p, nil
	}
	candidates := []string{"bash"}
	switch own := os.Getenv("SHELL"); strings.TrimSuffix(filepath.Base(own), ".exe") {
	case "bash":
		candidates = []string{own, "bash"}
	case "zsh", "sh", "dash", "ksh":
		candidates = append(candidates, own)
	}
	for _, name := range append(candidates, otherShells...) {
		if p, err := exec.LookPath(name); err == nil {
			return p, nil
		}
	}
	return "", errors.New("no shell found; install bash or set shell in the configuration")
}

// Bash reports whether a shell reads commands as the analysis does.
// Where it does not, the caller must treat every command as opaque. The smaller shells read a part of bash's language.
func Bash(shell string) bool {
	switch strings.TrimSuffix(filepath.Base(shell), ".exe") {
	case "bash", "sh", "dash", "ash":
		return true
	}
	return false
}
