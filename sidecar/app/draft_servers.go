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
	"github.com/pillion-dev/pillion/tools/shell/sandbox"
)

// The project's language servers see a draft as texts laid over their documents. They look for packages on the disk, and what Git ignores
// and only the draft has (node_modules after npm install, generated code) is not on theirs. For such a draft servers are started in its
// view, in the sandbox of commands and without the network: they load plugins and compilers that a command may have put there.

// viewWait is how long a proposal waits for servers that were started in the view: they read the whole project first.
const viewWait = 45 * time.Second

// inView is a bridge to the servers of a draft's view, where there are any: p has what the project's own servers do not see. Their answer
// counts where it is a fresh one. Otherwise it is the answer of the project's servers, which is a partial one at best.
func (o *openDraft) inView(b builtin.Bridge, info agent.SessionInfo, p *draft.Proposal) builtin.Bridge {
	why := unseen(p)
	if why == "" || b == nil {
		return b
	}
	return viewServers{partialServers{b, why}, o, info, bulkVersion(p)}
}

// viewServers implements builtin.Bridge; see inView. bulk names what the servers must have seen on the disk.
type viewServers struct {
	partialServers
	o    *openDraft
	info agent.SessionInfo
	bulk string
}

// Check implements builtin.Bridge. Both kinds of servers are asked at the same time, so that the slower does not use up the faster's time.
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

// viewManager is the manager of the view's servers; nil where they cannot be confined, and after the draft's worker was ended. Servers read
// what is installed once, so another state of it gets another manager.
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
	// Nothing in the view changes by itself, and a watcher of this process would see the project and not the draft.
	options.Start, options.NoWatch = o.start(top, false, true), true
	p.servers, p.bulk = lspbridge.New(options), bulk
	return p.servers
}

// checkInView waits for a fresh verdict of the view's servers on the whole draft, so that the proposal has it: when that is asked about, the
// view is gone. A server that does not answer in time leaves the verdict partial.
func (o *openDraft) checkInView(ctx context.Context, env builtin.Env, info agent.SessionInfo) {
	p, err := o.proposal()
	if err != nil || len(p.Files) == 0 {
		return
	}
	b, ok := o.inView(env.Bridge, info, p).(viewServers)
	if !ok || o.viewManager(info, b.bulk) == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, viewWait)
	defer cancel()
	b.Check(ctx, o.overlaid(nil))
}

// verdict is the fresh answer of the view's servers about these very texts, if there is one.
func (p *draftPrograms) verdict(key string) (lspbridge.Delta, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.answer, p.answered == key && key != ""
}

// keepVerdict keeps the latest fresh answer only: a draft that changes is not asked about its earlier states.
func (p *draftPrograms) keepVerdict(key string, d lspbridge.Delta) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer, p.answered = d, key
}

// bulkVersion names what of a draft is taken or left as a whole.
func bulkVersion(p *draft.Proposal) string {
	var b strings.Builder
	for i := range p.Bulk {
		fmt.Fprintf(&b, "%s %d %d\n", p.Bulk[i].Rel, p.Bulk[i].Count, p.Bulk[i].Size)
	}
	return b.String()
}

// textsVersion names the texts of a check.
func textsVersion(files []lspbridge.Proposal) string {
	lines := make([]string, len(files))
	for i, f := range files {
		lines[i] = fmt.Sprintf("%s\x00%v\x00%x", f.Path, f.Delete, sha256.Sum256([]byte(f.Text)))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
