package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/sidecar/slash"
	"github.com/pillion-dev/pillion/tools/draft"
	"github.com/pillion-dev/pillion/tools/guard"
	"github.com/pillion-dev/pillion/tools/shell/visible"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// draftCommands are the slash commands for drafts. They are slash commands because those work in every ACP editor and in the terminal,
// which have no other way to review work from the background.
func (d *Drafts) draftCommands() []slash.Command {
	return []slash.Command{
		{Name: "bg", Description: "Work on a prompt in the background, in a draft of its own", Hint: "prompt", Run: d.runBackground},
		{Name: "drafts", Description: "List the drafts of this project; show, land or drop one", Hint: "show, land or drop, and an id (optional)", Run: d.runDrafts},
	}
}

// runBackground implements /bg: it starts a process for the prompt and returns at once, with a text for the person. The process
// gets the session's model and agent, but not its conversation.
func (d *Drafts) runBackground(_ context.Context, h slash.Host, args string) (string, *agent.Prompt, error) {
	if strings.TrimSpace(args) == "" {
		return "", nil, errors.New("/bg needs a prompt: /bg add a test for the parser")
	}
	info := h.Session.Info()
	log, err := StartBackground(d.app.Place, Background{Cwd: info.Cwd, Model: info.Model, Agent: info.Agent, Prompt: args})
	if err != nil {
		return "", nil, err
	}
	return "It works in the background now, in a draft of its own; this project is not touched. `/drafts` lists what is ready, `/drafts land ID` reviews it. What it says goes to " + log + ".\n", nil, nil
}

// runDrafts implements /drafts, "/drafts show ID", "land ID" and "drop ID"; an id may be shortened (see draft.Find). Landing asks
// in this session, with the same review as at the end of a turn. show and drop accept drafts of other projects too, as pillion
// drafts does.
func (d *Drafts) runDrafts(ctx context.Context, h slash.Host, args string) (string, *agent.Prompt, error) {
	words := strings.Fields(args)
	if len(words) == 0 || words[0] == "list" {
		list, err := draft.List(d.Dir(), DraftProject(h.Session.Info().Cwd))
		return draftTable(draft.Prune(list)), nil, err
	}
	if len(words) != 2 {
		return "", nil, errors.New("/drafts takes show, land or drop, and the id of a draft")
	}
	x, err := draft.Find(d.Dir(), words[1])
	if err != nil {
		return "", nil, err
	}
	id := x.Head().ID
	switch words[0] {
	case "show":
		p, err := ReadDraft(x)
		if err != nil {
			return "", nil, err
		}
		// The fence is longer than any in the text, so that a file cannot end it.
		fence := "```"
		text := DraftDiff(x, p)
		for strings.Contains(text, fence) {
			fence += "`"
		}
		// visible.Text, because control characters in a file could move the cursor or hide other text on the screen.
		shown := fence + "diff\n" + visible.Text(text) + fence + "\n"
		for line := range strings.Lines(DraftEvidence(x, p)) {
			shown += "- " + visible.Text(strings.TrimSuffix(line, "\n")) + "\n"
		}
		return shown, nil, nil
	case "land":
		// A draft of another project cannot be reviewed in this session, which has other rules and servers.
		if here := DraftProject(h.Session.Info().Cwd); x.Head().Project != here {
			return "", nil, fmt.Errorf("the draft %s is of %s; land it there, or with pillion drafts land %[1]s", id, x.Head().Project)
		}
		data, made, err := d.LandStored(ctx, h.Session, x)
		switch {
		case err != nil:
			return "", nil, err
		case !made:
			return "The draft " + id + " changes nothing; it was removed.\n", nil, nil
		case data.Error != "":
			return "The draft " + id + " was not landed: " + data.Error + "\n", nil, nil
		}
		return data.Output + "\n", nil, nil
	case "drop":
		if err := DropDraft(x); err != nil {
			return "", nil, err
		}
		return "The draft " + id + " was dropped.\n", nil, nil
	}
	return "", nil, fmt.Errorf("/drafts has no %q: use show, land or drop", words[0])
}

// draftTable lists drafts as Markdown, one line each: id, state, files, time of last use, title.
func draftTable(list []*draft.Draft) string {
	if len(list) == 0 {
		return "There are no drafts of this project.\n"
	}
	var b strings.Builder
	for _, x := range list {
		h := x.Head()
		state, files := string(h.State), ""
		// The content of a draft is read only while no session works in it.
		if x.Busy() {
			state = "working"
		} else if p, err := ReadDraft(x); err == nil {
			files = ", " + textutil.Plural(len(p.Files), "file")
		}
		fmt.Fprintf(&b, "- `%s` %s%s, %s: %s\n", h.ID, state, files, h.Used.Local().Format(time.DateTime), visible.Text(textutil.FirstLine(h.Title)))
	}
	return b.String()
}

// DraftDiff is a unified diff of the files that a draft proposes, with paths relative to the project.
func DraftDiff(d *draft.Draft, p *draft.Proposal) string {
	root := d.Head().Project
	var b strings.Builder
	for _, f := range p.Files {
		b.WriteString(f.Unified(func(path string) string {
			if rel, err := filepath.Rel(root, path); err == nil {
				return filepath.ToSlash(rel)
			}
			return path
		}))
	}
	return b.String()
}

// DropDraft removes a draft. It fails with draft.ErrBusy while a session works in it, because its tools use the files.
func DropDraft(d *draft.Draft) error {
	release, err := d.Acquire()
	if err != nil {
		return err
	}
	defer release()
	return d.Drop()
}

// Background is a prompt for a process in the background. Without Model or Agent the configured one is used.
type Background struct {
	Cwd, Model, Agent, Prompt string
	More                      []string // further arguments of pillion run
}

// StartBackground starts pillion run in a process that continues when this one ends. Its turn works in a draft (--review draft).
// What needs approval is refused, because no user is connected (--approve none). The draft is kept for pillion drafts land
// (--hold). log is the file for its output; only this user may read it, because it has the agent's text about the project.
func StartBackground(place *Workplace, b Background) (log string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(place.State, "background")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	out, err := os.CreateTemp(dir, time.Now().Format("20060102-150405-")+"*.log")
	if err != nil {
		return "", err
	}
	defer out.Close()
	args := []string{"run", "--review", "draft", "--hold", "--approve", "none", "--cwd", b.Cwd}
	if b.Model != "" {
		args = append(args, "--model", b.Model)
	}
	if b.Agent != "" {
		args = append(args, "--agent", b.Agent)
	}
	// After "--", so that a prompt that begins with a dash is not read as an option.
	args = append(append(args, b.More...), "--", b.Prompt)
	cmd := guard.Command(guard.Person, append([]string{self}, args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = b.Cwd, out, out
	// guard.Person: the child may get API keys, because it is this program. Detach removes the mark by which this process would end it.
	if err := guard.Detach(cmd); err != nil {
		return "", err
	}
	return out.Name(), nil
}
