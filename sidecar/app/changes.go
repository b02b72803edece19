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
	"github.com/pillion-dev/pillion/tools/draft"
	"github.com/pillion-dev/pillion/tools/files"
)

// Changes implements agent.ChangeKeeper: it keeps the record of what the agent changes. That is the journal of writes, the contents stored
// beside the sessions, and the trees that tell what commands did to the files of a worktree.
type Changes struct {
	Blobs     *checkpoint.Blobs
	journal   files.Journal
	drafts    string // where drafts are kept
	log       *slog.Logger
	notices   io.Writer // receives notices for a person at a terminal; nil: they go only to the log
	ephemeral bool      // nothing is stored, so nothing can be restored
	runtime   *agent.Runtime

	recover sync.Once      // of RecoverOnce
	prune   sync.Once      // of pruneContents
	pruning sync.WaitGroup // the background removal, for which App.Close waits

	mu    sync.Mutex
	trees map[string]*checkpoint.Tree // guarded by mu; by worktree root: sessions share what was copied
}

// Pack implements agent.ChangeKeeper: it replaces the texts of a change set by references to stored contents, so that an event stays small.
func (k *Changes) Pack(state change.State, set *change.Set) *change.Set {
	k.prune.Do(k.pruneContents)
	return Packed(k.Blobs, state, set)
}

// Packed is Pack, except that it stores nothing of a proposal: the person waits for the approval request, and the text may still change.
// The event of a proposal has only the hunks (checkpoint.Outline).
func Packed(b *checkpoint.Blobs, state change.State, s *change.Set) *change.Set {
	if state == change.Proposed {
		return checkpoint.Outline(s)
	}
	return b.Pack(s)
}

// Recover implements agent.ChangeKeeper: it tells whether a change set that was being written when the process ended has been applied. By
// then the journal has finished the write or rolled it back, so comparing the files with the set is enough. It returns Failed when any file
// differs, not counting a byte order mark, which the write may have restored.
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

// pruneEvery is how often old contents are removed, measured by the modification time of a file that all processes of the person share.
const pruneEvery = 24 * time.Hour

// pruneContents removes old contents in the background. App.Close waits for it: an interrupted removal would leave contents without their
// index.
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

// RecoverOnce finishes or rolls back the writes that a crash has interrupted, once. It must run before the first tool of this process reads
// a file.
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
		if err := draft.Recover(k.drafts); err != nil {
			k.log.Warn("recovered an interrupted landing", "what", err)
			if k.notices != nil {
				fmt.Fprintln(k.notices, "pillion: the landing of a draft was interrupted earlier:", err)
			}
		}
	})
}

// KeptChanges implements review.Store: it writes change sets with the locks and through the editor of their session, and loads their stored
// texts.
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
