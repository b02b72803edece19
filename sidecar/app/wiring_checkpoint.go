package app

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/checkpoint"
	"github.com/pillion-dev/pillion/tools/files"
)

// pack is a change set as the store keeps it: its texts are contents beside the sessions.
func (a *App) pack(state change.State, set *change.Set) *change.Set {
	a.prune.Do(a.pruneContents)
	return Packed(a.Blobs, state, set)
}

// Packed keeps nothing yet of what is only proposed: the person waits for the question, and it may be another text in
// the end. Its hunks are in the event.
func Packed(b *checkpoint.Blobs, state change.State, s *change.Set) *change.Set {
	if state == change.Proposed {
		return checkpoint.Outline(s)
	}
	return b.Pack(s)
}

// settle says what became of a change set that was being written when a process died. The journal has ended it one way
// or the other by then.
func (a *App) settle(ctx context.Context, s agent.SessionInfo, packed *change.Set) change.State {
	a.RecoverOnce(ctx)
	set, err := a.Blobs.Load(packed)
	if err != nil {
		return change.Failed
	}
	for _, f := range set.Files {
		path := f.Path
		if f.Kind == change.Rename {
			path = f.NewPath
		}
		if f.Encoding == change.Link {
			target, err := os.Readlink(path)
			if (err == nil) != (f.Kind != change.Delete) || err == nil && target != f.New {
				return change.Failed
			}
			continue
		}
		now, err := files.Open(path, nil)
		if err != nil || now.Exists != (f.Kind != change.Delete) || now.Exists && now.Text != f.New && "\ufeff"+now.Text != f.New {
			return change.Failed
		}
	}
	return change.Applied
}

// pruneEvery is how often old contents are looked for.
const pruneEvery = 24 * time.Hour

// pruneContents removes old contents once a day, beside the work; close waits for it.
func (a *App) pruneContents() {
	stamp := filepath.Join(a.Blobs.Dir, "pruned")
	if info, err := os.Stat(stamp); err == nil && time.Since(info.ModTime()) < pruneEvery {
		return
	}
	a.pruning.Go(func() {
		if err := a.Blobs.Prune(checkpoint.Default); err != nil {
			a.O.Log.Warn("pruning checkpoints", "err", err)
			return
		}
		if os.MkdirAll(a.Blobs.Dir, 0o700) == nil {
			_ = os.WriteFile(stamp, nil, 0o600)
		}
	})
}
