package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/sidecar/editors"
	"github.com/pillion-dev/pillion/sidecar/lend"
	"github.com/pillion-dev/pillion/sidecar/share"
	"github.com/pillion-dev/pillion/sidecar/trust"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/shell/visible"
)

// `pillion mcp` asks through the person's open editor where its own client cannot ask: it connects to the sidecar of that editor
// (package share), sends one editorQuestion and reads one editorAnswer. The answer allows nothing in the sidecar: only the process that
// asked acts on it, with the rights that it has anyway. So what a forged question can do is to be shown.

// editorQuestion is what `pillion mcp` sends. Change is apart because a Request's JSON has none.
type editorQuestion struct {
	Program string             `json:"program"` // the MCP client's own name
	Request permission.Request `json:"request"`
	Change  *change.Set        `json:"change,omitempty"`
}

// editorAnswer is what it gets. Without Answered nobody has decided.
type editorAnswer struct {
	Answered bool             `json:"answered"`
	Reply    permission.Reply `json:"reply"`
	Gone     bool             `json:"gone,omitempty"`  // no editor has the folder open any more
	Error    string           `json:"error,omitempty"` // why the person was not asked, or their answer not used
	Kind     string           `json:"kind,omitempty"`  // of a tools.Error
}

// Limits of a question: the other side is a process of the same user, but may be a broken one.
const (
	questionLimit = 30 * time.Second // until a question has arrived; the answer takes as long as the person does
	maxQuestion   = 64 << 20         // bytes
)

// askEditors puts an approval request to the editor that has dir open, the most recently used one where there are several. When that one
// is closed before it has answered, the next is asked. It fails with lend.ErrNoEditor where none is left, and with the error of ctx.
func askEditors(ctx context.Context, dir, program string, r permission.Request) (permission.Reply, error) {
	type candidate struct {
		share.Process
		used time.Time
	}
	var all []candidate
	for _, p := range share.List() {
		c, w, err := share.Dial(ctx, p, share.Hello{Ask: dir})
		if err != nil {
			continue // it does not have the folder open, or has just ended
		}
		_ = c.Close()
		if !w.Used.IsZero() { // a sidecar of an earlier version, which takes no questions, does not set it
			all = append(all, candidate{p, w.Used})
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return b.used.Compare(a.used) })
	for _, c := range all {
		answer, err := askEditor(ctx, c.Process, dir, editorQuestion{program, r, r.Change})
		switch {
		case ctx.Err() != nil:
			return permission.Reply{}, ctx.Err()
		case err != nil || answer.Gone:
			continue
		case answer.Error != "":
			return permission.Reply{}, &tools.Error{Kind: answer.Kind, Message: answer.Error}
		}
		return answer.Reply, nil
	}
	return permission.Reply{}, lend.ErrNoEditor
}

// askEditor sends one question and waits for the answer. The end of ctx closes the connection, which withdraws the question.
func askEditor(ctx context.Context, p share.Process, dir string, q editorQuestion) (a editorAnswer, err error) {
	conn, _, err := share.Dial(ctx, p, share.Hello{Ask: dir})
	if err != nil {
		return a, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if err := json.NewEncoder(conn).Encode(q); err != nil {
		return a, err
	}
	err = json.NewDecoder(io.LimitReader(conn, maxQuestion)).Decode(&a)
	if err == nil && !a.Answered && !a.Gone && a.Error == "" {
		err = errors.New("the editor's answer is empty")
	}
	return a, err
}

// folder implements share.Options.Folder: an editor shows a session in the folder.
func (x *service) folder(path string) (used time.Time, open bool) {
	info := x.sessionIn(path)
	return info.Updated, info.ID != ""
}

// sessionIn returns the session that was used last among those that an editor has open in a folder; links are followed on both sides. A
// session in a folder above or below is none: the person would decide about a project that they do not see.
func (x *service) sessionIn(path string) (last agent.SessionInfo) {
	want, err := os.Stat(path)
	if err != nil {
		return last
	}
	for _, s := range x.app.Runtime.Live() {
		info := s.Info()
		if info.Parent != "" || x.host.Editors.Readers(info.ID) == 0 || info.Updated.Before(last.Updated) {
			continue
		}
		if has, err := os.Stat(info.Cwd); err == nil && os.SameFile(want, has) {
			last = info
		}
	}
	return last
}

// answerQuestion shows one question to the person and sends the decision back. The question is withdrawn when the other side closes the
// connection.
func (x *service) answerQuestion(ctx context.Context, c share.Conn) {
	defer c.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	_ = c.SetReadDeadline(time.Now().Add(questionLimit))
	var q editorQuestion
	if err := json.NewDecoder(io.LimitReader(c, maxQuestion)).Decode(&q); err != nil {
		if !errors.Is(err, io.EOF) { // it only wanted to know when the folder was used
			x.host.Log.Info("question of another program", "err", err)
		}
		return
	}
	_ = c.SetReadDeadline(time.Time{})
	go func() { // ends with the connection; nothing more is expected, so a byte is as good as its end
		_, _ = io.ReadFull(c, make([]byte, 2)) // the encoder's line end, which the decoder may have left, and its end
		cancel()
	}()
	answer := x.ask(ctx, c.Ask, q)
	if ctx.Err() == nil {
		_ = json.NewEncoder(c).Encode(answer)
	}
}

// ask asks the person in the editor that has the folder open.
func (x *service) ask(ctx context.Context, folder string, q editorQuestion) editorAnswer {
	session := x.sessionIn(folder)
	if session.ID == "" {
		return editorAnswer{Gone: true}
	}
	r, unsaved := requestOf(q), ""
	if r.Change != nil {
		unsaved = x.unsavedOf(r.Change)
	}
	if unsaved != "" {
		return editorAnswer{Error: fmt.Sprintf("%s has changes in the editor that are not saved, and this change was made on the file on the disk; nothing was written. Ask the user to save it, then read it again", unsaved), Kind: "stale"}
	}
	x.host.Log.Info("question of another program", "program", q.Program, "permission", r.Permission, "session", session.ID)
	reply, err := x.host.Editors.AskForOther(ctx, session.ID, r)
	var known *tools.Error
	var rejected *permission.RejectedError
	switch {
	case errors.Is(err, editors.ErrNoEditor):
		return editorAnswer{Gone: true}
	case errors.As(err, &known):
		return editorAnswer{Error: known.Message, Kind: known.Kind}
	case errors.As(err, &rejected):
		return editorAnswer{Error: rejected.Message}
	case err != nil:
		return editorAnswer{Error: err.Error()}
	}
	return editorAnswer{Answered: true, Reply: reply}
}

// requestOf returns a question as a request that says who asks. Its ids are new: those of the other process could be the ones of a
// request that this editor shows, and answer for it.
func requestOf(q editorQuestion) permission.Request {
	r := q.Request
	// The brackets are what a sub-agent's requests have; a name must not end them early.
	name := strings.NewReplacer("[", "(", "]", ")").Replace(visible.Text(strings.TrimSpace(q.Program)))
	if r.Title == "" {
		r.Title = strings.TrimSpace(r.Permission + " " + strings.Join(r.Patterns, ", "))
	}
	r.Title = "[" + name + ", over MCP] " + r.Title
	why := name + " asks through pillion mcp"
	if r.Why != "" {
		why += "; " + r.Why
	}
	r.ID, r.SessionID, r.CallID, r.Why = "per_"+rand.Text(), "", "", why
	if q.Change != nil {
		set := *q.Change
		set.ID, set.SessionID, set.CallID = "other_"+rand.Text(), "", ""
		r.Change = &set
	}
	return r
}

// unsavedOf returns a file of a change that an editor of this sidecar shows with other text than the disk's; "" without one.
func (x *service) unsavedOf(set *change.Set) string {
	open := x.host.Editors.Unsaved()
	for i := range open {
		open[i] = trust.RealPath(open[i])
	}
	for _, path := range set.Paths() {
		if slices.Contains(open, trust.RealPath(path)) {
			return path
		}
	}
	return ""
}
