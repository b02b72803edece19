package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/sidecar/review"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/builtin"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/checkpoint"
	"github.com/pillion-dev/pillion/tools/files"
)

// Changes implements agent.ChangeKeeper: it keeps what the agent changes. That is the journal of writes, the contents
// beside the sessions, and what commands did to the files of a worktree.
type Changes struct {
	Blobs     *checkpoint.Blobs
	journal   files.Journal
	log       *slog.Logger
	notices   io.Writer // what a person at a terminal should know; nil: only the log
	ephemeral bool      // nothing is stored, so nothing can be restored
	runtime   *agent.Runtime

	recover sync.Once      // of RecoverOnce
	prune   sync.Once      // of pruneContents
	pruning sync.WaitGroup // the removal that runs in the background; App.Close waits for it

	mu    sync.Mutex
	trees map[string]*checkpoint.Tree // guarded by mu; by worktree root: sessions share what was copied
}

// Pack implements agent.ChangeKeeper: it replaces the texts of a change set by references to contents beside the
// sessions, so that an event stays small.
func (k *Changes) Pack(state change.State, set *change.Set) *change.Set {
	k.prune.Do(k.pruneContents)
	return Packed(k.Blobs, state, set)
}

// Packed stores nothing of a proposal: the person waits for the approval request, and the text may still change. Its
// event carries the hunks (checkpoint.Outline).
func Packed(b *checkpoint.Blobs, state change.State, s *change.Set) *change.Set {
	if state == change.Proposed {
		return checkpoint.Outline(s)
	}
	return b.Pack(s)
}

// Recover implements agent.ChangeKeeper: it says what became of a change set that was being written when the process
// ended. The journal has finished it or rolled it back by then, so comparing the files with the set is enough. It
// returns Failed when any file differs. A text may have got its byte order mark back on the way to the disk.
func (k *Changes) Recover(ctx context.Context, s agent.SessionInfo, packed *change.Set) change.State {
	k.RecoverOnce(ctx)
	set, err := k.Blobs.Load(packed)
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

// pruneEvery is how often old contents are removed, by the time stamp of a file that all processes of the person
// share.
const pruneEvery = 24 * time.Hour

// pruneContents removes old contents in the background. App.Close waits for it: a removal that is cut off would leave
// contents without their index.
func (k *Changes) pruneContents() {
	stamp := filepath.Join(k.Blobs.Dir, "pruned")
	if info, err := os.Stat(stamp); err == nil && time.Since(info.ModTime()) < pruneEvery {
		return
	}
	k.pruning.Go(func() {
		if err := k.Blobs.Prune(checkpoint.Default); err != nil {
			k.log.Warn("pruning checkpoints", "err", err)
			return
		}
		if os.MkdirAll(k.Blobs.Dir, 0o700) == nil {
			_ = os.WriteFile(stamp, nil, 0o600)
		}
	})
}

// RecoverOnce finishes or rolls back the writes that a crash has interrupted. It must run before the first tool of
// this process reads a file, and runs once.
func (k *Changes) RecoverOnce(ctx context.Context) {
	k.recover.Do(func() {
		done, err := files.Recover(ctx, k.journal)
		if err != nil {
			k.log.Error("recovery", "err", err)
			if k.notices != nil {
				fmt.Fprintln(k.notices, "pillion: a change that was interrupted earlier could not be recovered:", err)
			}
		}
		for _, r := range done {
			k.log.Warn("recovered an interrupted change", "what", r)
			if k.notices != nil {
				fmt.Fprintln(k.notices, "pillion: a change that was interrupted earlier:", r)
			}
		}
	})
}

// KeptChanges implements review.Store: change sets are written through the locks and the editor of their session, and
// their texts are beside the sessions.
type KeptChanges struct{ App *App }

// Files implements review.Store; nil for a session that is not open.
func (k KeptChanges) Files(session string) review.Files {
	s, ok := k.App.Runtime.Session(session)
	if !ok {
		return nil
	}
	return builtin.NewWriter(k.App.Sessions.Env(s.Info()))
}

// Reopen implements review.Store; false for a session that is not open.
func (k KeptChanges) Reopen(session string, set *change.Set, ask string) (tools.Tool, bool) {
	s, ok := k.App.Runtime.Session(session)
	if !ok {
		return tools.Tool{}, false
	}
	return builtin.Reopen(k.App.Sessions.Env(s.Info()), set, ask), true
}

// Load implements review.Store.
func (k KeptChanges) Load(set *change.Set) (*change.Set, error) { return k.App.Changes.Blobs.Load(set) }
