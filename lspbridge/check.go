package lspbridge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"go.lsp.dev/protocol"
)

// defaultBudget is how long an edit waits when its context has no deadline.
const defaultBudget = 1500 * time.Millisecond

func budget(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, defaultBudget)
}

// verdictOf is one server's part of a Delta.
type verdictOf struct {
	state      State
	reason     string
	introduced []Diagnostic
	fixed      []Diagnostic
	unchanged  int
	files      map[string]*fileDiags
	versions   map[string]int32
}

// Check says what a proposal would do to the project's problems: its texts are laid over the servers' documents, the
// problems compared, and the documents put back, whatever happens. Nothing touches the disk. It returns within ctx's
// deadline (1.5 s without one); a server that is still starting or thinking then makes the answer Pending.
func (m *Manager) Check(ctx context.Context, files []Proposal) Delta {
	ctx, cancel := budget(ctx)
	defer cancel()
	m.noteNew(files)
	return m.each(ctx, files, func(ctx context.Context, c *client, files []Proposal) verdictOf { return c.check(ctx, files) })
}

// Changed tells the servers what is now on disk (or in the editor) and waits for the problems of exactly that. The
// delta is against what was known before; Files holds all problems of the changed files.
func (m *Manager) Changed(ctx context.Context, files []Proposal) Delta {
	ctx, cancel := budget(ctx)
	defer cancel()
	created := map[string]bool{}
	m.mu.Lock()
	for _, f := range files {
		created[f.Path] = m.newFiles[f.Path]
		delete(m.newFiles, f.Path)
	}
	w := m.watcher
	m.mu.Unlock()
	if w != nil {
		w.own(files)
	}
	d := m.each(ctx, files, func(ctx context.Context, c *client, files []Proposal) verdictOf {
		return c.written(ctx, files, created)
	})
	return d
}

// noteNew remembers which proposed files do not exist yet.
func (m *Manager) noteNew(files []Proposal) {
	for _, f := range files {
		if _, err := os.Lstat(f.Path); errors.Is(err, os.ErrNotExist) && !f.Delete {
			m.mu.Lock()
			if len(m.newFiles) > 10_000 {
				clear(m.newFiles)
			}
			m.newFiles[f.Path] = true
			m.mu.Unlock()
		}
	}
}

// each asks every server concerned, side by side, and puts the answers together.
func (m *Manager) each(ctx context.Context, files []Proposal, ask func(context.Context, *client, []Proposal) verdictOf) Delta {
	m.flushIfBusy(ctx)
	groups := map[*slot][]Proposal{}
	var order []*slot
	for _, f := range files {
		for _, s := range m.slotsFor(f.Path) {
			if groups[s] == nil {
				order = append(order, s)
			}
			groups[s] = append(groups[s], f)
		}
	}
	if len(order) == 0 {
		return Delta{State: Unavailable, Reason: "no language server for " + kinds(files)}
	}
	parts := make([]verdictOf, len(order))
	var wg sync.WaitGroup
	for i, s := range order {
		wg.Go(func() {
			for range 2 { // a server that dies meanwhile gets a second chance
				c, err := s.get(ctx)
				if err != nil {
					parts[i] = verdictOf{state: failState(err), reason: err.Error()}
					return
				}
				if parts[i] = ask(ctx, c, groups[s]); !c.dead() {
					return
				}
			}
		})
	}
	wg.Wait()
	return merge(files, order, parts)
}

func (c *client) dead() bool {
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}

func kinds(files []Proposal) string {
	var out []string
	for _, f := range files {
		k := filepath.Ext(f.Path)
		if k == "" {
			k = filepath.Base(f.Path)
		}
		if !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	return strings.Join(out, ", ")
}

func failState(err error) State {
	var gone unavailable
	if errors.As(err, &gone) {
		return Unavailable
	}
	return Pending
}

// merge is as certain as the least certain server; one that is not there (of several) leaves the answer partial.
func merge(files []Proposal, order []*slot, parts []verdictOf) Delta {
	d := Delta{State: Fresh}
	var reasons []string
	missing := 0
	for i, p := range parts {
		if p.state == Unavailable && order[i].spec.Extra {
			missing++ // a linter that is not installed is nobody's loss
			continue
		}
		if p.reason != "" && !slices.Contains(reasons, p.reason) {
			reasons = append(reasons, p.reason)
		}
		switch {
		case p.state == Unavailable:
			missing++
			d.State = max2(d.State, Partial)
		default:
			d.State = max2(d.State, p.state)
		}
		d.Introduced = append(d.Introduced, p.introduced...)
		d.Fixed = append(d.Fixed, p.fixed...)
		d.Unchanged += p.unchanged
	}
	if missing == len(parts) {
		d.State = Unavailable
	}
	d.Reason = strings.Join(reasons, "; ")
	sortDiagnostics(d.Introduced)
	sortDiagnostics(d.Fixed)
	for _, f := range files {
		r := FileReport{Path: f.Path, State: d.State, Reason: d.Reason}
		for _, p := range parts {
			r.Items = append(r.Items, p.files[f.Path].items()...)
			r.Version = max(r.Version, p.versions[f.Path])
		}
		sortDiagnostics(r.Items)
		d.Files = append(d.Files, r)
	}
	return d
}

func max2(a, b State) State {
	order := []State{Fresh, Partial, Pending, Unavailable}
	if slices.Index(order, b) > slices.Index(order, a) {
		return b
	}
	return a
}

// why turns the error of a wait into what a person reads.
func (c *client) why(ctx context.Context, err error) string {
	c.mu.Lock()
	title := c.loading()
	if title == "" && c.spec.Quirks.EndMarker && c.ended[causeInitial] == 0 {
		title = "loading the workspace"
	}
	c.mu.Unlock()
	switch {
	case errors.Is(err, errGone):
		return c.spec.ID + " stopped and is being started again"
	case errors.Is(err, errQuiet):
		return c.spec.ID + " " + errQuiet.Error()
	case ctx.Err() != nil && title != "":
		return fmt.Sprintf("%s is still busy: %s", c.spec.ID, title)
	case ctx.Err() != nil:
		return c.spec.ID + " has not answered yet"
	}
	text, _, _ := strings.Cut(err.Error(), "\n") // servers send whole stacks
	return c.spec.ID + ": " + text
}

// related are documents a change may touch beside its own: what is open, for servers that only speak when asked.
func (c *client) related(paths []string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := slices.Clone(paths)
	if c.way() == byMarker {
		return out
	}
	others := make([]string, 0, len(c.docs))
	for p := range c.docs {
		if !slices.Contains(paths, p) {
			others = append(others, p)
		}
	}
	slices.SortFunc(others, func(a, b string) int { return int(int64(c.docs[b].used) - int64(c.docs[a].used)) })
	const most = 20
	return append(out, others[:min(len(others), most)]...)
}

// scope is the files a server must be asked about or waited for.
func (c *client) scope(paths []string) []string {
	c.mu.Lock()
	w := c.way()
	c.mu.Unlock()
	if w == byPush {
		return paths // nothing makes it publish others in a known time
	}
	return c.related(paths)
}

func pathsOf(files []Proposal) []string {
	out := make([]string, 0, len(files))
	for _, f := range files {
		if !slices.Contains(out, f.Path) {
			out = append(out, f.Path)
		}
	}
	return out
}

// lock keeps others from changing documents, until release.
func (c *client) lock(ctx context.Context) (release func(), err error) {
	select {
	case <-c.txn:
		return func() { c.txn <- struct{}{} }, nil
	default:
	}
	select {
	case <-c.txn:
		return func() { c.txn <- struct{}{} }, nil
	case <-c.gone:
		return nil, errGone
	case <-ctx.Done():
		return nil, fmt.Errorf("%s is checking another proposal", c.spec.ID)
	}
}

// check is the overlay transaction on one server.
func (c *client) check(ctx context.Context, files []Proposal) (v verdictOf) {
	release, err := c.lock(ctx)
	if err != nil {
		return verdictOf{state: Pending, reason: err.Error()}
	}
	paths := pathsOf(files)
	c.sync(paths)
	scope := c.scope(paths)
	if err := c.settle(ctx, c.stillThere(scope)); err != nil {
		release()
		return verdictOf{state: Pending, reason: c.why(ctx, err), files: c.snapshot()}
	}
	before := c.snapshot()
	undo := c.lay(files)
	err = c.settle(ctx, scope)
	after := c.snapshot()
	v = c.compare(before, after, paths)
	c.mu.Lock()
	v.versions = map[string]int32{}
	for _, p := range paths {
		if d := c.docs[p]; d != nil {
			v.versions[p] = d.version
		}
	}
	c.mu.Unlock()
	undo()
	release()
	if err != nil {
		v.state, v.reason = Pending, c.why(ctx, err)
		v.introduced, v.fixed, v.unchanged = nil, nil, 0
		return v
	}
	c.blind(&v, files)
	return v
}

// lay begins the overlay: new files first, so that what imports them finds them. undo puts everything back.
func (c *client) lay(files []Proposal) (undo func()) {
	files = slices.Clone(files)
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.SortStableFunc(files, func(a, b Proposal) int { return c.rank(a) - c.rank(b) })
	base := map[string]*string{}
	c.overlay = &overlay{files: maps.Clone(c.files), versions: map[string]int32{}}
	for _, f := range files {
		if _, seen := base[f.Path]; !seen {
			base[f.Path] = nil
			if d := c.docs[f.Path]; d != nil {
				base[f.Path] = &d.text
				t := d.text
				base[f.Path] = &t
			}
		}
		text := f.Text
		if f.Delete {
			if base[f.Path] == nil {
				continue
			}
			text = c.emptied(*base[f.Path])
		}
		c.overlay.versions[f.Path], _ = c.put(f.Path, text)
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, f := range files {
			t, ok := base[f.Path]
			if !ok {
				continue
			}
			delete(base, f.Path)
			if t == nil {
				c.close(f.Path)
			} else {
				c.put(f.Path, *t)
			}
		}
		if c.way() == byMarker {
			c.overlay.over = true // settleMarker makes it the truth once it is
			return
		}
		// Elsewhere pushes say their version, and pulls were asked for: the old answers hold for the old texts again.
		for p, f := range c.files {
			d := c.docs[p]
			if _, touched := c.overlay.versions[p]; !touched || d == nil {
				continue
			}
			g := *f
			if g.pushVer > 0 {
				g.pushVer = d.version
			}
			c.files[p] = &g
		}
		c.overlay = nil
	}
}

// rank orders a proposal: files the server does not know, then the others, deletions last. c.mu is held.
func (c *client) rank(f Proposal) int {
	switch {
	case f.Delete:
		return 2
	case c.docs[f.Path] == nil:
		return 0
	}
	return 1
}

// emptied is what a deleted file is overlaid with.
func (c *client) emptied(old string) string {
	e := c.spec.Quirks.EmptyText
	if e != "package " {
		return e
	}
	for line := range strings.Lines(old) {
		if name, ok := strings.CutPrefix(line, e); ok {
			if f := strings.Fields(name); len(f) > 0 {
				return e + f[0] + "\n"
			}
		}
	}
	return ""
}

// blind says what the server could not see, and takes back what it only complains of for that reason.
func (c *client) blind(v *verdictOf, files []Proposal) {
	var unseen []string
	deleted := false
	for _, f := range files {
		deleted = deleted || f.Delete
		if f.Delete {
			continue
		}
		_, err := os.Lstat(f.Path)
		_, errDir := os.Lstat(filepath.Dir(f.Path))
		switch q := c.spec.Quirks.BlindToNew; {
		case q == "file" && err != nil, q == "dir" && errDir != nil:
			unseen = append(unseen, f.Path)
		}
	}
	if deleted {
		v.state, v.reason = Partial, "deleted files were checked as empty ones"
	}
	if len(unseen) == 0 {
		return
	}
	v.state, v.reason = Partial, fmt.Sprintf("%s sees new files only once they are written", c.spec.ID)
	v.introduced = slices.DeleteFunc(v.introduced, func(d Diagnostic) bool { return missesModule(d, unseen) })
}

// missesModule reports a complaint that one of these files cannot be imported.
func missesModule(d Diagnostic, files []string) bool {
	msg := strings.ToLower(d.Message)
	if !strings.Contains(msg, "cannot find module") && !strings.Contains(msg, "could not be resolved") && !strings.Contains(msg, "unknown import symbol") {
		return false
	}
	return slices.ContainsFunc(files, func(p string) bool {
		base := filepath.Base(p)
		stem := strings.ToLower(strings.TrimSuffix(base, filepath.Ext(base)))
		if stem == "__init__" || stem == "index" {
			stem = strings.ToLower(filepath.Base(filepath.Dir(p)))
		}
		return strings.Contains(msg, stem)
	})
}

// Servers that are blind to new files find out about written ones in their own time.
const (
	discoverTries = 5
	discoverPause = 150 * time.Millisecond
)

// discover asks again while a server still complains that a file which has just been written cannot be imported.
func (c *client) discover(ctx context.Context, files []Proposal, scope []string) error {
	if c.spec.Quirks.BlindToNew == "" {
		return nil
	}
	var written []string
	for _, f := range files {
		if !f.Delete {
			written = append(written, f.Path)
		}
	}
	for try := range discoverTries {
		complains := false
		now := c.snapshot()
		for _, p := range scope {
			complains = complains || slices.ContainsFunc(now[p].items(), func(d Diagnostic) bool { return missesModule(d, written) })
		}
		if !complains {
			return nil
		}
		if try == 1 && c.spec.Quirks.TSServer { // its own watching has missed a new directory
			short, cancel := context.WithTimeout(ctx, time.Second)
			_ = c.call(short, protocol.MethodWorkspaceExecuteCommand, map[string]any{"command": tsserverRequest, "arguments": []any{"reloadProjects"}}, nil)
			cancel()
		}
		select {
		case <-time.After(discoverPause):
		case <-ctx.Done():
			return ctx.Err()
		}
		c.mu.Lock()
		c.seq++ // what was pulled is old
		c.mu.Unlock()
		if err := c.settle(ctx, scope); err != nil {
			return err
		}
	}
	return nil
}

// compare makes a server's part of the delta out of two snapshots.
func (c *client) compare(before, after map[string]*fileDiags, paths []string) verdictOf {
	v := verdictOf{state: Fresh, files: after}
	seen := map[string]bool{}
	for _, files := range []map[string]*fileDiags{after, before} {
		for p := range files {
			if seen[p] || before[p] == after[p] && !slices.Contains(paths, p) {
				continue
			}
			seen[p] = true
			in, fixed, same := diffDiagnostics(before[p].items(), after[p].items())
			v.introduced = append(v.introduced, in...)
			v.fixed = append(v.fixed, fixed...)
			if slices.Contains(paths, p) { // of other files a server may or may not have spoken again
				v.unchanged += same
			}
		}
	}
	return v
}

// written is Changed on one server.
func (c *client) written(ctx context.Context, files []Proposal, created map[string]bool) verdictOf {
	select {
	case <-c.txn:
	case <-ctx.Done():
		// Not while somebody's overlay lies on the documents: it tells the server as soon as that is gone.
		go func() {
			select {
			case <-c.txn:
				c.tell(files, created)
				c.txn <- struct{}{}
			case <-c.gone:
			}
		}()
		return verdictOf{state: Pending, reason: c.spec.ID + " is checking another proposal"}
	}
	defer func() { c.txn <- struct{}{} }()
	paths := pathsOf(files)
	before, known := c.snapshot(), c.known(paths)
	c.tell(files, created)
	scope := c.scope(c.stillThere(paths))
	err := c.settle(ctx, scope)
	if err == nil {
		err = c.discover(ctx, files, scope)
	}
	if err != nil {
		return verdictOf{state: Pending, reason: c.why(ctx, err), files: c.snapshot()}
	}
	v := c.compare(before, c.snapshot(), paths)
	if !known {
		v.reason = "what was wrong before this change is not known"
	}
	c.mu.Lock()
	v.versions = map[string]int32{}
	for _, p := range paths {
		if d := c.docs[p]; d != nil {
			v.versions[p] = d.version
		}
	}
	c.mu.Unlock()
	return v
}

func (c *client) stillThere(paths []string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return c.docs[p] == nil })
}

// known reports whether the server's word on the files was final before the change.
func (c *client) known(paths []string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.way() == byMarker {
		return c.ended[causeInitial] > 0
	}
	return !slices.ContainsFunc(paths, func(p string) bool { return c.files[p] == nil })
}

// tell sends didOpen or didChange, didSave and the watched file events of a write.
func (c *client) tell(files []Proposal, created map[string]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var events []fileEvent
	for _, f := range files {
		switch {
		case f.Delete:
			c.close(f.Path)
			delete(c.files, f.Path)
			c.news(f.Path)
			events = append(events, fileEvent{f.Path, 3})
		case created[f.Path]:
			events = append(events, fileEvent{f.Path, 1})
		default:
			events = append(events, fileEvent{f.Path, 2})
		}
	}
	// New files are announced before what uses them is changed.
	c.watched(c.wanted(events))
	files = slices.Clone(files)
	slices.SortStableFunc(files, func(a, b Proposal) int { return c.rank(a) - c.rank(b) })
	for _, f := range files {
		if !f.Delete {
			c.put(f.Path, f.Text)
			c.save(f.Path)
		}
	}
	c.trim(pathsOf(files))
}
