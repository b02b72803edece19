package builtin

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/shell/run"
	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// CommandRun is a command that is about to run and may change files.
type CommandRun struct {
	SessionID, CallID string
	Command, Dir      string
	// Writes are the files inside the project that the command names and writes, absolute. It may write others.
	Writes     []string
	Background bool // after is called when it ends, which may be long after the call
}

// CommandWatch is called around commands that may change files, so that their changes can be recorded and undone.
//
// Before is called when the command has been allowed and before it starts. The function that it returns (or nil) is called when the command
// has ended, however that was, with a context that has its own deadline; the model reads the lines that it returns. Neither may take long,
// because the command waits. They are not called for commands known to only read. Several commands may run at once.
type CommandWatch interface {
	Before(ctx context.Context, run CommandRun) (after func(ctx context.Context) []string)
}

// flusher is an ability that a Bridge may have: telling the language servers what other programs changed on disk.
type flusher interface {
	Flush(ctx context.Context)
}

// flushLimit bounds what a command's result waits for that. A file watcher reports within milliseconds;
// a command's result must not wait for a slow one.
const flushLimit = 250 * time.Millisecond

// flush makes the bridge read what a command wrote before the next question to the language servers:
// file events lag behind.
func (c commands) flush(ctx context.Context) {
	if f, ok := c.Bridge.(flusher); ok {
		ctx, cancel := context.WithTimeout(ctx, flushLimit)
		defer cancel()
		f.Flush(ctx)
	}
}

// afterLimit bounds what is done when a command has ended. Comparing the checkpoint's tree may take long
// in a huge project; then the command's changes are not offered for undo.
const afterLimit = 5 * time.Second

// beforeCommand prepares for a command's changes. The function it returns is called when the command has ended, also
// after a cancel: it tells the language servers, and returns what the model must know.
func (c commands) beforeCommand(ctx context.Context, call *tools.Call, a *scan.Analysis, cmd run.Command, background bool) func(context.Context) []string {
	if a.ReadOnly {
		return func(context.Context) []string { return nil }
	}
	// Taken before the command starts; a stamp taken later would miss a fast one.
	known := c.knownFiles()
	var watch func(context.Context) []string
	if c.Watch != nil {
		watch = c.Watch.Before(ctx, CommandRun{SessionID: call.SessionID, CallID: call.CallID, Command: cmd.Text, Dir: cmd.Dir, Writes: a.Writes, Background: background})
	}
	return func(ctx context.Context) (notes []string) {
		c.flush(ctx)
		// A canceled command may have changed files as well.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterLimit)
		defer cancel()
		if changed := c.changedSince(known); len(changed) > 0 {
			notes = append(notes, fmt.Sprintf("It changed files you have read: %s. Read them again before you edit them.", nameSome(changed)))
		}
		if watch != nil {
			notes = append(notes, watch(ctx)...)
		}
		return notes
	}
}

// stamp tells whether a file was probably written: size and modification time, as make and rsync
// compare them. Reading the files would cost more than most commands.
type stamp struct {
	size int64
	time time.Time
	gone bool
}

// stampOf never fails: a file that cannot be looked at counts as gone, before and after alike.
func stampOf(path string) stamp {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{gone: true}
	}
	return stamp{size: info.Size(), time: info.ModTime()}
}

// maxKnown bounds the calls of stat before and after each command. A session that knows more files learns of changes in some of them only,
// since the tracker gives them in random order.
const maxKnown = 1000

// knownFiles are those the model has read, as they are on disk. The note that comes of it only saves
// the model a failed edit: whether an edit may go on what was read is decided by the text itself
// (files.Tracker).
func (c commands) knownFiles() map[string]stamp {
	out := map[string]stamp{}
	for _, path := range c.Tracker.Files(maxKnown) {
		out[path] = stampOf(path)
	}
	return out
}

// changedSince names the known files whose stamp is another one, for the model, sorted.
func (c commands) changedSince(known map[string]stamp) []string {
	var out []string
	for path, was := range known {
		if now := stampOf(path); now != was {
			name := c.rel(path)
			if now.gone {
				name += " (gone)"
			}
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// nameSome names the first of many.
func nameSome(names []string) string {
	// Names in the note; the model can ask git for more.
	const most = 20
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}
