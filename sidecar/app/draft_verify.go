package app

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/affected"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/draft"
	"github.com/pillion-dev/pillion/tools/files"
	"github.com/pillion-dev/pillion/tools/paths"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/search"
)

// How long checks may take: somebody waits for the proposal. A check that does not end in time is shown with the results it
// had until then.
const (
	verifyTime   = 5 * time.Minute // one command; bash stops it then
	verifyBudget = 8 * time.Minute // for all of them, the baseline too: no command begins after it, and one that has begun may continue
)

// maxTestFiles is how many files a project may have for its affected tests to be looked for: all of them are listed at the end of each turn.
const maxTestFiles = 100_000

// verify runs the commands of the setting verify in the draft. Without the setting it runs the tests that the draft's changes can affect,
// but only where turn says that a model worked in it: a script that makes tool calls knows what it wants to run. Each command is asked for
// under the permission verify, runs in the sandbox and has a card of its own. An empty list in the settings turns all of it off, as it is
// not nil. What ran before ctx ended is returned.
func (d *Drafts) verify(ctx context.Context, s *agent.Session, o *openDraft, turn bool) (out []change.Check) {
	p, err := o.proposal()
	if err != nil || len(p.Files)+len(p.Bulk) == 0 {
		return nil // the proposal says what went wrong
	}
	c := d.app.ConfigOf(s.Info().Cwd)
	// Taken before the checks, which may leave files behind: their results are about the texts that they began with.
	version, until := change.Version(p.Files), time.Now().Add(verifyBudget)
	add := func(x change.Check) bool {
		x.Version = version
		out = append(out, x)
		return ctx.Err() == nil
	}
	// A check that did not run is still listed: its absence would look like one that passed.
	late := func(name, command string) change.Check {
		return change.Check{Command: name, Line: command, Status: change.EvidenceNotRun, Reason: fmt.Sprintf("the checks before it took the %.0f minutes there are", verifyBudget.Minutes())}
	}
	for _, command := range c.Verify {
		if time.Now().After(until) {
			add(late(command, command))
		} else if x, _ := d.run(ctx, s, o, command, command); !add(x) {
			return out
		}
	}
	if c.Verify != nil || !turn {
		return out
	}
	for _, run := range affectedRuns(ctx, o, p) {
		if time.Now().After(until) {
			add(late(run.Name, run.Command()))
			continue
		}
		x, text := d.run(ctx, s, o, run.Command(), run.Name)
		x.Tests = run.Results(text)
		// Only failures of single tests can be compared with those of before.
		if len(x.Tests) > 0 && x.Status == change.EvidenceFailed && ctx.Err() == nil && time.Now().Before(until) {
			d.baseline(ctx, s, o, run, &x)
		}
		if !add(x) {
			return out
		}
	}
	return out
}

// affectedRuns are the commands that test what a draft can affect, by the files as the draft has them. A project that cannot be listed, or
// that is larger than maxTestFiles, has none: a part of the list would miss tests that the change breaks.
func affectedRuns(ctx context.Context, o *openDraft, p *draft.Proposal) []affected.Run {
	root := o.Head().Project
	list, more, err := (&search.Searcher{}).Files(ctx, root, maxTestFiles)
	if err != nil || more {
		return nil
	}
	for i, name := range list {
		list[i] = filepath.Join(root, filepath.FromSlash(name))
	}
	slices.Sort(list) // the walk has no order, and the same change must give the same commands
	proposed := map[string]change.File{}
	for _, f := range p.Files {
		proposed[f.Path] = f
		if f.Kind == change.Create {
			list = append(list, f.Path)
		}
	}
	list = slices.DeleteFunc(list, func(path string) bool { return proposed[path].Kind == change.Delete })
	// The draft's text where it has one. A deleted file and a link have none.
	read := func(path string) (string, bool) {
		if f, ok := proposed[path]; ok {
			return f.New, f.Kind != change.Delete && !f.Links()
		}
		return readSource(path)
	}
	exists := func(path string) bool {
		if _, ok := proposed[path]; ok {
			return true
		}
		_, err := os.Stat(path)
		return err == nil
	}
	return affected.Plan(&affected.Project{Root: root, Files: p.Files, List: list, Read: read, Exists: exists})
}

// readSource is a file of the project as text. A link is not followed, since it could lead out of the project, and a file beyond
// files.MaxText is not a source. ok is false for both, and for what cannot be read.
func readSource(path string) (string, bool) {
	fi, err := os.Lstat(path)
	if err != nil || !fi.Mode().IsRegular() || fi.Size() > files.MaxText {
		return "", false
	}
	text, err := os.ReadFile(path)
	return string(text), err == nil
}

// baseline runs the tests that failed once more without the draft's changes, in a fresh draft that is thrown away, and notes in x how each
// of them ended (Before). A test that failed before is not this change's doing, and must not send the model after it. It costs nothing
// where all tests pass. Before stays empty where nothing could be compared; the test then counts as the change's.
func (d *Drafts) baseline(ctx context.Context, s *agent.Session, o *openDraft, run affected.Run, x *change.Check) {
	var failed []change.TestResult
	for _, t := range x.Tests {
		if t.Status == change.EvidenceFailed {
			failed = append(failed, t)
		}
	}
	if len(failed) == 0 {
		return
	}
	// The same view as the draft's: a copy is under another path, which a test may depend on.
	plain, err := draft.Create(ctx, draft.Options{Dir: d.Dir(), Project: o.root, Title: "baseline", View: o.Head().View, Ignored: search.Ignored(o.root)})
	if err != nil {
		return // the failures stand without a comparison
	}
	before := &openDraft{Draft: plain, app: d.app, root: o.root}
	defer func() {
		before.stop()
		_ = plain.Drop()
	}()
	// The person's unsaved texts are what the draft began from too.
	if before.layIn(d.app.Sessions.Env(s.Info())) != nil {
		return
	}
	run = run.Only(failed)
	y, text := d.run(ctx, s, before, run.Command(), "the failed tests without the change")
	if !y.Ran() {
		return
	}
	// By suite and name: suites have tests of the same name.
	was := map[[2]string]change.EvidenceStatus{}
	results := run.Results(text)
	for _, t := range results {
		was[[2]string{t.Suite, t.Name}] = t.Status
	}
	for i := range x.Tests {
		t := &x.Tests[i]
		if t.Status != change.EvidenceFailed {
			continue
		}
		// A run with other results but without this test means that the test did not exist. Without any results the run says nothing.
		if t.Before = was[[2]string{t.Suite, t.Name}]; t.Before == "" && len(results) > 0 {
			t.Before = change.EvidenceMissing
		}
	}
}

// run runs one command in a draft as a tool call beside the turn, so that it is asked for, shown and stored like any other. It returns the
// check without its tests, and the whole output, from which the caller reads them. name is what people read of it; the command may be too
// long for that. A refusal is not an error: the check then says that it did not run, and why.
func (d *Drafts) run(ctx context.Context, s *agent.Session, o *openDraft, command, name string) (e change.Check, whole string) {
	e = change.Check{Command: name, Line: command, Status: change.EvidenceNotRun}
	// A tool of its own, so that rules about verify are not those about bash. Its input is empty: the command is fixed here.
	tool := tools.Tool{ID: "verify", Permission: "verify", Kind: tools.KindExecute, Description: "Checks a draft before it is proposed.", Parameters: json.RawMessage(`{"type":"object"}`),
		Run: func(ctx context.Context, _ json.RawMessage, call *tools.Call) (tools.Result, error) {
			// Tests are the project's code. One "always" covers them all, as the agent chooses which.
			_, err := call.Host.Gate.Ask(ctx, permission.Request{SessionID: call.SessionID, CallID: call.CallID, Tool: call.Tool, Permission: "verify", Patterns: []string{command}, Always: []string{"*"}, Named: true,
				Title: "Verify the draft: " + name, Why: "it runs the project's code on what was done in the draft; nothing outside the draft is written", Metadata: map[string]any{"command": command}})
			if err != nil {
				return tools.Result{}, err
			}
			// A copy: the call belongs to the session's loop, and its gate must stay as it is for others.
			inside := *call
			inside.Tool, inside.Host.Gate = "bash", asked{call.Host.Gate}
			input, err := json.Marshal(map[string]any{"command": command, "description": "verify: " + name, "timeout": verifyTime.Milliseconds()})
			if err != nil {
				return tools.Result{}, err
			}
			start := time.Now()
			r, err := o.call(ctx, "bash", input, &inside, s.Info())
			// Without the time that the person took to answer.
			e.Seconds = time.Since(start).Seconds()
			whole = d.wholeOutput(r)
			return r, err
		}}
	data, err := s.ToolBeside(ctx, tool, json.RawMessage(`{}`))
	if err != nil {
		e.Reason = err.Error()
		return e, whole
	}
	// A number that has been JSON is a float64. Without it the command was stopped, or never ran.
	exit, ok := data.Metadata["exit"].(float64)
	if !ok {
		if e.Reason = data.Error; e.Reason == "" {
			e.Reason = "it did not end by itself"
		}
		// Its results until then count.
		if whole != "" && ctx.Err() == nil {
			e.Status, e.Output = change.EvidenceFailed, outputEnd(whole)
		}
		return e, whole
	}
	if e.Status, e.ExitCode = change.EvidencePassed, int(exit); e.ExitCode != 0 {
		e.Status, e.Output = change.EvidenceFailed, outputEnd(whole)
	}
	return e, whole
}

// maxWhole is how large a file of output may be to be read for a check's results, in bytes. Beyond it only what the model got of it is read.
const maxWhole = 64 << 20

// wholeOutput is what a command printed: bash adds what it knows of the run below it, and stores an output that is too long for the model
// in a file, whose name is in the metadata (outputPath). The results of most tests of a large suite are only there.
func (d *Drafts) wholeOutput(r tools.Result) string {
	text, _, _ := strings.Cut(r.Output, "\n\n<bash_metadata>\n")
	path, _ := r.Metadata["outputPath"].(string)
	// Only a file that Pillion wrote: the name comes from the draft's side.
	if path == "" || !paths.Within(d.app.Place.State, filepath.Clean(path)) {
		return text
	}
	if fi, err := os.Stat(path); err != nil || fi.Size() > maxWhole {
		return text
	}
	if b, err := os.ReadFile(filepath.Clean(path)); err == nil {
		return string(b)
	}
	return text
}

// outputEnd keeps the last 4 KiB of an output: failures stand there. A character that the cut has split is removed, so that the text is
// valid UTF-8.
func outputEnd(s string) string {
	if cut := len(s) - 4<<10; cut > 0 {
		s = "…" + strings.ToValidUTF8(s[cut:], "")
	}
	return s
}

// asked is the gate of a command that the person has allowed under verify: bash would ask about the same command a second time. A rule
// that denies still counts, and so does every question about another permission, such as a folder outside the project.
type asked struct{ gate tools.Gate }

// Ask implements tools.Gate: it allows bash once unless a rule denies it.
func (g asked) Ask(ctx context.Context, r permission.Request) (permission.Reply, error) {
	if r.Permission != "bash" || g.Would(ctx, r) == permission.Deny {
		return g.gate.Ask(ctx, r)
	}
	return permission.Reply{Kind: permission.Once, Asked: true}, nil
}

// Would implements tools.Foreteller.
func (g asked) Would(ctx context.Context, r permission.Request) permission.Action {
	if f, ok := g.gate.(tools.Foreteller); ok {
		return f.Would(ctx, r)
	}
	return permission.Ask
}

// failures is what the model reads of checks that failed, at most ten tests of each; empty where none did, or where all that failed had
// failed before. A check that did not run (refused, too late) is not listed: the model cannot fix that.
func failures(checks []change.Check) string {
	var b strings.Builder
	for i := range checks {
		c := &checks[i]
		fresh := c.New()
		if c.Status != change.EvidenceFailed || len(c.Tests) > 0 && len(fresh) == 0 {
			continue
		}
		fmt.Fprintf(&b, "%s\n", c)
		if len(fresh) == 0 {
			fmt.Fprintf(&b, "%s\n", c.Output)
		}
		for n, t := range fresh {
			// The list goes into the context of the model.
			if n == 10 {
				fmt.Fprintf(&b, "… and %d more\n", len(fresh)-n)
				break
			}
			fmt.Fprintf(&b, "FAIL %s (%s)\n%s\n", t.Name, t.Suite, t.Output)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "Before the user is asked: what you did in this draft was checked, and not all checks pass. Tests that failed before you began are not listed.\n\n" + b.String() +
		"\nMend it, or say in one sentence why it must be so; the user will see the result and your sentence with your proposal."
}
