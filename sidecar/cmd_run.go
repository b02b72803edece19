package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/sidecar/terminal"
	"github.com/pillion-dev/pillion/tools/builtin"
	"github.com/pillion-dev/pillion/tools/change"
)

// runFlags are the flags of `pillion run`, which `pillion` alone takes as well, so that both start a conversation
// in the same way.
type runFlags struct {
	cwd, model, agent, session, approve string
	files                               []string
	review                              string
	limits                              agent.Limits
	asJSON, resume, trust, plain        bool
	// background starts a process of its own for the prompt; hold is what that process is told.
	background, hold bool
}

// runCommand is `pillion run`.
func runCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run [prompt]",
		Short: "Send a prompt from the terminal, review the changes hunk by hunk",
		Long: `Send a prompt from the terminal. The prompt is the arguments, or standard input if that is not a terminal. With neither,
pillion starts a conversation: the prompt stays open while a turn runs, /help lists commands and keys, Ctrl-D ends.

Every proposed change is shown as a diff below the problems that it fixes and introduces, and you decide on each hunk.
Without a terminal the diffs are shown and nothing is applied, except with --approve all, or with --approve clean for changes
that every language server has checked and that introduce no error.

Exit codes: 0 when the agent finished its turn, even if problems are left (the last line, and "left" of --json, list them) or
a change was rejected; 1 when the model failed, was cut off, or reports that it could do nothing.`,
		Example: `  pillion run
  pillion run "fix all errors"
  pillion run -f design.png -f notes.md "build this page"
  pillion run --model anthropic/claude-sonnet-5-5 "add a test for the parser"
  pillion run --approve all --json "format" | jq .
  pillion run --approve clean "fix all errors"
  pillion run --background "rename the field and fix its callers"`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			return runPrompts(c.Context(), f, args, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f.flags(c)
	return c
}

// flags defines the flags on a command. Their texts are in the reference pages, too (package pages).
func (f *runFlags) flags(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVarP(&f.cwd, "cwd", "C", "", "project directory (default: this one)")
	fl.StringVarP(&f.model, "model", "m", "", "model as provider/model (pillion models lists them)")
	fl.StringVar(&f.agent, "agent", "", "agent: build, plan or one of your own")
	fl.StringVarP(&f.session, "session", "s", "", "continue this session, by its id")
	fl.BoolVarP(&f.resume, "continue", "c", false, "continue the last session of this directory")
	fl.StringVar(&f.approve, "approve", "ask", approveHelp)
	fl.StringVar(&f.review, "review", "", reviewHelp)
	fl.BoolVar(&f.trust, "trust", false, "trust this folder's own configuration for this run (pillion trust remembers it)")
	fl.StringArrayVarP(&f.files, "file", "f", nil, "attach this file: text, a picture or a PDF (may be repeated)")
	fl.BoolVar(&f.plain, "plain", false, "line by line, without moving the cursor: for screen readers (also PILLION_PLAIN=1)")
	fl.IntVar(&f.limits.Steps, "max-steps", 0, "stop the turn after this many model requests (default: the limit of the agent)")
	fl.Float64Var(&f.limits.Cost, "max-cost", 0, "stop the turn when it has cost this many US dollars")
	fl.BoolVar(&f.background, "background", false, "work in a draft, in a process that continues after this one ends; pillion drafts lists it")
	fl.BoolVar(&f.hold, "hold", false, "leave the proposal of a draft for pillion drafts land, and ask nothing")
	_ = fl.MarkHidden("hold")
	fl.BoolVar(&f.asJSON, "json", false, "print events and the result as JSON lines")
}

// runPrompts runs one prompt, or a conversation when there is none and both ends are a terminal. Its error is an exitCode
// where the outcome has been printed already.
func runPrompts(ctx context.Context, f runFlags, args []string, out, errOut io.Writer) error {
	r, err := f.read(args, out, errOut)
	if err != nil {
		return err
	}
	if f.background {
		return f.inBackground(r.cwd, r.prompt, out)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return r.start(ctx)
}

// invocation is one call of `pillion run`: its flags, and what they mean in this terminal.
type invocation struct {
	runFlags
	out, errOut   io.Writer
	approval      terminal.Approve
	cwd, prompt   string
	attached      []provider.Part
	stdin, stdout bool // whether they are terminals
	screen        bool // out is a terminal that can move its cursor
	talk          bool // no prompt: a conversation
}

// read reads the flags, the prompt and the attached files. Its errors are those of the command line.
func (f runFlags) read(args []string, out, errOut io.Writer) (*invocation, error) {
	r := &invocation{runFlags: f, out: out, errOut: errOut, stdin: isTerminal(os.Stdin), stdout: isTerminal(out), prompt: strings.Join(args, " ")}
	var err error
	if r.approval, err = parseApprove(f.approve); err != nil {
		return nil, err
	}
	if r.cwd, err = app.Directory(f.cwd); err != nil {
		return nil, err
	}
	if len(args) == 0 && !r.stdin {
		// 8 MiB: more than a model reads, and little enough that a wrong pipe does not fill the memory.
		b, err := io.ReadAll(io.LimitReader(os.Stdin, 8<<20))
		if err != nil {
			return nil, err
		}
		r.prompt = string(b)
	}
	// TERM=dumb is what terminals without cursor movement set; PILLION_PLAIN is for people who always use a screen
	// reader.
	plain := f.plain || os.Getenv("PILLION_PLAIN") != "" || os.Getenv("TERM") == "dumb"
	r.screen = r.stdout && !plain
	r.talk = len(args) == 0 && r.stdin && r.stdout && !f.asJSON
	if strings.TrimSpace(r.prompt) == "" && !r.talk {
		return nil, usagef(`say what to do, for example: pillion run "fix all errors"`)
	}
	if r.attached, err = fileParts(r.cwd, f.files); err != nil {
		return nil, err
	}
	if len(r.attached) > 0 && r.talk {
		return nil, usagef("--file needs a prompt; in a conversation, attach files with @")
	}
	return r, nil
}

// start opens the session and leads it to its end. The order matters: trust is asked before the session is opened,
// because opening it reads the folder's configuration.
func (r *invocation) start(ctx context.Context) error {
	var session *agent.Session
	var a *app.App // made after the terminal, because it needs the terminal as its Asker
	o := r.terminal()
	o.Stop = func() { session.Cancel() } // session is set below; no turn can be stopped before that
	o.Check = func(ctx context.Context, session string, set *change.Set) *change.Verdict {
		return a.Desk.Check(ctx, session, set)
	}
	var c *conversation
	if r.talk {
		c = newConversation(r.cwd, r.limits, r.out, r.screen, &o)
	}
	t := terminal.New(o)
	defer t.Close()
	notices := r.errOut
	if r.talk {
		notices = t // whatever is written beside it would be drawn over
	}
	a = app.New(app.Options{Place: app.NewWorkplace(version), Asker: t, Questions: questionerIf(t, o.Keys != nil && r.approval == terminal.Ask), Notices: notices, Verdict: verdictMode(r.approval), Hold: r.hold})
	defer a.Close()
	a.KeepCatalogue()
	if r.talk {
		go func() {
			if text := a.Place.ReleaseNotice(ctx, releasePage); text != "" {
				fmt.Fprintln(notices, "pillion: "+text)
			}
		}()
	}
	// Configuration problems do not end a run: what is wrong is left out, and the rest applies.
	_, problems := a.Place.Config(r.cwd)
	app.Warn(r.errOut, problems)
	if r.trust {
		a.Place.TrustFor(r.cwd, true)
	}
	if err := askTrust(a.Place, r.cwd, o.Keys != nil, r.errOut); err != nil {
		return err
	}
	var err error
	if session, err = r.open(ctx, a); err != nil {
		return err
	}
	if c != nil {
		return c.lead(ctx, a, t, session, r.out)
	}
	return r.lead(ctx, &terminalSession{app: a, t: t, session: session, cwd: r.cwd, limits: r.limits})
}

// terminal is how the terminal shows the run and asks the person, but for what needs the session.
func (r *invocation) terminal() terminal.Options {
	// NO_COLOR turns colours off, whatever it is set to (no-color.org).
	o := terminal.Options{Out: r.out, Cwd: r.cwd, Approve: r.approval, Live: r.screen && !r.asJSON, Color: r.screen && os.Getenv("NO_COLOR") == "", Editor: textEditor()}
	// Answers are rendered for a screen that can be drawn again; a pipe gets what the model wrote.
	o.Markdown = o.Live
	// Standard output belongs to the JSON lines, so the terminal view is discarded.
	if r.asJSON {
		o.Out, o.Color = io.Discard, false
		return o
	}
	if !r.stdout {
		return o
	}
	if w, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil {
		o.Width = w
	}
	// Standard input may hold the prompt; answers then come from the controlling terminal.
	if tty := keyboard(r.stdin); tty != nil {
		o.Keys = terminal.TTY{File: tty}
	}
	return o
}

// open opens the session that the flags name and says which model will answer, before the first request.
func (r *invocation) open(ctx context.Context, a *app.App) (*agent.Session, error) {
	session, err := openSession(ctx, a, r.runFlags, r.cwd)
	if err != nil {
		return nil, err
	}
	if r.review != "" {
		if err := session.SetReview(r.review); err != nil {
			return nil, usagef("--review: %w", err)
		}
	}
	if r.asJSON {
		return session, nil
	}
	if model := session.Info().Model; model != "" { // a model that cannot be used is an error of the turn
		fmt.Fprintf(r.out, "%s in %s\n", model, r.cwd)
	}
	if why := session.CutOff(); why != "" {
		fmt.Fprintf(r.out, "! %s\n", why)
	}
	return session, nil
}

// lead runs the prompt. Events are subscribed to before it is sent, so that none is missed.
func (r *invocation) lead(ctx context.Context, s *terminalSession) error {
	lines := &jsonLines{w: r.out}
	var last int64 // events up to this one belong to earlier prompts and are not printed
	if err := s.session.Events(ctx, 0, func(e agent.Event) error {
		last = e.Seq
		return nil
	}); err != nil {
		return err
	}
	// Behind the last event: a session that is continued would otherwise print its whole past again.
	stop := s.session.Subscribe(last, func(e agent.Event) {
		if r.asJSON {
			lines.event(e)
		}
		s.t.Event(e)
	})
	defer stop()
	sum, said, err := s.ask(ctx, r.prompt, r.attached)
	switch {
	case err != nil:
		return err
	case said != "" && r.asJSON:
		lines.result(terminal.Summary{Stop: agent.TurnEnd, Text: said, SessionID: s.session.ID()})
	case said != "":
		fmt.Fprint(r.out, terminal.Clean(said))
	case r.asJSON:
		lines.result(sum)
	default:
		s.t.Result(sum)
	}
	return outcome(sum)
}

// outcome is the exit code of a turn. The codes are documented in the help of the command: a turn that ended is success
// even where problems are left.
func outcome(sum terminal.Summary) error {
	switch sum.Stop {
	case agent.TurnError, agent.TurnRefusal, agent.TurnMaxTokens, agent.TurnMaxSteps:
		return exitCode(exitError) // the prompt was not carried out
	case agent.TurnCancelled:
		return exitCode(exitCancelled)
	}
	// The built-in model says so when it could do nothing; a script must not take that for success.
	if sum.Undone {
		return exitCode(exitError)
	}
	return nil
}

// inBackground hands a prompt to a process of its own and says where its work will be found.
func (f runFlags) inBackground(cwd, prompt string, out io.Writer) error {
	switch {
	case strings.TrimSpace(prompt) == "":
		return usagef("--background needs a prompt")
	case f.review != "" && f.review != agent.ReviewDraft:
		return usagef("--background works in a draft; it cannot be combined with --review %s", f.review)
	}
	b := app.Background{Cwd: cwd, Model: f.model, Agent: f.agent, Prompt: prompt}
	// --approve and --plain are not passed on: the other process asks nothing and has no screen.
	for _, x := range []struct {
		name string
		on   bool
	}{{"--trust", f.trust}, {"--continue", f.resume}, {"--json", f.asJSON}} {
		if x.on {
			b.More = append(b.More, x.name)
		}
	}
	for name, value := range map[string]string{"--session": f.session, "--max-steps": numberOr(float64(f.limits.Steps)), "--max-cost": numberOr(f.limits.Cost)} {
		if value != "" {
			b.More = append(b.More, name, value)
		}
	}
	for _, file := range f.files {
		b.More = append(b.More, "--file", file)
	}
	log, err := app.StartBackground(app.NewWorkplace(version), b)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "working in the background; pillion drafts list shows it in a moment, pillion drafts land ID reviews it\n%s has its output\n", log)
	return nil
}

// numberOr is a number as the value of a flag; "" for 0, which means no limit.
func numberOr(n float64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}

// terminalSession is the session of one prompt that was given on the command line.
type terminalSession struct {
	app     *app.App
	t       *terminal.Terminal
	session *agent.Session
	cwd     string
	limits  agent.Limits
}

// ask runs one prompt and sums up its turn; said is what a command answered that needed no agent. A turn that
// failed is in the summary; the error says that there was no turn.
func (r *terminalSession) ask(ctx context.Context, prompt string, attached []provider.Part) (s terminal.Summary, said string, err error) {
	defer interrupts(r.session.Cancel)()
	r.t.Begin()
	turn, said, err := runPrompt(ctx, r.app, r.session, prompt, attached, r.limits)
	if said != "" || err != nil && turn.Stop == "" {
		return s, said, err
	}
	s = r.t.Summary()
	s.Stop = cmp.Or(s.Stop, turn.Stop) // a command has no turn in the transcript
	s.SessionID = r.session.ID()
	if s.Stop != agent.TurnCancelled { // a person who has pressed Ctrl-C does not want to wait for problems
		// Servers may still be checking the last edit. Five seconds are worth a complete list, and a stuck server
		// costs no more.
		within, cancel := context.WithTimeout(ctx, 5*time.Second)
		s.Left, s.NotChecked, s.LeftKnown = r.app.Servers.Problems(within, r.cwd)
		cancel()
	}
	return s, "", nil
}

// openSession opens the session that the flags name, or a new one. --continue takes the newest of the directory;
// sessions of sub-agents are not candidates. --model and --agent change a session that is continued for good, as in
// an editor.
func openSession(ctx context.Context, a *app.App, f runFlags, cwd string) (*agent.Session, error) {
	id := f.session
	if f.resume && id == "" {
		list, err := a.Runtime.List(ctx, cwd)
		if err != nil {
			return nil, err
		}
		list = slices.DeleteFunc(list, func(i agent.SessionInfo) bool { return i.Parent != "" }) // a sub-agent's
		if len(list) == 0 {
			return nil, fmt.Errorf("no session in %s to continue; run without --continue to start one", cwd)
		}
		id = list[0].ID
	}
	if id == "" {
		return a.Runtime.NewSession(ctx, agent.SessionOptions{Cwd: cwd, Model: f.model, Agent: f.agent})
	}
	s, err := a.Runtime.LoadSession(ctx, id)
	if err != nil {
		return nil, err
	}
	if f.model != "" {
		if err := s.SetModel(f.model); err != nil {
			return nil, err
		}
	}
	if f.agent != "" {
		if err := s.SetAgent(f.agent); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// interrupts cancels the turn at the first Ctrl-C. The handler is removed then, so that the second one ends the
// process as usual, also when the turn hangs.
func interrupts(cancel func()) (stop func()) {
	// signal.Notify does not block, so the channel needs room for a signal that comes before the goroutine waits.
	c := make(chan os.Signal, 2)
	signal.Notify(c, os.Interrupt)
	done := make(chan struct{})
	go func() {
		select {
		case <-c:
			signal.Stop(c)
			cancel()
		case <-done:
		}
	}()
	return func() { signal.Stop(c); close(done) }
}

// jsonLines writes one JSON object a line, as things happen. mu keeps lines whole: events come from several
// goroutines.
type jsonLines struct {
	mu sync.Mutex
	w  io.Writer
}

// event writes an event. Events of this process carry a Go value, stored ones their JSON; both look the same to a
// reader.
func (j *jsonLines) event(e agent.Event) {
	if len(e.Data) == 0 && e.Value != nil {
		e.Data, _ = json.Marshal(e.Value)
	}
	j.write(e)
}

// result writes the last line, of the type "result". A reader that waits for it knows that the run has ended and
// did not break off.
func (j *jsonLines) result(s terminal.Summary) {
	j.write(struct {
		Type string `json:"type"`
		terminal.Summary
	}{"result", s})
}

// write writes v as one line.
func (j *jsonLines) write(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		return // our own types can be encoded; a test covers each event
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	_, _ = j.w.Write(append(b, '\n')) // when the reader has ended, SIGPIPE ends this process
}

// reviewHelp describes --review for every command that has it.
const reviewHelp = "when you review changes: preview (each before it is written), follow (after they were written), or draft (all at the end of the turn, made in a copy)"

// approveHelp describes --approve for every command that has it.
const approveHelp = "how to answer approval requests: ask, all, none, or clean (apply changes that are checked in full and introduce no error)"

// verdictMode is how long a change waits for its verdict: --approve clean needs the final one, a person can see
// it arrive.
func verdictMode(how terminal.Approve) builtin.VerdictMode {
	switch how {
	case terminal.IfClean:
		return builtin.VerdictDecides
	case terminal.None:
		return builtin.VerdictAwaited
	}
	return builtin.VerdictShown
}

// parseApprove reads --approve; its error is a usage error. The words are those of package terminal.
func parseApprove(s string) (terminal.Approve, error) {
	switch a := terminal.Approve(s); a {
	case terminal.Ask, terminal.All, terminal.None, terminal.IfClean:
		return a, nil
	}
	return "", usagef("--approve takes ask, all, none or clean, not %q", s)
}

// isTerminal reports whether f is a file that is a terminal. Tests pass buffers, which are none.
func isTerminal(f any) bool {
	file, ok := f.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// keyboard is where answers are typed: standard input, or the controlling terminal when the prompt was piped in. nil
// when there is none. The caller closes what is not os.Stdin.
func keyboard(stdin bool) *os.File {
	if stdin {
		return os.Stdin
	}
	// /dev/tty is the controlling terminal of the process, whatever its standard streams are (tty(4)); Windows has
	// no such file.
	f, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	return f
}

// textEditor is the command that edits a hunk, as Git finds it: VISUAL, EDITOR, else vi (git-var(1), GIT_EDITOR).
// It may have arguments ("code --wait"), which are split at blanks; quoting is not understood.
func textEditor() []string {
	for _, name := range []string{"VISUAL", "EDITOR"} {
		if e := strings.Fields(os.Getenv(name)); len(e) > 0 {
			return e
		}
	}
	return []string{"vi"}
}
