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
	"github.com/pillion-dev/pillion/tools/files"
	"github.com/pillion-dev/pillion/tools/paths"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/search"
	"github.com/pillion-dev/pillion/tools/skill"
)

// Drafts implements agent.Drafts: the drafts of the sessions whose review style is draft. It decides whose draft a call
// works in, when a draft is made, proposed and removed; package draft knows the files, package worker runs the tools.
type Drafts struct {
	app   *App
	asked outsideAsked

	// mu is held while a draft is created, which can take long if the project is cloned. It is never held during a tool call, a check or an
	// approval request.
	mu   sync.Mutex
	open map[string]*openDraft // guarded by mu; by the session that a person talks to

	// begun has a channel for each session whose turn has called Begin; it is closed when Begin's draft is in open, or will not be made.
	begun sync.Map // string to chan struct{}
	told  sync.Map // string to true: the sessions that were told why their drafts are clones
}

// openDraft is a session's draft and the worker in which its tools run. ReadDraft, LandStored, baseline and regenerated create temporary ones
// that are not in Drafts.open; these have a worker only if they run commands.
type openDraft struct {
	*draft.Draft
	app  *App   // nil in ReadDraft, which starts nothing
	root string // the worktree as the session names it; Head().Project has its links resolved
	// release releases the lock of the draft, see draft.Acquire. It is nil for a draft that is not in Drafts.open.
	release func()
	used    bool // guarded by Drafts.mu; a call has worked in it, see Drafts.Begin

	mu   sync.Mutex        // held while a worker is started or ended, not during calls, which run concurrently
	work *worker.Client    // guarded by mu; nil: none runs
	read map[string]string // guarded by mu; which files the last worker's tools had read; the next worker needs it, because only a read file may be edited

	noting sync.Mutex // held while the ledger is read and written

	programs draftPrograms // programs in the view beside the worker
}

// Dir is where drafts are kept.
func (d *Drafts) Dir() string { return filepath.Join(d.app.Place.State, "drafts") }

// top is the session that a person talks to, which is a sub-agent's outermost parent. A sub-agent works in the draft of its top session, so
// that it sees its parent's changes. If a parent is no longer open, its child counts as the top.
func (d *Drafts) top(info agent.SessionInfo) agent.SessionInfo {
	for range 100 { // far deeper than sub-agents nest; ends the loop if parents form a cycle
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

// of returns the draft in which a session works at present; nil: it works in the project. The first call of a turn creates
// the draft, or reopens the one that an earlier turn left. If no draft can be created, the call fails: falling back to the
// project would write files that the person wants to review first.
func (d *Drafts) of(ctx context.Context, info agent.SessionInfo) (*openDraft, error) {
	top := d.top(info)
	// The review style may have been changed since the tools were wrapped.
	if s, ok := d.app.Runtime.Session(top.ID); ok {
		top = s.Info()
	}
	if d.app.Runtime.ReviewOf(top) != agent.ReviewDraft {
		return nil, nil
	}
	d.awaitBegin(top.ID)
	// Held while the draft is created, because concurrent first calls of a turn must share one.
	d.mu.Lock()
	defer d.mu.Unlock()
	if o := d.open[top.ID]; o != nil {
		o.used = true
		return o, nil
	}
	// The whole worktree, not the session's folder: a build in a subfolder reads files above it.
	root := paths.Worktree(top.Cwd)
	// If an earlier turn was interrupted, its draft is continued.
	x, err := d.left(ctx, root, top.ID)
	if err == nil && x == nil {
		x, err = draft.Create(ctx, draft.Options{Dir: d.Dir(), Project: root, Session: top.ID, Title: top.Title, Ignored: search.Ignored(root)})
	}
	// A clone takes time and disk, and programs beside the agent do not see one under another path: the person should know why.
	if s, ok := d.app.Runtime.Session(top.ID); ok && err == nil && x.Head().View != draft.Overlay {
		h := x.Head()
		_, told := d.told.LoadOrStore(top.ID, true)
		if !told {
			text := "The draft is " + draft.Support{View: h.View, Why: h.Why}.String() + "."
			if lacks, _ := x.Lacks(); len(lacks) > 0 { // the draft was made with this list, so it can be read
				text += " Too large to copy, and therefore empty in it: " + strings.Join(lacks, ", ") + ". Commands that need them fail; work on those with another review style."
			}
			s.Notice("info", text)
		}
	}
	if err != nil {
		return nil, &tools.Error{Kind: "draft", Message: "no draft can be created, so nothing was done: " + err.Error() + `. The user can choose another review style ("review": "preview").`, Err: err}
	}
	release, err := x.Acquire()
	if err != nil {
		return nil, &tools.Error{Kind: "draft", Message: err.Error(), Err: err}
	}
	o := &openDraft{Draft: x, app: d.app, root: root, release: release, used: true}
	// A draft from an earlier turn needs this too, because the person may have typed since.
	if err := o.layIn(d.app.Sessions.Env(top)); err != nil {
		release()
		return nil, fmt.Errorf("unsaved changes of the editor could not be copied into the draft: %w", err)
	}
	d.keepOpen(top.ID, o)
	return o, nil
}

// keepOpen enters a draft as that of a session. The caller holds mu.
func (d *Drafts) keepOpen(session string, o *openDraft) {
	if d.open == nil {
		d.open = map[string]*openDraft{}
	}
	d.open[session] = o
}

// Begin implements agent.Drafts. If the session works in a draft that costs no copy of the project, it creates the draft and starts its worker
// in the background, with the editors' unsaved texts as they are at this moment. Errors are not reported: the first call tries again, and
// its error is the one to show. A draft that no call of the turn uses is removed at the turn's end.
func (d *Drafts) Begin(s *agent.Session) {
	info := s.Info()
	if d.app.Runtime.ReviewOf(info) != agent.ReviewDraft {
		return
	}
	env := d.app.Sessions.Env(info)
	var dirty []files.Buffer
	if env.Buffers != nil {
		dirty = env.Buffers.Dirty()
	}
	done := make(chan struct{})
	d.begun.Store(info.ID, done)
	go func() {
		defer close(done)
		d.mu.Lock() // waits where another session's project is being cloned
		defer d.mu.Unlock()
		d.ahead(info, dirty)
	}()
}

// awaitBegin waits for the draft that Begin creates: without it the first call would create another one, and the end of a turn would miss it.
func (d *Drafts) awaitBegin(session string) {
	if done, ok := d.begun.Load(session); ok {
		<-done.(chan struct{})
	}
}

// ahead creates the draft of a session before a call needs it and starts its worker, unless there is one already, or can be none. A draft that
// an earlier turn left is not opened: if no call uses it in this turn, it must stay as it is. The caller holds mu.
func (d *Drafts) ahead(info agent.SessionInfo, dirty []files.Buffer) {
	list, err := draft.List(d.Dir(), "")
	if err != nil || d.open[info.ID] != nil || slices.ContainsFunc(list, func(x *draft.Draft) bool {
		h := x.Head()
		return h.Session == info.ID && h.State != draft.Rejected
	}) {
		return
	}
	// The start of the worker is the trial of the overlay. Where it fails, Create tries what else there is.
	o := d.begin(info, dirty, true)
	if o == nil {
		o = d.begin(info, dirty, false)
	}
	if o != nil {
		d.keepOpen(info.ID, o)
	}
}

// begin creates a draft that costs no copy of the project, with a running worker; nil: there can be none. With untried the draft is an
// overlay that only the worker's start has tried.
func (d *Drafts) begin(info agent.SessionInfo, dirty []files.Buffer, untried bool) *openDraft {
	ctx, root := context.Background(), paths.Worktree(info.Cwd)
	x, err := draft.Create(ctx, draft.Options{Dir: d.Dir(), Project: root, Session: info.ID, Title: info.Title, NoCopy: true, Untried: untried})
	if err != nil {
		return nil
	}
	release, err := x.Acquire()
	if err != nil {
		return nil
	}
	o := &openDraft{Draft: x, app: d.app, root: root, release: release}
	fits := make(chan error, 1)
	go func() {
		if !untried { // Create has looked
			fits <- nil
			return
		}
		fits <- x.Fits(ctx)
	}()
	err = o.layInAll(dirty)
	if err == nil {
		_, err = o.worker(ctx, info)
	}
	if err = errors.Join(err, <-fits); err != nil {
		o.stop()
		release()
		_ = x.Drop()
		return nil
	}
	return o
}

// left returns the newest draft of the session that was neither landed nor rejected, and sets its state to Open; nil: there is none. If the
// person has undone a prompt or restored a checkpoint since the draft was used, left sets it to Rejected instead, with a notice: otherwise the
// undone work would be in the next proposal again.
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

// Kept is a notice for the person who opens a session again: an earlier turn of it, stopped or cut off, worked in a draft in which the next
// prompt continues. "" means that there is none, or that a turn works in it now.
func (d *Drafts) Kept(info agent.SessionInfo) string {
	// Held while the draft is: the first call of a prompt that is sent at once waits then, and does not find the draft in use.
	d.mu.Lock()
	defer d.mu.Unlock()
	list, err := draft.List(d.Dir(), DraftProject(info.Cwd))
	if err != nil {
		return "" // whoever works with drafts is told
	}
	for _, x := range slices.Backward(list) {
		h := x.Head()
		if h.Session != info.ID || h.State != draft.Open {
			continue
		}
		release, err := x.Acquire()
		if err != nil { // in use
			return ""
		}
		defer release()
		o := &openDraft{Draft: x, app: d.app, root: paths.Worktree(info.Cwd)}
		if p, err := o.Propose(o.ignored(), umaskOnce()); err == nil && p.Empty() {
			return ""
		}
		return "What the last turn did is kept in the draft " + h.ID + ", not in your files: prompt again to continue it, or see pillion drafts show " + h.ID + "."
	}
	return ""
}

// restoredSince reports whether the session was restored after used (Head.Used of a draft), and that restore was not itself undone: the
// last restore decides. If the session's events cannot be read, the answer is true, so that the draft is kept but not continued.
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

// layIn copies the editors' unsaved texts into the draft, so that the tools see what the person sees. Links are
// resolved, because a draft uses real paths.
func (o *openDraft) layIn(env builtin.Env) error {
	if env.Buffers == nil {
		return nil
	}
	return o.layInAll(env.Buffers.Dirty())
}

// layInAll copies unsaved texts into the draft.
func (o *openDraft) layInAll(dirty []files.Buffer) error {
	for _, b := range dirty {
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

// holdsCommands reports whether commands of a session run in a sandbox because it works in a draft. A person who has set "sandbox" decides
// about commands in a draft, too.
func (d *Drafts) holdsCommands(info agent.SessionInfo) bool {
	return d.app.Runtime.ReviewOf(d.top(info)) == agent.ReviewDraft && d.app.ConfigOf(info.Cwd).Sandbox == ""
}

// wrap changes list in place so that each call of a tool in worker.Tools runs in the session's draft, if the session works in one. That is
// decided at each call, so the list stays valid when the review style changes.
func (d *Drafts) wrap(list []tools.Tool, info agent.SessionInfo) []tools.Tool {
	for i, t := range list {
		if !slices.Contains(worker.Tools, t.ID) {
			continue
		}
		// In a draft, commands run in a sandbox. The tool's description must tell the model, or it could not ask to run without.
		if t.ID == "bash" && d.holdsCommands(info) {
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

// call runs a tool in the draft and then records the bases of the paths that it changed. It does so after a failed call
// too, because a command that fails may have written files.
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
	start := time.Now() // a project file that changes after this gets an Unsure base
	r, err := w.Call(ctx, tool, input, &inside)
	err = o.record(start, err)
	if tool == "bash" && call.Tool == "bash" { // a command of the agent; those of verify are stored as checks
		o.noteRun(input, r)
	}
	return names.result(r), names.error(err)
}

// record stores the bases for a call that began at start. err is the call's own error. If the bases cannot be stored, landing could not
// merge, so the call counts as failed even if the tool succeeded.
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

// worker returns the process in which the draft's tools run. The first call starts it, and a later call restarts it after a crash, so that an
// out-of-memory kill does not end the turn. It outlives the call that starts it, so it does not get the call's cancellation; stop ends it.
func (o *openDraft) worker(ctx context.Context, info agent.SessionInfo) (*worker.Client, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.work != nil && o.work.Alive() {
		return o.work, nil
	}
	// Not the program's path: if the program is in the project, as when Pillion is developed with Pillion, the view may have another file
	// at that path.
	cmd, err := o.Command("/proc/self/exe", worker.Arg)
	if err != nil {
		return nil, err
	}
	// In a copy no helper mounts anything, and the system may have no /proc.
	if self, err := os.Executable(); err == nil && o.Head().View == draft.Copy {
		cmd.Path, cmd.Args[0] = self, self
	}
	// The worker serves all sessions of the draft, sub-agents too, so it has the settings of the top one.
	info = o.app.Drafts.top(info)
	set := o.settings(info)
	cmd.Env = set.environ
	// In a copy the tools know files by other paths, so the session's states would match none.
	if set.Read = o.read; o.read == nil && o.Head().View != draft.Copy {
		set.Read = o.app.Sessions.Env(info).Tracker.States()
	}
	env := o.app.Sessions.Env(info)
	// The language servers belong to this process; the worker reaches them over its connection.
	host := worker.Host{Environ: env.Shell.More}
	if env.Bridge != nil {
		host.Bridge = draftServers{env.Bridge, o, info}
		if q, ok := env.Bridge.(builtin.Queries); ok {
			outside := draftQueries{q, draftServers{env.Bridge, o, info}}
			host.Queries = func() []builtin.Queries { return o.queries(outside) }
			host.Texts = func() []lspbridge.Proposal { return o.overlaid(nil) }
		}
	}
	o.work, err = worker.Start(context.WithoutCancel(ctx), cmd, set.Settings, host)
	return o.work, err
}

// workerSettings are a worker's settings and the environment of its process.
type workerSettings struct {
	worker.Settings
	environ []string // NAME=value, as commands of the session get it
}

// settings returns the settings for the worker, which are those of the tools outside the draft, because a tool must behave the same in both.
// Paths of the project are those in the view.
func (o *openDraft) settings(info agent.SessionInfo) workerSettings {
	c := o.app.ConfigOf(info.Cwd)
	env := o.app.Sessions.Env(info)
	shell, rg := c.Shell, c.Ripgrep
	// The worker cannot check trust, so programs that the project's settings name are passed on only if the folder is trusted.
	if c.Reason("shell").Check() != nil {
		shell = ""
	}
	if c.Reason("ripgrep").Check() != nil {
		rg = ""
	}
	s := worker.Settings{Cwd: o.inside(info.Cwd), Root: o.inside(env.Root), Own: env.Own, StateDir: env.StateDir, Home: env.Home, Shell: shell, Ripgrep: rg,
		Skills: skill.Places{Cwd: info.Cwd, Root: env.Root, Home: env.Home, Config: []string{o.app.Place.User}}, Programs: map[string]string{},
		Sandbox: worker.Sandbox{Mode: c.Sandbox, Network: c.SandboxNetwork, AutoAllow: c.SandboxAutoAllow, ByEffects: o.app.Sessions.auto(info), Writable: c.SandboxWritable}}
	// Without a sandbox setting, commands that the kernel confines to the draft need no approval. If the person has set the sandbox mode,
	// that setting decides.
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

// inside is the path under which programs in the draft find a folder of the project: the same path, or in a copy that of the clone. A path
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

// stop ends the worker and everything that runs in the draft, and with it the mounted view; the layer stays on disk. It keeps
// which files the tools have read, for the next worker.
func (o *openDraft) stop() {
	o.programs.close() // before the worker, which they need to end in order, and without mu, which a program that restarts would take
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.work != nil {
		// A worker that has crashed returns nil; then the list of an earlier one is kept.
		if read := o.work.Close(); read != nil {
			o.read = read
		}
		o.work = nil
	}
}

// keep puts a draft that stays after its turn on the disk. A failure is only logged: the files are there, and the next turn tries again.
func (o *openDraft) keep(ctx context.Context) {
	if err := o.Keep(ctx); err != nil {
		o.app.O.Log.Warn("storing a draft", "draft", o.Dir, "err", err)
	}
}

// ReadDraft returns the proposal of a draft, for pillion drafts. No session may be working in the draft. It starts no process.
func ReadDraft(d *draft.Draft) (*draft.Proposal, error) {
	return (&openDraft{Draft: d, root: d.Head().Project}).proposal()
}

// DraftProject is the project to which drafts of a folder belong: the root of its worktree, with links resolved. Callers compare it with
// Head.Project; if links were not resolved, a folder reached through a link would seem to have no drafts.
func DraftProject(dir string) string {
	root := paths.Worktree(dir)
	if real, err := filepath.EvalSymlinks(root); err == nil {
		return real
	}
	return root
}

// ignored returns a function that reports whether Git ignores a path. The project's ignore files decide; those of the draft count only for
// files that the project does not have, because otherwise an agent could hide a change of an existing file from review with a line in
// .gitignore.
func (o *openDraft) ignored() func(abs string, dir bool) bool {
	h := o.Head()
	tree := search.Ignored(h.Project)
	// upper is the writable layer of an overlay, tree is a clone.
	layer := filepath.Join(o.Dir, "upper")
	if h.View != draft.Overlay {
		layer = filepath.Join(o.Dir, "tree")
	}
	// In an overlay the layer has only the ignore files that the draft has changed or added; a clone has all.
	fresh := search.Ignored(layer)
	return func(abs string, dir bool) bool {
		if filepath.Base(abs) == ".gitignore" { // a file that hides others must always be reviewed
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

// umaskOnce is this process's umask, which determines the modes of new files. It is read from /proc, because umask(2) returns
// the value only while setting another one, which would affect all threads for a moment. Without it in /proc (Linux before
// 4.7, other systems) the usual 022 is assumed.
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

// proposal returns the draft's proposal. It first records bases for changes since the last call, which commands in the
// background may have made. With the zero time no base becomes Unsure.
func (o *openDraft) proposal() (*draft.Proposal, error) {
	ignored := o.ignored()
	if err := o.Record(time.Time{}, ignored); err != nil {
		return nil, err
	}
	return o.Propose(ignored, umaskOnce())
}

// overlaid returns more and the draft's texts, for a check by language servers. For a path in more its text counts, because the edit that is
// being checked is newer than the draft. If the draft cannot be read, it returns more alone: an incomplete check is better than none, and
// landing reports the error. Binary files and links are left out.
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

// unseen says, as the reason of a partial verdict, what the project's language servers cannot see of a draft; "" for nothing. They get the
// draft's texts as open documents, but look for packages on the disk, where ignored files that only the draft has (such as node_modules) do
// not exist.
func unseen(p *draft.Proposal) string {
	for i := range p.Bulk {
		if p.Bulk[i].Now != draft.None {
			return "the language servers do not see " + p.Bulk[i].Rel + ", which only the draft has"
		}
	}
	return ""
}

// partialServers wraps language servers that do not see the whole draft, and makes their fresh verdicts partial with the reason why. An
// import of a package that was just installed must neither be returned to the model as an error nor count as checked.
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

// draftServers asks the project's language servers about the draft, by sending its texts as overlays of their documents.
// Otherwise they would answer about the files on disk, which a draft does not change.
type draftServers struct {
	builtin.Bridge
	o    *openDraft
	info agent.SessionInfo
}

// seeing is the bridge to the servers that see most of the draft in its present state; see inView.
func (b draftServers) seeing() builtin.Bridge {
	p, err := b.o.proposal()
	if err != nil {
		return b.Bridge
	}
	return b.o.inView(b.Bridge, b.info, p)
}

// Check implements builtin.Bridge. The verdict is on the whole draft with these files changed.
func (b draftServers) Check(ctx context.Context, files []lspbridge.Proposal) lspbridge.Delta {
	return b.seeing().Check(ctx, b.o.overlaid(files))
}

// Changed implements builtin.Bridge. The files on disk that the servers know have not changed, so it is a check.
func (b draftServers) Changed(ctx context.Context, files []lspbridge.Proposal) lspbridge.Delta {
	return b.Check(ctx, files)
}

// Diagnostics implements builtin.Bridge for a file as it is in the draft. It checks the whole draft, because a change in another file can
// introduce errors in this one.
func (b draftServers) Diagnostics(ctx context.Context, path string) lspbridge.FileReport {
	all := b.o.overlaid(nil)
	if len(all) == 0 {
		return b.Bridge.Diagnostics(ctx, path)
	}
	if !slices.ContainsFunc(all, func(p lspbridge.Proposal) bool { return p.Path == path }) {
		if text, err := os.ReadFile(path); err == nil { // the draft does not change it, but changes in other files may break it
			all = append(all, lspbridge.Proposal{Path: path, Text: string(text), Old: string(text)})
		}
	}
	// Not b.Check, which would add the draft's texts a second time.
	d := b.seeing().Check(ctx, all)
	for _, r := range d.Files {
		if r.Path == path {
			return r
		}
	}
	return lspbridge.FileReport{Path: path, Certainty: d.Certainty, Reason: d.Reason}
}

// draftQueries answers queries about the draft. The worker's client sends the draft's texts as overlays (worker.Host.Texts), except for
// ProjectDiagnostics.
type draftQueries struct {
	builtin.Queries
	seen draftServers
}

// ProjectDiagnostics implements builtin.Queries for the files as they are in the draft. It adds files that the draft has changed
// to those that the servers know, and leaves out files that it has removed. list limits the answer to these paths; empty: no
// limit.
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

// draftGate allows edits that stay in the draft, because the person decides about all of them at the end. Everything else goes to the
// session's gate: edits outside the project, other permissions, and edits that a rule denies.
type draftGate struct {
	gate tools.Gate
	root string // the project as the draft's tools see it
}

// held reports whether a request is for an edit that stays in the draft. That includes protected files, which need approval when the draft is
// landed. Request.Also has the absolute paths, with links resolved; all of them must be in the project, or a link could lead the edit out
// of it. A request without any is not held.
func (g draftGate) held(r permission.Request) bool {
	if r.Permission != "edit" || len(r.Also) == 0 {
		return false
	}
	return !slices.ContainsFunc(r.Also, func(p string) bool { return !filepath.IsAbs(p) || !paths.Within(g.root, filepath.Clean(p)) })
}

// Ask implements tools.Gate. An edit in the draft is allowed unless a rule denies it.
func (g draftGate) Ask(ctx context.Context, r permission.Request) (permission.Reply, error) {
	if g.held(r) {
		if f, ok := g.gate.(tools.Foreteller); ok && f.Would(ctx, r) != permission.Deny {
			return permission.Reply{Kind: permission.Once}, nil
		}
	}
	return g.gate.Ask(ctx, r)
}

// Would implements tools.Foreteller: it predicts the result of Ask without asking.
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

// Rulesets implements tools.RuleReader with the rules of the session's gate, since the draft's gate only changes how edits are decided.
func (g draftGate) Rulesets() []permission.Ruleset {
	if r, ok := g.gate.(tools.RuleReader); ok {
		return r.Rulesets()
	}
	return nil
}

// Interrupted implements agent.Drafts. After a turn that was cancelled or failed nothing is proposed, because unfinished work is not worth
// a review. A draft without changes is removed; any other is kept, and the next prompt continues in it (see left).
func (d *Drafts) Interrupted(s *agent.Session) {
	d.awaitBegin(s.ID())
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
	if err == nil && (p.Empty() || !o.used) {
		_ = o.Drop()
		return
	}
	o.keep(context.Background())
	s.Notice("info", "What was done so far is kept in the draft "+o.Head().ID+": prompt again to continue it, or see pillion drafts.")
}

// verdict asks the language servers about the whole draft; nil where there are none or it changes nothing.
func (o *openDraft) verdict(ctx context.Context, env builtin.Env, info agent.SessionInfo) (*change.Verdict, error) {
	if env.Bridge == nil {
		return nil, nil
	}
	p, err := o.proposal()
	if err != nil || len(p.Files) == 0 {
		return nil, err
	}
	env.Bridge = o.inView(env.Bridge, info, p)
	return builtin.NewWriter(env).Check(ctx, change.New("", slices.Clone(p.Files))), nil
}

// verdictTool is the tool with which an external agent asks for the verdict on its draft. Pillion's own agent gets one with each edit.
func (d *Drafts) verdictTool(env builtin.Env, info agent.SessionInfo) tools.Tool {
	return tools.New("verdict", "The language servers' verdict on all changes of files in this turn so far: the errors that they introduce and fix.", func(ctx context.Context, _ struct{}, _ *tools.Call) (tools.Result, error) {
		o, err := d.of(ctx, info)
		if err != nil || o == nil {
			return tools.Result{}, err
		}
		v, err := o.verdict(ctx, env, info)
		switch {
		case err != nil:
			return tools.Result{}, err
		case v == nil:
			return tools.Result{Title: "nothing changed", Output: "No file that a language server checks has changed."}, nil
		}
		out := fmt.Sprintf("Your changes: %s (%s).", v.Headline(), v.Certainty)
		if v.Reason != "" {
			out += " " + v.Reason
		}
		if list := builtin.ErrorList(v, func(p string) string { return p }); list != "" {
			out += "\n" + list
		}
		return tools.Result{Title: v.Headline(), Output: out}, nil
	}, tools.WithKind(tools.KindRead), tools.WithReadOnly())
}

// Ended must be called when a session is closed. It ends the worker and releases the draft's lock. The draft stays, and the session continues
// in it when it is opened again.
func (d *Drafts) Ended(session string) {
	d.awaitBegin(session)
	d.begun.Delete(session)
	d.mu.Lock()
	o := d.open[session]
	delete(d.open, session)
	d.mu.Unlock()
	if o == nil {
		return
	}
	defer o.release()
	o.stop()
	if !o.used {
		_ = o.Drop()
		return
	}
	o.keep(context.Background())
}

// close ends all workers. The drafts stay. The list is copied because Ended takes mu itself.
func (d *Drafts) close() {
	d.begun.Range(func(session, _ any) bool {
		d.awaitBegin(session.(string))
		return true
	})
	d.mu.Lock()
	ids := slices.Collect(maps.Keys(d.open))
	d.mu.Unlock()
	for _, id := range ids {
		d.Ended(id)
	}
}

// translation replaces paths of the project by paths of a clone (View Copy) in the arguments of tools, and the reverse in their results. Only
// the tools may see the clone's path: a link in the editor must open the project's file, and the model would go on using a path that
// does not exist after the turn. The zero value changes nothing; it is for drafts that show the project under its own path.
type translation struct {
	there, here *regexp.Regexp // paths in the project, and in the clone; nil in the zero value
	project     string
	clone       string
}

// translation returns the translation for this draft.
func (o *openDraft) translation() translation {
	h := o.Head()
	if h.View != draft.Copy {
		return translation{}
	}
	// The pattern includes the byte after the path, which is put back as $1: /home/ann/app must not match in /home/ann/app-old.
	ends := `($|[^A-Za-z0-9_.-])`
	t := translation{project: h.Project, clone: o.Root()}
	t.there, t.here = regexp.MustCompile(regexp.QuoteMeta(t.project)+ends), regexp.MustCompile(regexp.QuoteMeta(t.clone)+ends)
	return t
}

// text replaces paths of the clone by those of the project.
func (t translation) text(s string) string {
	if t.here == nil {
		return s
	}
	return t.here.ReplaceAllString(s, strings.ReplaceAll(t.project, "$", "$$")+"$1")
}

// in replaces paths of the project by those of the clone in a call's arguments. It changes the JSON as text, which works for paths that need
// no escapes in JSON.
func (t translation) in(b json.RawMessage) json.RawMessage {
	if t.there == nil {
		return b
	}
	return t.there.ReplaceAll(b, []byte(strings.ReplaceAll(t.clone, "$", "$$")+"$1"))
}

// error translates the message of a *tools.Error. It keeps the kind, on which the loop and the editors depend, and the cause, so that
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

// metadata translates strings at any depth by converting m to JSON and back. If that fails, it returns m unchanged.
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

// locations translates paths in a copy of the list, because the caller's list may be shared.
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
