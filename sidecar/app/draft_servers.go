package app

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools/builtin"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/draft"
	"github.com/pillion-dev/pillion/tools/draft/worker"
	"github.com/pillion-dev/pillion/tools/shell/sandbox"
)

// The project's language servers see the texts of a draft as unsaved documents (overlays). But they look for packages on the disk, outside
// the draft's view, where ignored files that only the draft has (node_modules after npm install, generated code) do not exist. For such a
// draft Pillion starts servers in its view, in the sandbox of commands and without the network, because they load plugins and compilers
// that a command in the draft may have installed.

// ViewWait is how long a proposal waits for servers in the view, which have to read the whole project first. It is a variable for tests on busy
// machines.
var ViewWait = 45 * time.Second

// inView returns b, unless p has files that the project's servers cannot see (unseen). Then it returns a bridge that asks servers in the
// draft's view and uses their verdict if it is fresh; otherwise it uses that of the project's servers, which is partial at best.
func (o *openDraft) inView(b builtin.Bridge, info agent.SessionInfo, p *draft.Proposal) builtin.Bridge {
	why := unseen(p)
	if why == "" || b == nil {
		return b
	}
	return viewServers{partialServers{b, why}, o, info, bulkVersion(p)}
}

// viewServers implements builtin.Bridge; see inView. bulk is the bulkVersion of the draft, which the servers must have read from the disk.
type viewServers struct {
	partialServers
	o    *openDraft
	info agent.SessionInfo
	bulk string
}

// Check implements builtin.Bridge. It asks both kinds of servers at the same time, because they share the time that ctx leaves.
func (b viewServers) Check(ctx context.Context, files []lspbridge.Proposal) lspbridge.Delta {
	key := b.bulk + textsVersion(files)
	if d, ok := b.o.programs.verdict(key); ok {
		return d
	}
	m := b.o.viewManager(b.info, b.bulk)
	if m == nil {
		return b.partialServers.Check(ctx, files)
	}
	answer := make(chan lspbridge.Delta, 1)
	go func() { answer <- m.Check(ctx, files) }() // ends with ctx
	outside := b.partialServers.Check(ctx, files)
	inside := <-answer
	if inside.Certainty != change.Fresh {
		return outside
	}
	b.o.programs.keepVerdict(key, inside)
	return inside
}

// viewManager returns the manager of the servers in the view; nil if they cannot run in a sandbox or if the draft's worker was ended. Servers
// read installed packages only once, so another bulk gets new servers.
func (o *openDraft) viewManager(info agent.SessionInfo, bulk string) *lspbridge.Manager {
	if o.app == nil || o.Head().View == draft.Copy || !sandbox.Probe().Usable() {
		return nil
	}
	p := &o.programs
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return nil
	}
	if p.servers != nil && p.bulk == bulk {
		return p.servers
	}
	if p.servers != nil {
		old := p.servers
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), programsEnd)
			defer cancel()
			old.Close(ctx)
		}()
	}
	top := o.app.Drafts.top(info)
	options := o.app.Servers.options(o.root, o.app.ConfigOf(info.Cwd))
	// No watcher: one in this process would see the files of the project and not those of the draft.
	options.Start, options.NoWatch = o.start(top, worker.Rights{Confined: true}), true
	p.servers, p.bulk = lspbridge.New(options), bulk
	return p.servers
}

// queries returns what answers questions about declarations and uses: outside, and before it the servers in the view if the draft has files
// that outside cannot see.
func (o *openDraft) queries(outside draftQueries) []builtin.Queries {
	p, err := o.proposal()
	if err != nil || unseen(p) == "" {
		return []builtin.Queries{outside}
	}
	m := o.viewManager(outside.seen.info, bulkVersion(p))
	if m == nil {
		return []builtin.Queries{outside}
	}
	return []builtin.Queries{viewQueries{m, outside}, outside}
}

// viewQueries asks the servers in the view. Diagnostics are asked for as verdicts are, see viewServers.
type viewQueries struct {
	*lspbridge.Manager
	outside draftQueries
}

// ProjectDiagnostics implements builtin.Queries.
func (q viewQueries) ProjectDiagnostics(ctx context.Context, list ...string) []lspbridge.FileReport {
	return q.outside.ProjectDiagnostics(ctx, list...)
}

// checkInView asks the servers in the view for a verdict on the whole draft and keeps it for the proposal, because the view no longer exists
// when the person decides. If they do not answer within ViewWait, the verdict stays partial.
func (o *openDraft) checkInView(ctx context.Context, env builtin.Env, info agent.SessionInfo, p *draft.Proposal) {
	if len(p.Files) == 0 {
		return
	}
	b, ok := o.inView(env.Bridge, info, p).(viewServers)
	if !ok || o.viewManager(info, b.bulk) == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, ViewWait)
	defer cancel()
	b.Check(ctx, o.overlaid(nil))
}

// verdict returns the kept verdict of the servers in the view, if it has this key.
func (p *draftPrograms) verdict(key string) (lspbridge.Delta, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.answer, p.answered == key && key != ""
}

// keepVerdict keeps a fresh verdict. Only the latest is kept, because earlier states of a draft are not checked again.
func (p *draftPrograms) keepVerdict(key string, d lspbridge.Delta) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer, p.answered = d, key
}

// bulkVersion is a text that differs if the bulk changes of a draft (ignored files) differ in paths, counts or sizes.
func bulkVersion(p *draft.Proposal) string {
	var b strings.Builder
	for i := range p.Bulk {
		fmt.Fprintf(&b, "%s %d %d\n", p.Bulk[i].Rel, p.Bulk[i].Count, p.Bulk[i].Size)
	}
	return b.String()
}

// textsVersion is a text that differs if the files of a check differ in paths or texts. Their order does not matter.
func textsVersion(files []lspbridge.Proposal) string {
	lines := make([]string, len(files))
	for i, f := range files {
		lines[i] = fmt.Sprintf("%s\x00%v\x00%x", f.Path, f.Delete, sha256.Sum256([]byte(f.Text)))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
