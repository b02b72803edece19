package lspbridge

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pillion-dev/pillion/tools/change"
)

// written is Changed on one server: bring it up to the state before the write, tell it of the write, wait, and compare. The problems before
// are needed because a server reports all of a file's problems, not those of a change. It never fails; what went wrong is the verdict's
// reason.
func (c *client) written(ctx context.Context, files []Proposal, created map[string]bool) serverVerdict {
	if c.commanded() {
		c.notifyWritten(files, created)
		return serverVerdict{state: change.Pending, reason: c.id + " runs a command that waits for the decision on this edit"}
	}
	release, err := c.exclusive.acquire(ctx)
	if err != nil {
		// A proposal is laid over the documents, so the written texts must wait until it is removed. They are sent
		// even then: without them the server would answer about the old ones for good.
		go func() {
			if release, err := c.exclusive.acquire(context.Background()); err == nil { // ends with the connection at the latest
				c.notifyWritten(files, created)
				release()
			}
		}()
		return serverVerdict{state: change.Pending, reason: err.Error()}
	}
	defer release()
	if c.readsDisk() {
		c.notifyWritten(files, created)
		return c.publishedVerdict()
	}
	paths := pathsOf(files)
	if c.sync(slices.DeleteFunc(c.withBuffers(nil), func(p string) bool { return slices.Contains(paths, p) })) {
		// Errors are ignored: without a baseline the comparison is less certain, and the write has been made in any case.
		half, cancel := context.WithTimeout(ctx, baselineWait) // what was typed elsewhere is not this change's doing
		_ = c.settle(half, c.docs.among(paths))
		cancel()
	}
	used := c.prepareBaseline(ctx, files, created)
	before, known := c.ledger.snapshot(), c.baselineKnown(paths)
	c.notifyWritten(files, created)
	c.dependents.recompile(used.files)
	scope := c.scope(c.docs.among(paths), used.files)
	err = c.settle(ctx, scope)
	if err == nil {
		err = c.waitUntilSeen(ctx, files, scope)
	}
	if err == nil && used.incomplete == nil {
		used.incomplete = c.dependents.hidden(ctx, used)
	}
	if err != nil {
		return serverVerdict{state: failState(err), mute: errors.Is(err, errMute), reason: c.why(ctx, err), files: c.ledger.snapshot()}
	}
	v := c.compare(before, c.ledger.snapshot(), paths)
	if !known {
		v.reason = "the problems before this change are not known"
	}
	if used.incomplete != nil {
		v.state, v.reason = change.Partial, c.id+" "+used.incomplete.Error()
	}
	v.versions = c.docs.versionsOf(paths)
	return v
}

// prepareBaseline finds out which problems there were before a write, and who uses what it changes, for writes that
// were not checked as a proposal first. It skips a server that has just been started: that would delay its
// first answer.
func (c *client) prepareBaseline(ctx context.Context, files []Proposal, created map[string]bool) uses {
	opened, fresh := false, len(c.docs.paths()) == 0
	for _, f := range files {
		doc, open := c.docs.get(f.Path)
		// A file that the server has not been shown: its old text is shown first, to learn its old problems.
		unseen := !open && !fresh
		early := open && doc.text == f.Text && f.Old != f.Text // the watcher was quicker than whoever wrote it
		if f.Old != "" && !created[f.Path] && (unseen || early) {
			c.docs.put(f.Path, f.Old)
			opened = true
		}
	}
	used := c.dependents.find(ctx, files)
	if c.sync(used.files) || opened {
		half, cancel := context.WithTimeout(ctx, baselineWait)
		defer cancel()
		_ = c.settle(half, c.docs.among(slices.Concat(pathsOf(files), used.files)))
	}
	return used
}

// baselineWait is how long a write waits for the problems before it. It comes off the budget in which the model's result waits.
const baselineWait = time.Second

// notifyWritten sends the notifications of a write: file events, file operations, didOpen or didChange, didSave. It waits for nothing. The
// caller holds the documents (exclusive), or a command of the server does on its behalf.
func (c *client) notifyWritten(files []Proposal, created map[string]bool) {
	var events []fileEvent
	for _, f := range files {
		switch {
		case f.Delete:
			c.docs.close(f.Path)
			c.ledger.forget(f.Path)
			c.feed.add(f.Path)
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
	slices.SortStableFunc(files, func(a, b Proposal) int { return c.openOrder(a) - c.openOrder(b) })
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
	// Five pauses are less than a second together, which an edit's wait allows.
	seenTries = 5
	seenPause = 150 * time.Millisecond
)

// waitUntilSeen asks again while a server still reports that a file which has just been written cannot be
// imported.
func (c *client) waitUntilSeen(ctx context.Context, files []Proposal, scope []string) error {
	if c.spec.Quirks.BlindToNew == "" {
		return nil
	}
	var written []string
	for _, f := range files {
		if !f.Delete {
			written = append(written, f.Path)
		}
	}
	for try := range seenTries {
		complains := false
		now := c.ledger.snapshot()
		for _, p := range scope {
			complains = complains || slices.ContainsFunc(now[p].items(), func(d change.Problem) bool { return missesModule(d, written) })
		}
		if !complains {
			return nil
		}
		// The first try gives the server a chance to notice by itself.
		if try == 1 && c.spec.hooks.missedFile != nil {
			c.spec.hooks.missedFile(ctx, c)
		}
		select {
		case <-time.After(seenPause):
		case <-ctx.Done():
			return ctx.Err()
		}
		c.ledger.invalidatePulls()
		if err := c.settle(ctx, scope); err != nil {
			return err
		}
	}
	return nil
}
