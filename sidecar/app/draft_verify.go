package app

import (
	"cmp"
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

// How long checks may take: the person waits for the proposal. A check that does not end in time is shown with the results until
// then.
const (
	verifyTime   = 5 * time.Minute // for one command; bash stops it then
	verifyBudget = 8 * time.Minute // for all commands, the baseline included: none begins later, but one that has begun may continue
)

// maxTestFiles limits the search for affected tests: it lists all files of the project at the end of each turn.
const maxTestFiles = 100_000

// verify runs the commands of the setting verify in the draft. Without the setting it runs the tests that the draft's changes can
// affect. Each command needs approval for the permission verify, runs in the sandbox and is shown as a tool call. An empty list in
// the settings (not nil) turns all of this off. It returns what ran before ctx ended.
func (d *Drafts) verify(ctx context.Context, s *agent.Session, o *openDraft, p *draft.Proposal) (out []change.Check) {
	if len(p.Files)+len(p.Bulk) == 0 {
		return nil
	}
	c := d.app.ConfigOf(s.Info().Cwd)
	// Computed before the checks, which may change files: their results are about the texts before them.
	version, until := change.Version(p.Files), time.Now().Add(verifyBudget)
	add := func(x change.Check) bool {
		x.Version = version
		out = append(out, x)
		return ctx.Err() == nil
	}
	// A check that did not run is listed too; otherwise it would look like one that passed.
	late := func(name, command string) change.Check {
		return change.Check{Command: name, Line: command, Status: change.EvidenceNotRun, Reason: fmt.Sprintf("the checks before it took all of the %.0f minutes", verifyBudget.Minutes())}
	}
	for _, command := range c.Verify {
		if time.Now().After(until) {
			add(late(command, command))
			continue
		}
		x, _ := d.run(ctx, s, o, command, command)
		if x.Status == change.EvidenceFailed && ctx.Err() == nil && time.Now().Before(until) {
			d.wholeBaseline(ctx, s, o, &x)
		}
		if !add(x) {
			return out
		}
	}
	if c.Verify != nil {
		return out
	}
	runs, unplanned := affectedRuns(ctx, o, p)
	if unplanned != nil && !add(*unplanned) {
		return out
	}
	for _, run := range runs {
		if time.Now().After(until) {
			add(late(run.Name, run.Command()))
			continue
		}
		x, text := d.run(ctx, s, o, run.Command(), run.Name)
		x.Tests = run.Results(text)
		// A missing program is no failure of the change, and the agent must not be asked to repair it.
		if why := run.NotInstalled(text, x.ExitCode); why != "" && len(x.Tests) == 0 && x.Status == change.EvidenceFailed {
			x.Status, x.Reason = change.EvidenceNotRun, why
		}
		if x.Status == change.EvidenceFailed && ctx.Err() == nil && time.Now().Before(until) {
			if len(x.Tests) > 0 {
				d.baseline(ctx, s, o, run, &x)
			} else {
				d.wholeBaseline(ctx, s, o, &x)
			}
		}
		if !add(x) {
			return out
		}
	}
	return out
}

// affectedRuns lists the commands that run the tests which the draft's changes can affect. unplanned names tests that it cannot list; nil:
// none. Both are empty if the project cannot be listed or has more than maxTestFiles files, because an incomplete list would miss tests
// that the change breaks.
func affectedRuns(ctx context.Context, o *openDraft, p *draft.Proposal) (runs []affected.Run, unplanned *change.Check) {
	root := o.Head().Project
	list, more, err := (&search.Searcher{}).Files(ctx, root, maxTestFiles)
	if err != nil || more {
		return nil, nil
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
	// The draft's text if it has one. A deleted file and a link have none.
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
	project := &affected.Project{Root: root, Files: p.Files, List: list, Read: read, Exists: exists}
	if c, ok := affected.Unplanned(project); ok {
		unplanned = &c
	}
	return affected.Plan(project), unplanned
}

// readSource is a file of the project as text. ok is false for a link, because it could lead out of the project, for a file larger
// than files.MaxText, and for one that cannot be read.
func readSource(path string) (string, bool) {
	fi, err := os.Lstat(path)
	if err != nil || !fi.Mode().IsRegular() || fi.Size() > files.MaxText {
		return "", false
	}
	text, err := os.ReadFile(path)
	return string(text), err == nil
}

// unchanged runs one command in a fresh draft, without what was done in o, and removes that draft. ok is false if there is nothing
// to compare with: no draft could be made, or the command did not run.
func (d *Drafts) unchanged(ctx context.Context, s *agent.Session, o *openDraft, command, name string) (e change.Check, whole string, ok bool) {
	// A view of the same kind as the draft's: a copy is under another path, on which a test may depend.
	plain, err := draft.Create(ctx, draft.Options{Dir: d.Dir(), Project: o.root, Title: "baseline", View: o.Head().View, Ignored: search.Ignored(o.root)})
	if err != nil {
		return e, "", false
	}
	before := &openDraft{Draft: plain, app: d.app, root: o.root}
	defer func() {
		before.stop()
		_ = plain.Drop()
	}()
	// The draft also began with the person's unsaved texts.
	if before.layIn(d.app.Sessions.Env(s.Info())) != nil {
		return e, "", false
	}
	e, whole = d.run(ctx, s, before, command, name)
	return e, whole, e.Ran()
}

// wholeBaseline runs a failed command once more without the draft's changes and stores in x how it ended then. It is for commands whose
// output has no results of single tests: the model must not be asked to repair what failed before it began.
func (d *Drafts) wholeBaseline(ctx context.Context, s *agent.Session, o *openDraft, x *change.Check) {
	y, _, ok := d.unchanged(ctx, s, o, x.Line, x.Command+" without the change")
	if !ok {
		return
	}
	if x.Before = y.Status; y.Status == change.EvidenceFailed {
		x.Reason = strings.TrimPrefix(x.Reason+", it failed before the change too", ", ")
	}
}

// baseline runs the failed tests once more without the draft's changes, and stores in x how each of them ended (Before). The model must
// not be asked to repair a test that failed before. If all tests pass, nothing runs. Before stays empty if there is nothing to compare
// with; the test then counts as broken by the change.
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
	run = run.Only(failed)
	_, text, ok := d.unchanged(ctx, s, o, run.Command(), "the failed tests without the change")
	if !ok {
		return
	}
	results := run.Results(text)
	for i := range x.Tests {
		if t := &x.Tests[i]; t.Status == change.EvidenceFailed {
			t.Before = earlier(*t, results)
		}
	}
}

// earlier is how a failed test ended in a run without the change, of which these are the results; "": that is not known.
func earlier(t change.TestResult, results []change.TestResult) change.EvidenceStatus {
	if len(results) == 0 {
		return ""
	}
	for _, r := range results {
		// By suite and name: several suites have tests with the same name.
		if r.Suite == t.Suite && r.Name == t.Name {
			return r.Status
		}
	}
	// A package or file that did not fail as a whole has no result of its own, only those of its tests.
	if t.Whole() && slices.ContainsFunc(results, func(r change.TestResult) bool { return r.Suite == t.Suite || strings.HasPrefix(r.Suite, t.Suite+".") }) {
		return change.EvidencePassed
	}
	return change.EvidenceMissing
}

// run runs one command in a draft as a tool call beside the turn, so that it needs approval and is shown and stored like any other.
// It returns the check without its tests, and the whole output, from which the caller reads them. name is shown to people, because
// the command may be too long. A refusal is not an error: the check then says that it did not run, and why.
func (d *Drafts) run(ctx context.Context, s *agent.Session, o *openDraft, command, name string) (e change.Check, whole string) {
	e = change.Check{Command: name, Line: command, Status: change.EvidenceNotRun}
	// It is a separate tool, so that rules about verify differ from those about bash. Its input is empty, because the command is
	// fixed here.
	tool := tools.Tool{ID: "verify", Permission: "verify", Kind: tools.KindExecute, Description: "Checks a draft before it is proposed.", Parameters: json.RawMessage(`{"type":"object"}`),
		Run: func(ctx context.Context, _ json.RawMessage, call *tools.Call) (tools.Result, error) {
			// Tests are the project's code. One "always" covers them all, because the agent chooses which of them run.
			_, err := call.Host.Gate.Ask(ctx, permission.Request{SessionID: call.SessionID, CallID: call.CallID, Tool: call.Tool, Permission: "verify", Patterns: []string{command}, Always: []string{"*"}, Named: true,
				Title: "Verify the draft: " + name, Why: "it runs the project's code on what was done in the draft; nothing outside the draft is written", Metadata: map[string]any{"command": command}})
			if err != nil {
				return tools.Result{}, err
			}
			// A copy: the call belongs to the session's loop, whose other calls need the unchanged gate.
			inside := *call
			inside.Tool, inside.Host.Gate = "bash", asked{call.Host.Gate}
			input, err := json.Marshal(map[string]any{"command": command, "description": "verify: " + name, "timeout": verifyTime.Milliseconds()})
			if err != nil {
				return tools.Result{}, err
			}
			start := time.Now()
			r, err := o.call(ctx, "bash", input, &inside, s.Info())
			// start is after Ask, so Seconds does not include the time for the person's decision.
			e.Seconds = time.Since(start).Seconds()
			whole = d.wholeOutput(r)
			return r, err
		}}
	data, err := s.ToolBeside(ctx, tool, json.RawMessage(`{}`))
	if err != nil {
		e.Reason = err.Error()
		return e, whole
	}
	// Numbers that were JSON are float64. Without an exit code the command was stopped, or did not run.
	exit, ok := data.Metadata["exit"].(float64)
	if !ok {
		switch data.ErrorKind { // the error of a refused call is written for a model
		case "rejected":
			e.Reason = "it was not approved"
		case "denied":
			e.Reason = "a rule denies it"
		default:
			e.Reason = cmp.Or(data.Error, "it did not end by itself")
		}
		// Results that it printed until then are used.
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

// maxWhole is the largest file of output, in bytes, that is read for a check's results. For a larger one only the part that the
// model gets is read.
const maxWhole = 64 << 20

// wholeOutput is what a command printed. bash adds notes after the output, and stores an output that is too long for the model in a
// file, which the metadata names (outputPath). The results of most tests of a large suite are only in that file.
func (d *Drafts) wholeOutput(r tools.Result) string {
	text, _, _ := strings.Cut(r.Output, "\n\n<bash_metadata>\n")
	path, _ := r.Metadata["outputPath"].(string)
	// Only a file that Pillion wrote, because the name comes from the draft's process.
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

// outputEnd keeps the last 4 KiB of an output, because failures are at the end. A character that was split by the cut is removed,
// so that the text is valid UTF-8.
func outputEnd(s string) string {
	if cut := len(s) - 4<<10; cut > 0 {
		s = "…" + strings.ToValidUTF8(s[cut:], "")
	}
	return s
}

// asked is the gate of a command that the person has allowed under verify: without it bash would ask about the same command again.
// Rules that deny still count, and so do questions about other permissions, such as a folder outside the project.
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

// Rulesets implements tools.RuleReader: the allowed command changes nothing about what may be read.
func (g asked) Rulesets() []permission.Ruleset { return draftGate{gate: g.gate}.Rulesets() }

// failures is the text for the model about failed checks, with at most ten tests of each. It is empty if no check failed, or if all
// failed tests had failed before. A check that did not run (refused, too late) is not listed, because the model cannot fix that.
func failures(checks []change.Check) string {
	var b strings.Builder
	for i := range checks {
		c := &checks[i]
		fresh := c.New()
		if c.Status != change.EvidenceFailed || c.Before == change.EvidenceFailed || len(c.Tests) > 0 && len(fresh) == 0 {
			continue
		}
		fmt.Fprintf(&b, "%s\n", c)
		if len(fresh) == 0 {
			fmt.Fprintf(&b, "%s\n", c.Output)
		}
		for n, t := range fresh {
			// The list is added to the model's context.
			if n == 10 {
				fmt.Fprintf(&b, "… and %d more\n", len(fresh)-n)
				break
			}
			name := t.Name + " (" + t.Suite + ")"
			if t.Whole() {
				name = t.Suite + " as a whole"
			}
			fmt.Fprintf(&b, "FAIL %s\n%s\n", name, t.Output)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "Before the user is asked: what you did in this draft was checked, and not all checks pass. Tests that failed before you began are not listed.\n\n" + b.String() +
		"\nMend it, or say in one sentence why it must be so; the user will see the result and your sentence with your proposal."
}
