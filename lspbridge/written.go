package lspbridge

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pillion-dev/pillion/tools/change"
)

// written is Changed on one server.
func (c *client) written(ctx context.Context, files []Proposal, created map[string]bool) serverVerdict {
	if c.commanded() {
		c.tell(files, created)
		return serverVerdict{state: change.Pending, reason: c.id + " waits for the answer to this edit"}
	}
	c.looks.shove()
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
		return serverVerdict{state: change.Pending, reason: c.id + " is checking another proposal"}
	}
	defer func() { c.txn <- struct{}{} }()
	if c.readsDisk() {
		c.tell(files, created)
		return c.ofDisk()
	}
	paths := pathsOf(files)
	if c.sync(slices.DeleteFunc(c.withBuffers(nil), func(p string) bool { return slices.Contains(paths, p) })) {
		half, cancel := context.WithTimeout(ctx, recallWait) // what was typed elsewhere is not this change's doing
		_ = c.settle(half, c.docs.among(paths))
		cancel()
	}
	used := c.recall(ctx, files, created)
	before, known := c.ledger.snapshot(), c.known(paths)
	c.tell(files, created)
	c.nudge(used.files)
	scope := c.scope(c.docs.among(paths), used.files)
	err := c.settle(ctx, scope)
	if err == nil {
		err = c.discover(ctx, files, scope)
	}
	if err == nil && used.unsure == nil {
		used.unsure = c.hidden(ctx, used)
	}
	if err != nil {
		return serverVerdict{state: failState(err), mute: errors.Is(err, errMute), reason: c.why(ctx, err), files: c.ledger.snapshot()}
	}
	v := c.compare(before, c.ledger.snapshot(), paths)
	if !known {
		v.reason = "what was wrong before this change is not known"
	}
	if used.unsure != nil {
		v.state, v.reason = change.Partial, c.id+" "+used.unsure.Error()
	}
	v.versions = c.docs.versionsOf(paths)
	return v
}

// recall finds out which problems there were before a write, and who uses what it changes, for writes that
// were not checked as a proposal first. It skips a server that has just been started: that would delay its
// first answer.
func (c *client) recall(ctx context.Context, files []Proposal, created map[string]bool) uses {
	opened, fresh := false, len(c.docs.paths()) == 0
	for _, f := range files {
		doc, open := c.docs.get(f.Path)
		unseen := !open && !fresh
		early := open && doc.text == f.Text && f.Old != f.Text // the watcher was quicker than whoever wrote it
		if f.Old != "" && !created[f.Path] && (unseen || early) {
			c.docs.put(f.Path, f.Old)
			opened = true
		}
	}
	used := c.dependents(ctx, files)
	if c.sync(used.files) || opened {
		half, cancel := context.WithTimeout(ctx, recallWait)
		defer cancel()
		_ = c.settle(half, c.docs.among(slices.Concat(pathsOf(files), used.files)))
	}
	return used
}

// recallWait is how long a write waits for the problems before it.
const recallWait = time.Second

// known reports whether the problems of the files were final before the change.
func (c *client) known(paths []string) bool {
	if c.way() == byMarker {
		return c.progress.loaded()
	}
	return !slices.ContainsFunc(paths, func(p string) bool { return c.ledger.truth(p) == nil })
}

// tell sends the notifications of a write: file events, file operations, didOpen or didChange, didSave.
func (c *client) tell(files []Proposal, created map[string]bool) {
	var events []fileEvent
	for _, f := range files {
		switch {
		case f.Delete:
			c.docs.close(f.Path)
			c.ledger.forget(f.Path)
			c.tellOf(f.Path)
			events = append(events, fileEvent{f.Path, 3})
		case created[f.Path]:
			events = append(events, fileEvent{f.Path, 1})
		default:
			events = append(events, fileEvent{f.Path, 2})
		}
	}
	// New files are announced before what uses them is changed.
	c.watched(c.able.wanted(events))
	c.didOperate(files, created)
	files = slices.Clone(files)
	slices.SortStableFunc(files, func(a, b Proposal) int { return c.rank(a) - c.rank(b) })
	for _, f := range files {
		if !f.Delete {
			c.docs.put(f.Path, f.Text)
			c.docs.save(f.Path)
		}
	}
	c.docs.trim(pathsOf(files))
}

// Servers that see new files only on disk notice a written one after a while.
const (
	discoverTries = 5
	discoverPause = 150 * time.Millisecond
)

// discover asks again while a server still reports that a file which has just been written cannot be
// imported.
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
		now := c.ledger.snapshot()
		for _, p := range scope {
			complains = complains || slices.ContainsFunc(now[p].items(), func(d change.Problem) bool { return missesModule(d, written) })
		}
		if !complains {
			return nil
		}
		if try == 1 && c.spec.hooks.missedFile != nil {
			c.spec.hooks.missedFile(ctx, c)
		}
		select {
		case <-time.After(discoverPause):
		case <-ctx.Done():
			return ctx.Err()
		}
		c.ledger.outdate()
		if err := c.settle(ctx, scope); err != nil {
			return err
		}
	}
	return nil
}
