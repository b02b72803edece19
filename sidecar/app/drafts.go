package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/builtin"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/draft"
	"github.com/pillion-dev/pillion/tools/draft/worker"
	"github.com/pillion-dev/pillion/tools/paths"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/search"
	"github.com/pillion-dev/pillion/tools/skill"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// Drafts implements agent.Drafts: the drafts of the sessions whose review style is draft. It decides whose draft a call
// works in, when a draft is made, proposed and removed; package draft knows the files, package worker runs the tools.
type Drafts struct {
	app   *App
	asked outsideAsked

	// mu is held while a draft is made, which takes a while where the project is cloned. It is never held over a tool call, a check or a
	// question.
	mu   sync.Mutex
	open map[string]*openDraft // guarded by mu; by the session that a person talks to
}

// openDraft is a session's draft, and the worker in which its tools run. ReadDraft, LandStored, verify's baseline and regenerated make one of
// their own, which Drafts.open does not have; of those only one that runs commands has a worker.
type openDraft struct {
	*draft.Draft
	app  *App   // nil in ReadDraft, which starts nothing
	root string // the worktree as the session names it; Head().Project has its links resolved
	// release gives the draft back to other processes. It is nil for a draft that is not in Drafts.open.
	release func()

	mu   sync.Mutex        // held while a worker is started or ended; calls run beside each other
	work *worker.Client    // guarded by mu; nil: none runs
	read map[string]string // guarded by mu; what the last worker's tools had read, for the next one: edits need a read before

	noting sync.Mutex // held while the ledger is read and written

	programs draftPrograms // what runs in the view beside the worker's own tools
}

// Dir is where drafts are kept.
func (d *Drafts) Dir() string { return filepath.Join(d.app.Place.State, "drafts") }

// top is the session that a person talks to: a sub-agent works in its draft, so that a task sees what its parent has
// done. A parent that is no longer open ends the walk, and its child counts as the top.
func (d *Drafts) top(info agent.SessionInfo) agent.SessionInfo {
	for range 100 { // a parent chain is as deep as sub-agents nest
		if info.Parent == "" {
			break
		}
		s, ok := d.app.Runtime.Session(info.Parent)
		if !ok {
			break
		}
		info = s.Info()
	}
	return info
}

// of is the draft in which a session works at this moment; nil: it works in the project. The first call of a turn makes
// it, or opens the one that an earlier turn left. Where no draft can be made the call fails: falling back to the
// project would write files that the person wanted to see first.
func (d *Drafts) of(ctx context.Context, info agent.SessionInfo) (*openDraft, error) {
	top := d.top(info)
	// The review style may have been changed since the tools were wrapped.
	if s, ok := d.app.Runtime.Session(top.ID); ok {
		top = s.Info()
	}
	if d.app.Runtime.ReviewOf(top) != agent.ReviewDraft {
		return nil, nil
	}
	// Held while the draft is made: calls that begin a turn side by side must share one.
	d.mu.Lock()
	defer d.mu.Unlock()
	if o := d.open[top.ID]; o != nil {
		return o, nil
	}
	// The whole worktree, not the session's folder: a build in a subfolder reads files above it.
	root := paths.Worktree(top.Cwd)
	// A turn that was cut off is continued where it stopped; its draft has work that the person has paid for.
	x, err := d.left(ctx, root, top.ID)
	if err == nil && x == nil {
		x, err = draft.Create(ctx, draft.Options{Dir: d.Dir(), Project: root, Session: top.ID, Title: top.Title, Ignored: search.Ignored(root)})
	}
	if err != nil {
		return nil, &tools.Error{Kind: "draft", Message: "no draft can be created, so nothing was done: " + err.Error() + `. The user can choose another review style ("review": "preview").`, Err: err}
	}
	release, err := x.Acquire()
	if err != nil {
		return nil, &tools.Error{Kind: "draft", Message: err.Error(), Err: err}
	}
	o := &openDraft{Draft: x, app: d.app, root: root, release: release}
	// Before the first call, also into a draft that an earlier turn left: the person has typed since.
	if err := o.layIn(d.app.Sessions.Env(top)); err != nil {
		release()
		return nil, fmt.Errorf("unsaved changes of the editor could not be copied into the draft:  %w", err)
	}
	if d.open == nil {
		d.open = map[string]*openDraft{}
	}
	d.open[top.ID] = o
	return o, nil
}

// left is the newest draft that an earlier turn of the session did not land; nil: there is none. It is open again from here
// on. A rejected one stays as it is, for pillion drafts. A draft that was used before the person undid a prompt or restored a checkpoint is
// rejected here, with a notice: what the person took back must not come again with the next proposal.
func (d *Drafts) left(ctx context.Context, root, session string) (*draft.Draft, error) {
	list, err := draft.List(d.Dir(), "")
	if err != nil {
		return nil, err
	}
	for _, x := range slices.Backward(list) {
		h := x.Head()
		if h.Session != session || h.State == draft.Rejected || h.Project != DraftProject(root) {
			continue
		}
		if s, ok := d.app.Runtime.Session(session); ok && restoredSince(ctx, s, h.Used) {
			s.Notice("info", "The draft "+h.ID+" was worked in by a prompt that was taken back since. It is set aside, and a new one begins: pillion drafts show "+h.ID)
			if err := x.Set(func(h *draft.Head) { h.State = draft.Rejected }); err != nil {
				return nil, err
			}
			continue
		}
		return x, x.Set(func(h *draft.Head) { h.State = draft.Open })
	}
	return nil, nil
}

// restoredSince reports that the session was restored after a draft was used (used: Head.Used), and that this was not undone again: the last
// restore decides. A session whose events cannot be read counts as restored: its draft is kept, and not continued.
func restoredSince(ctx context.Context, s *agent.Session, used time.Time) (back bool) {
	err := s.Events(ctx, 0, func(e agent.Event) error {
		if e.Type != agent.EventRestore || e.Time.Before(used) {
			return nil
		}
		if r, ok := agent.Value[agent.RestoreData](e); ok && r.State == agent.RestoreDone {
			// A restore that undoes another one is a redo: the prompts are part of the conversation again.
			back = r.Undoes == ""
		}
		return nil
	})
	return back || err != nil
}

// layIn takes the editor's unsaved texts into the draft, so that the tools see what the person sees. Links are
// resolved, because the draft knows files by their real paths.
func (o *openDraft) layIn(env builtin.Env) error {
	if env.Buffers == nil {
		return nil
	}
	for _, b := range env.Buffers.Dirty() {
		path := b.Path
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
		if err := o.LayIn(path, []byte(b.Text)); err != nil {
			return err
		}
	}
	return nil
}

// wrap makes the tools of worker.Tools run in the session's draft whenever it works in one. It is asked at each call,
// so a change of the review style needs no other list of tools. list is changed in place. A session that does not work in a draft runs the
// tools as they were.
func (d *Drafts) wrap(list []tools.Tool, info agent.SessionInfo) []tools.Tool {
	for i, t := range list {
		if !slices.Contains(worker.Tools, t.ID) {
			continue
		}
		// The model must know of the sandbox that commands have in a draft, or it could not ask to leave it.
		if t.ID == "bash" && d.app.Runtime.ReviewOf(d.top(info)) == agent.ReviewDraft && d.app.ConfigOf(info.Cwd).Sandbox == "" {
			env := d.app.Sessions.Env(info)
			env.Shell.Sandbox = builtin.DraftSandbox(env.Shell.Sandbox)
			list[i] = builtin.Bash(env)
		}
		list[i].Run = func(ctx context.Context, input json.RawMessage, call *tools.Call) (tools.Result, error) {
			o, err := d.of(ctx, info)
			if err != nil {
				return tools.Result{}, err
			}
			if o == nil {
				return t.Run(ctx, input, call)
			}
			return o.call(ctx, t.ID, input, call, info)
		}
	}
	return list
}

// call runs a tool in the draft and records afterwards what the project had at each path that it changed. Record runs
// after a failed call too: a command that ends with an error may have written files.
func (o *openDraft) call(ctx context.Context, tool string, input json.RawMessage, call *tools.Call, info agent.SessionInfo) (tools.Result, error) {
	w, err := o.worker(ctx, info)
	if err != nil {
		return tools.Result{}, &tools.Error{Kind: "draft", Message: "the draft cannot be used: " + err.Error(), Err: err}
	}
	// A copy: the caller's call keeps the session's own gate.
	inside := *call
	inside.Host.Gate = draftGate{call.Host.Gate, o.Root()}
	names := o.translation()
	input = names.in(input)
	inside.OnMetadata = func(u tools.Update) {
		call.Report(names.update(u))
	}
	start := time.Now() // Record marks files that the project has written since as Unsure
	r, err := w.Call(ctx, tool, input, &inside)
	err = o.record(start, err)
	if tool == "bash" && call.Tool == "bash" { // the agent's own; those of verify are noted as checks
		o.noteRun(input, r)
	}
	return names.result(r), names.error(err)
}

// record keeps what the project had wherever a call that began at start has changed something. err is the call's own error. Without the
// base a landing could not merge, so the call counts as failed even if the tool succeeded.
func (o *openDraft) record(start time.Time, err error) error {
	e := o.Record(start, o.ignored())
	if e == nil {
		return err
	}
	e = fmt.Errorf("what the project had could not be kept beside the draft: %w", e)
	if err != nil {
		return errors.Join(err, e)
	}
	return &tools.Error{Kind: "draft", Message: e.Error(), Err: e}
}

// worker is the process in which the draft's tools run. It is started with the first call, and again when it has died: an out-of-memory kill
// must not end the turn. It outlives the call that starts it, hence the context without its cancellation; stop ends it.
func (o *openDraft) worker(ctx context.Context, info agent.SessionInfo) (*worker.Client, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.work != nil && o.work.Alive() {
		return o.work, nil
	}
	// Not by its path: where this program is in the project, as when Pillion is developed with Pillion, the view may have another file
	// there.
	cmd, err := o.Command("/proc/self/exe", worker.Arg)
	if err != nil {
		return nil, err
	}
	// A copy is entered without the helper, also on systems that have no /proc.
	if self, err := os.Executable(); err == nil && o.Head().View == draft.Copy {
		cmd.Path, cmd.Args[0] = self, self
	}
	// The worker serves all sessions of the draft, sub-agents too, so it has the settings of the top one.
	info = o.app.Drafts.top(info)
	set := o.settings(info)
	cmd.Env, set.Launches = set.environ, o.Head().View != draft.Copy
	// In a copy the tools know files by other paths, so the session's states would match none.
	if set.Read = o.read; o.read == nil && o.Head().View != draft.Copy {
		set.Read = o.app.Sessions.Env(info).Tracker.States()
	}
	env := o.app.Sessions.Env(info)
	// The language servers stay with this process; the worker asks them over its connection.
	host := worker.Host{Environ: env.Shell.More}
	if env.Bridge != nil {
		host.Bridge = draftServers{env.Bridge, o, info}
		if q, ok := env.Bridge.(builtin.Queries); ok {
			host.Queries = draftQueries{q, draftServers{env.Bridge, o, info}}
			host.Texts = func() []lspbridge.Proposal { return o.overlaid(nil) }
		}
	}
	o.work, err = worker.Start(context.WithoutCancel(ctx), cmd, set.Settings, host)
	return o.work, err
}

// workerSettings are a worker's settings and the environment of its process, which the settings do not carry.
type workerSettings struct {
	worker.Settings
	environ []string // NAME=value, as commands of the session get it
}

// settings are those of the person and of the trusted project, as they are outside the draft: a tool must behave alike in both. Paths of
// the project are given as the worker finds them.
func (o *openDraft) settings(info agent.SessionInfo) workerSettings {
	c := o.app.ConfigOf(info.Cwd)
	env := o.app.Sessions.Env(info)
	shell, rg := c.Shell, c.Ripgrep
	// The worker has no gate for processes: what a project names is handed on only while the project is trusted.
	if c.Reason("shell").Check() != nil {
		shell = ""
	}
	if c.Reason("ripgrep").Check() != nil {
		rg = ""
	}
	s := worker.Settings{Cwd: o.inside(info.Cwd), Root: o.inside(env.Root), Own: env.Own, StateDir: env.StateDir, Home: env.Home, Shell: shell, Ripgrep: rg,
		Skills: skill.Places{Cwd: info.Cwd, Root: env.Root, Home: env.Home, Config: []string{o.app.Place.User}}, Programs: map[string]string{},
		Sandbox: worker.Sandbox{Mode: c.Sandbox, Network: c.SandboxNetwork, AutoAllow: c.SandboxAutoAllow, ByEffects: o.app.Sessions.auto(info), Writable: c.SandboxWritable}}
	// What stays in the draft needs no question where the kernel holds it there. Who has switched the sandbox off is asked as
	// always.
	s.Sandbox.Draft = s.Sandbox.Mode == ""
	for name, record := range c.Programs {
		s.Programs[name] = string(record)
	}
	if f, ok := formatOptions(env.Root, c); ok {
		f.Root = o.inside(f.Root)
		f.Rules = slices.DeleteFunc(f.Rules, func(r builtin.FormatRule) bool { return r.Reason.Check() != nil }) // the worker knows no trust
		s.Format = &f
	}
	return workerSettings{s, env.Shell.Environment()}
}

// inside is a folder of the project as what runs in the draft finds it: the same path, or in a copy the clone's. A path
// outside of the project stays as it is.
func (o *openDraft) inside(path string) string {
	h := o.Head()
	if h.View != draft.Copy {
		return path
	}
	rel, err := filepath.Rel(h.Project, path)
	if err != nil || !filepath.IsLocal(rel) {
		return path
	}
	return filepath.Join(o.Root(), rel)
}

// stop ends the worker with all that runs in the draft. It keeps what the tools have read for the next worker. The view
// goes with the worker's namespace; the layer stays on disk.
func (o *openDraft) stop() {
	o.programs.close() // before the worker, which they need for an orderly end; and without mu, which a restart of theirs would take
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.work != nil {
		// A worker that has died answers nothing: what an earlier one had read still holds.
		if read := o.work.Close(); read != nil {
			o.read = read
		}
		o.work = nil
		// By these sizes a later Create decides what it has room for.
		if err := o.Measure(); err != nil {
			o.app.O.Log.Warn("measuring a draft", "draft", o.Dir, "err", err)
		}
	}
}

// ReadDraft is what a draft that nobody works in would change. It starts nothing; pillion drafts shows it.
func ReadDraft(d *draft.Draft) (*draft.Proposal, error) {
	return (&openDraft{Draft: d, root: d.Head().Project}).proposal()
}

// DraftProject is the project to which the drafts of a folder belong, as their heads name it: the root of its worktree, links resolved.
// Callers compare it with Head.Project; without the resolution a folder reached through a link would have no drafts.
func DraftProject(dir string) string {
	root := paths.Worktree(dir)
	if real, err := filepath.EvalSymlinks(root); err == nil {
		return real
	}
	return root
}

// ignored says what Git would not show of the draft. The project's own ignore files decide and, for files that the project does not have,
// the draft's. An agent could otherwise hide a change of an existing file from review with a line in .gitignore.
func (o *openDraft) ignored() func(abs string, dir bool) bool {
	h := o.Head()
	tree := search.Ignored(h.Project)
	// The folders of a draft on the disk: upper is the overlay's writable layer, tree a clone.
	layer := filepath.Join(o.Dir, "upper")
	if h.View != draft.Overlay {
		layer = filepath.Join(o.Dir, "tree")
	}
	// In an overlay the layer has only the ignore files that the draft has changed or added; a clone has all.
	fresh := search.Ignored(layer)
	return func(abs string, dir bool) bool {
		if filepath.Base(abs) == ".gitignore" { // what hides other files is never hidden
			return false
		}
		if tree(abs, dir) {
			return true
		}
		if _, err := os.Lstat(abs); err == nil {
			return false
		}
		rel, err := filepath.Rel(h.Project, abs)
		return err == nil && fresh(filepath.Join(layer, rel), dir)
	}
}

// umaskOnce is this process's umask, which files that are written get their modes by. It is read and not set: umask(2)
// can only be read by setting it, and that would be seen by every other thread, even for a moment. Where /proc does not
// tell (Linux before 4.7, other systems) the usual 022 is assumed.
var umaskOnce = sync.OnceValue(func() fs.FileMode {
	b, err := os.ReadFile("/proc/self/status")
	if err == nil {
		for line := range strings.Lines(string(b)) {
			var mask uint32
			if rest, ok := strings.CutPrefix(line, "Umask:"); ok {
				if _, err := fmt.Sscanf(strings.TrimSpace(rest), "%o", &mask); err == nil {
					return fs.FileMode(mask)
				}
			}
		}
	}
	return 0o022
})

// proposal reads what the draft holds, after noting the bases of what changed since the last call, commands in the
// background included. With the zero time no base is marked Unsure.
func (o *openDraft) proposal() (*draft.Proposal, error) {
	ignored := o.ignored()
	if err := o.Record(time.Time{}, ignored); err != nil {
		return nil, err
	}
	return o.Propose(ignored, umaskOnce())
}

// overlaid returns the draft's texts as the language servers are told of them. A path that is in more has the text from there: the edit
// that is being checked is later than the draft. If the draft cannot be read, more alone is returned: a check of less than the whole is
// better than none, and the landing reports the error. Binary files and links have no text for a server.
func (o *openDraft) overlaid(more []lspbridge.Proposal) []lspbridge.Proposal {
	known := map[string]bool{}
	for _, m := range more {
		known[m.Path] = true
	}
	p, err := o.proposal()
	if err != nil {
		return more
	}
	out := slices.Clone(more)
	for _, f := range p.Files {
		if known[f.Path] || f.Binary || f.Links() {
			continue
		}
		out = append(out, lspbridge.Proposal{Path: f.Path, Text: f.New, Old: f.Old, Delete: f.Kind == change.Delete})
	}
	return out
}

// unseen says what of a draft no language server can see, as the reason of a partial verdict; "" for nothing. Servers get the draft's texts
// as open documents, but they look for packages on the disk, and what was installed in the draft (node_modules, anything that Git ignores)
// is not on theirs.
func unseen(p *draft.Proposal) string {
	for i := range p.Bulk {
		if p.Bulk[i].Now != draft.None {
			return "the language servers do not see " + p.Bulk[i].Rel + ", which only the draft has"
		}
	}
	return ""
}

// partialServers are language servers that do not see the whole draft, for the reason why. Their fresh verdicts become partial ones: an
// import of a package that was just installed must neither go back to the model as an error nor count as checked.
type partialServers struct {
	builtin.Bridge
	why string
}

// Check implements builtin.Bridge.
func (b partialServers) Check(ctx context.Context, files []lspbridge.Proposal) lspbridge.Delta {
	d := b.Bridge.Check(ctx, files)
	if d.Certainty == change.Fresh {
		d.Certainty, d.Reason = change.Partial, b.why
	}
	for i := range d.Files {
		if d.Files[i].Certainty == change.Fresh {
			d.Files[i].Certainty, d.Files[i].Reason = change.Partial, b.why
		}
	}
	return d
}

// draftServers are the project's language servers, which see the draft as texts laid over their documents. Without it
// they would answer about the files on disk, which a draft does not change.
type draftServers struct {
	builtin.Bridge
	o    *openDraft
	info agent.SessionInfo
}

// seeing are the servers that see the most of the draft as it is now.
func (b draftServers) seeing() builtin.Bridge {
	p, err := b.o.proposal()
	if err != nil {
		return b.Bridge
	}
	return b.o.inView(b.Bridge, b.info, p)
}

// Check implements builtin.Bridge: the verdict on the whole draft with these files.
func (b draftServers) Check(ctx context.Context, files []lspbridge.Proposal) lspbridge.Delta {
	return b.seeing().Check(ctx, b.o.overlaid(files))
}

// Changed implements builtin.Bridge. Nothing has changed where the servers look, so it is a check.
func (b draftServers) Changed(ctx context.Context, files []lspbridge.Proposal) lspbridge.Delta {
	return b.Check(ctx, files)
}

// Diagnostics implements builtin.Bridge: those of a file as the draft has it. They come from a check of the whole draft, since an unchanged
// file can have new errors by a change in another.
func (b draftServers) Diagnostics(ctx context.Context, path string) lspbridge.FileReport {
	all := b.o.overlaid(nil)
	if len(all) == 0 {
		return b.Bridge.Diagnostics(ctx, path)
	}
	if !slices.ContainsFunc(all, func(p lspbridge.Proposal) bool { return p.Path == path }) {
		if text, err := os.ReadFile(path); err == nil { // unchanged, and perhaps broken by what was changed
			all = append(all, lspbridge.Proposal{Path: path, Text: string(text), Old: string(text)})
		}
	}
	// Not b.Check, which would lay the draft's texts over it a second time.
	d := b.seeing().Check(ctx, all)
	for _, r := range d.Files {
		if r.Path == path {
			return r
		}
	}
	return lspbridge.FileReport{Path: path, Certainty: d.Certainty, Reason: d.Reason}
}

// draftQueries are the servers' answers about the draft's texts, which the worker's client lays over the documents.
type draftQueries struct {
	builtin.Queries
	seen draftServers
}

// ProjectDiagnostics implements builtin.Queries: of each file as the draft has it. Files that the draft has changed are
// added to those that the servers know, files that it has removed are left out. list limits the answer to paths; empty:
// all.
func (q draftQueries) ProjectDiagnostics(ctx context.Context, list ...string) []lspbridge.FileReport {
	out := q.Queries.ProjectDiagnostics(ctx, list...)
	changed := q.seen.o.overlaid(nil)
	if len(changed) == 0 {
		return out
	}
	for _, p := range changed {
		known := slices.ContainsFunc(out, func(r lspbridge.FileReport) bool { return r.Path == p.Path })
		wanted := len(list) == 0 || slices.ContainsFunc(list, func(at string) bool { return paths.Within(at, p.Path) })
		if !known && wanted && !p.Delete {
			out = append(out, lspbridge.FileReport{Path: p.Path})
		}
	}
	out = slices.DeleteFunc(out, func(r lspbridge.FileReport) bool {
		return slices.ContainsFunc(changed, func(p lspbridge.Proposal) bool { return p.Path == r.Path && p.Delete })
	})
	for i := range out {
		out[i] = q.seen.Diagnostics(ctx, out[i].Path)
	}
	return out
}

// draftGate allows edits that stay in the draft: the person decides about them all at the end, and a question for each would make a draft
// pointless. Everything else goes to the session's gate: what is outside the project, the network, and what a rule denies.
type draftGate struct {
	gate tools.Gate
	root string // the project as the draft's tools see it
}

// held reports an edit that stays in the draft. Protected files are held too; they are asked about when the draft is landed. Request.Also
// has the absolute spellings of the paths, links resolved; every one must be in the project, or a link could lead the edit out of it. A
// request without any is not held.
func (g draftGate) held(r permission.Request) bool {
	if r.Permission != "edit" || len(r.Also) == 0 {
		return false
	}
	return !slices.ContainsFunc(r.Also, func(p string) bool { return !filepath.IsAbs(p) || !paths.Within(g.root, filepath.Clean(p)) })
}

// Ask implements tools.Gate. An edit in the draft passes unless a rule denies it: what is denied must not be prepared
// either.
func (g draftGate) Ask(ctx context.Context, r permission.Request) (permission.Reply, error) {
	if g.held(r) {
		if f, ok := g.gate.(tools.Foreteller); ok && f.Would(ctx, r) != permission.Deny {
			return permission.Reply{Kind: permission.Once}, nil
		}
	}
	return g.gate.Ask(ctx, r)
}

// Would implements tools.Foreteller, in agreement with Ask: it asks nobody.
func (g draftGate) Would(ctx context.Context, r permission.Request) permission.Action {
	f, ok := g.gate.(tools.Foreteller)
	if !ok {
		return permission.Ask
	}
	a := f.Would(ctx, r)
	if a == permission.Ask && g.held(r) {
		return permission.Allow
	}
	return a
}

// Rulesets implements tools.RuleReader. The draft's gate never refuses to read what they allow.
func (g draftGate) Rulesets() []permission.Ruleset {
	if r, ok := g.gate.(tools.RuleReader); ok {
		return r.Rulesets()
	}
	return nil
}

// Interrupted implements agent.Drafts: a turn was cancelled or failed, so nothing is proposed, as half a piece of work is not worth a
// review. A draft without changes is removed; any other is kept, and the next prompt continues in it (see left).
func (d *Drafts) Interrupted(s *agent.Session) {
	d.mu.Lock()
	o := d.open[s.ID()]
	delete(d.open, s.ID())
	d.mu.Unlock()
	if o == nil {
		return
	}
	defer o.release()
	o.stop()
	p, err := o.proposal()
	if err == nil && p.Empty() {
		_ = o.Drop()
		return
	}
	s.Notice("info", "What was done so far is kept in the draft "+o.Head().ID+": prompt again to continue it, or see pillion drafts.")
}

// Finish implements agent.Drafts. round counts from 0 how often the model was sent back in this turn, may says whether
// it can be sent back again; the text that is returned is the model's next message, "" ends the turn.
func (d *Drafts) Finish(ctx context.Context, s *agent.Session, round int, may bool) (again string) {
	again, _, _ = d.Land(ctx, s, round, may, true)
	return again
}

// Land proposes what a session's draft holds and waits for the decision. turn: a model worked in it, and not a script's
// calls. made is false where there was nothing to propose; data is the card of the proposal, empty when the draft went
// back to the model.
func (d *Drafts) Land(ctx context.Context, s *agent.Session, round int, may, turn bool) (again string, data agent.ToolData, made bool) {
	d.mu.Lock()
	o := d.open[s.ID()]
	d.mu.Unlock()
	if o == nil {
		return "", data, false
	}
	again, data, made = d.land(ctx, s, o, round, may, turn)
	// Sent back before the person was asked: there is no card, and the turn continues in the same draft. After a decision again is set as
	// well, but that draft is over.
	if again != "" && data.CallID == "" {
		return again, data, made
	}
	d.mu.Lock()
	delete(d.open, s.ID())
	d.mu.Unlock()
	o.release()
	return again, data, made
}

// LandStored proposes a stored draft in a session of its project: pillion drafts land and /drafts land. There is no model to which it could
// go back, so it is proposed with the errors it has. It fails with draft.ErrBusy while a session works in it. The evidence is what the turn
// has left beside the draft. made is false where the draft changes nothing; it is removed then.
func (d *Drafts) LandStored(ctx context.Context, s *agent.Session, x *draft.Draft) (data agent.ToolData, made bool, err error) {
	release, err := x.Acquire()
	if err != nil {
		return data, false, err
	}
	defer release()
	// A landing that was killed may have left half-written files, and no tool of a session was made yet that would have recovered them.
	d.app.Changes.RecoverOnce(ctx)
	_, data, made = d.land(ctx, s, &openDraft{Draft: x, app: d.app, root: x.Head().Project}, 0, false, false)
	return data, made, nil
}

// land is the end of a draft, in this order: problems that language servers are sure of, then the commands of verify,
// then the question to the person, then the writing. The first two may send the draft back to the model: they cost nobody's attention.
// Whatever fails, the draft is kept, with a notice that names it. Results are those of Land.
func (d *Drafts) land(ctx context.Context, s *agent.Session, o *openDraft, round int, may, turn bool) (again string, data agent.ToolData, made bool) {
	fail := func(err error) (string, agent.ToolData, bool) {
		s.Notice("error", "The draft "+o.Head().ID+" could not be proposed: "+err.Error()+". It is kept; see pillion drafts.")
		return "", data, true
	}
	env := d.app.Sessions.Env(s.Info())
	rounds := repairRounds
	if n := d.app.ConfigOf(s.Info().Cwd).RepairRounds; n != nil {
		rounds = *n
	}
	l := o.ledger()
	// Sent back and nothing changed since: the agent insists. Telling it the same again would only repeat that.
	version := o.version()
	insists := l.Back != "" && l.Back == version
	back := may && round < rounds && !insists
	sendBack := func(text string) (string, agent.ToolData, bool) {
		_ = o.Set(func(h *draft.Head) { h.Attempt++ })
		l.Back = o.version() // tests may have left files
		_ = o.setLedger(l)   // without it the agent is told once more
		return text, data, true
	}
	// While the worker lives, with what its tools have read.
	o.checkInView(ctx, env, s.Info())
	if back {
		if text := d.repair(ctx, env, o, s.Info()); text != "" {
			return sendBack(text)
		}
	}
	// What was run on these very texts holds.
	if !insists || len(l.Checks) == 0 || l.Checks[0].Version != version {
		if checks := d.verify(ctx, s, o, turn); turn || len(checks) > 0 {
			l.Checks = checks
		}
	}
	failed := failures(l.Checks)
	if back && failed != "" {
		return sendBack(failed)
	}
	if turn {
		l.Words, l.Insists = s.LastWords(), ""
		// It was sent back, and what it was told of is still so: its last words are the reason.
		if o.Head().Attempt > 0 && (failed != "" || d.repair(ctx, env, o, s.Info()) != "") {
			l.Insists = builtin.Reason(l.Words)
		}
	}
	var remade map[string]string
	if p, err := o.proposal(); err == nil && turn {
		remade = d.regenerated(ctx, s, o, p)
	}
	// Nothing may write to the draft while the person reads the proposal: commands in the background end here.
	o.stop()
	for path, state := range o.read { // the session's tools in the project know what those in the draft had read
		if h := o.Head(); h.View != draft.Copy {
			env.Tracker.Note(path, state)
		}
	}
	p, err := o.proposal()
	if err != nil {
		return fail(err)
	}
	// What cannot be landed (a socket, a device) is said with the proposal, so that its absence is not a surprise.
	for _, why := range p.Left {
		p.Notes = append(p.Notes, why+".")
	}
	if err := o.setLedger(l); err != nil {
		d.app.O.Log.Warn("keeping a draft's evidence", "draft", o.Dir, "err", err)
	}
	if p.Empty() {
		// Tests that were run and a draft without changes: the results are all that the turn has to show.
		for i := range l.Checks {
			p.Notes = append(p.Notes, l.Checks[i].String())
		}
		if len(p.Notes) > 0 {
			s.Notice("info", strings.Join(p.Notes, " "))
		}
		_ = o.Drop()
		return "", data, false
	}
	if err := o.Set(func(h *draft.Head) {
		h.State = draft.Proposed
		if h.Title == "" {
			h.Title = s.Info().Title
		}
	}); err != nil {
		return fail(err)
	}
	// pillion run --hold: nobody is there to review it now, so the draft stays proposed.
	if d.app.O.Hold {
		s.Notice("info", fmt.Sprintf("The draft %s with %s is ready: pillion drafts show %[1]s, then pillion drafts land %[1]s.", o.Head().ID, textutil.Plural(len(p.Files), "changed file")))
		return "", data, true
	}
	landing := builtin.Landing{Title: draftTitle(o.Head().Title), Files: p.Files, Notes: p.Notes, Evidence: d.evidenceOf(s, o, l, change.Version(p.Files), remade)}
	for i := range p.Bulk {
		landing.Bulk = append(landing.Bulk, p.Bulk[i].Summary())
	}
	// Empty folders alone still need a decision; with files they come along with them.
	if len(p.Files) == 0 {
		for _, f := range p.Folders {
			landing.Bulk = append(landing.Bulk, f.Rel+"/ (a folder)")
		}
	}
	// Called after the files were written. Where only some hunks were kept, folders are left out: they may have been made for the others.
	landing.Take = func(_ context.Context, bulk, partly bool) error {
		var errs []error
		if !partly && (bulk || len(p.Files) > 0) {
			errs = append(errs, o.LandFolders(p.Folders))
		}
		if bulk {
			// A crash while a large tree is copied leaves the head in this state, which says that the project may have a part of it.
			_ = o.Set(func(h *draft.Head) { h.State = draft.Landing })
			errs = append(errs, o.LandBulk(p.Bulk))
		}
		return errors.Join(errs...)
	}
	env.Bridge = o.inView(env.Bridge, s.Info(), p)
	data, err = s.ToolBeside(ctx, builtin.Land(env, landing), json.RawMessage(`{}`))
	if err != nil {
		return fail(err)
	}
	switch {
	case data.Status == agent.ToolCompleted:
		if err := o.Drop(); err != nil {
			d.app.O.Log.Warn("removing a draft", "draft", o.Dir, "err", err)
		}
		if data.Metadata["partly"] == true {
			// The model must know which hunks are not in the project, or its next edits would build on them.
			again = "About your proposal: " + data.Output
		}
	// Rejected is the person's word: the draft is set aside and not continued. Any other failure leaves it open for the next turn.
	case data.ErrorKind == "rejected":
		_ = o.Set(func(h *draft.Head) { h.State = draft.Rejected })
		s.Notice("info", "The project did not change. The draft is kept for 14 days: pillion drafts show "+o.Head().ID)
		again = "The user rejected your proposal; nothing of it was written, and the next draft begins from the project as it is. " + data.Error
	default:
		_ = o.Set(func(h *draft.Head) { h.State = draft.Open })
		s.Notice("warning", "The draft "+o.Head().ID+" was not landed and is kept: "+data.Error)
	}
	return again, data, true
}

// draftTitle is the title of a proposal. Front ends add how many files and hunks it has.
func draftTitle(of string) string {
	if of = textutil.FirstLine(of); of == "" {
		return "draft"
	}
	return "draft: " + textutil.Shorten(of, 60)
}

// repairRounds is how often a draft with errors or failed checks goes back to the model before a person is asked, unless the setting
// repair_rounds says otherwise. Without a limit a model that cannot fix an error would continue at the person's cost.
const repairRounds = 3

// repair asks the language servers for a verdict on the whole draft and returns what the model is to mend, "" for
// nothing. Only a fresh verdict counts: a server that has not finished would send the model after errors that are none.
func (d *Drafts) repair(ctx context.Context, env builtin.Env, o *openDraft, info agent.SessionInfo) string {
	if env.Bridge == nil {
		return ""
	}
	p, err := o.proposal()
	if err != nil || len(p.Files) == 0 {
		return "" // the proposal says what went wrong
	}
	env.Bridge = o.inView(env.Bridge, info, p)
	v := builtin.NewWriter(env).Check(ctx, change.New("", slices.Clone(p.Files)))
	if v == nil || v.Certainty != change.Fresh {
		return ""
	}
	introduced, _ := v.Errors()
	if introduced == 0 {
		return ""
	}
	return fmt.Sprintf("Before the user is asked: the language servers have checked all that you did in this draft, and it introduces %s:\n%s", textutil.Plural(introduced, "error"), builtin.ErrorList(v, func(p string) string { return p })) +
		"Mend them. If they are meant to be there, say why in one sentence and change nothing; the user will see the errors and your sentence with your proposal."
}

// Ended ends the worker of a session that is closed, and gives its draft back to other processes. The draft stays, for the session when it is
// opened again.
func (d *Drafts) Ended(session string) {
	d.mu.Lock()
	o := d.open[session]
	delete(d.open, session)
	d.mu.Unlock()
	if o != nil {
		o.stop()
		o.release()
	}
}

// close ends all workers. The drafts stay. The list is copied because Ended takes mu itself.
func (d *Drafts) close() {
	d.mu.Lock()
	ids := slices.Collect(maps.Keys(d.open))
	d.mu.Unlock()
	for _, id := range ids {
		d.Ended(id)
	}
}

// translation maps paths between the project and a clone of it that is elsewhere: in what the tools are given, and in what the
// model and the person read. Nobody but the tools should see the clone's path: a link in the editor must open the project's file, and the
// model would continue to use a path that is gone after the turn. The zero value does nothing, for a draft that shows the project under its own
// path.
type translation struct {
	there, here *regexp.Regexp // paths in the project, and in the clone; nil in the zero value
	project     string
	clone       string
}

// translation makes the one of this draft.
func (o *openDraft) translation() translation {
	h := o.Head()
	if h.View != draft.Copy {
		return translation{}
	}
	// The path must end there: /home/ann/app would also match in /home/ann/app-old. The byte after it is put back as $1.
	ends := `($|[^A-Za-z0-9_.-])`
	t := translation{project: h.Project, clone: o.Root()}
	t.there, t.here = regexp.MustCompile(regexp.QuoteMeta(t.project)+ends), regexp.MustCompile(regexp.QuoteMeta(t.clone)+ends)
	return t
}

// text is a text of the clone as the model and the person read it.
func (t translation) text(s string) string {
	if t.here == nil {
		return s
	}
	return t.here.ReplaceAllString(s, strings.ReplaceAll(t.project, "$", "$$")+"$1")
}

// in turns paths of the project in a call's arguments into those of the clone. The JSON is changed as text: such a path
// has the same bytes in it, as long as it needs no escape.
func (t translation) in(b json.RawMessage) json.RawMessage {
	if t.there == nil {
		return b
	}
	return t.there.ReplaceAll(b, []byte(strings.ReplaceAll(t.clone, "$", "$$")+"$1"))
}

// error translates the message of a tool's error. It keeps the kind, by which the loop and the editors act, and the cause, so that
// errors.Is still finds a rejection. Other errors have no text for the model and stay as they are.
func (t translation) error(err error) error {
	var known *tools.Error
	if t.here == nil || err == nil {
		return err
	}
	if errors.As(err, &known) {
		return &tools.Error{Kind: known.Kind, Message: t.text(known.Message), Err: known.Err}
	}
	return err
}

// metadata translates texts at any depth, by way of JSON. What cannot be written as JSON, or read again, is left as it was.
func (t translation) metadata(m map[string]any) map[string]any {
	if t.here == nil || m == nil {
		return m
	}
	b, err := json.Marshal(m)
	if err != nil {
		return m
	}
	var out map[string]any
	if json.Unmarshal([]byte(t.text(string(b))), &out) != nil {
		return m
	}
	return out
}

// locations are translated in a copy: the caller's list may be shared.
func (t translation) locations(list []tools.Location) []tools.Location {
	if t.here == nil {
		return list
	}
	out := slices.Clone(list)
	for i := range out {
		out[i].Path = t.text(out[i].Path)
	}
	return out
}

func (t translation) update(u tools.Update) tools.Update {
	u.Title, u.Metadata, u.Locations = t.text(u.Title), t.metadata(u.Metadata), t.locations(u.Locations)
	return u
}

func (t translation) result(r tools.Result) tools.Result {
	r.Title, r.Output, r.Metadata, r.Locations = t.text(r.Title), t.text(r.Output), t.metadata(r.Metadata), t.locations(r.Locations)
	return r
}
