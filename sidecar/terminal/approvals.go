package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/guard"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/shell/visible"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// Keys reads the person's answers.
type Keys interface {
	// Key waits for one of the keys; other keys are passed over. Typing answers nothing: neither that of somebody who was typing when the
	// question appeared, nor prose that is typed at it, however long the pauses are, because a sentence holds every letter that approves.
	// Whoever typed answers with the key and Enter. Whoever waited answers with the key alone, once the question has been on the screen
	// for as long as notice and the keyboard is quiet; no other key may follow soon (see lone). Key calls ready when keys begin to count,
	// and again when Enter becomes necessary. Pasted text and the sequences of arrow keys are passed over whole. Ctrl-C and Ctrl-D are
	// returned as 'q' at once, and ctrlZ after the program was stopped and went on.
	Key(ctx context.Context, keys string, notice time.Duration, ready func(enter bool)) (byte, error)
	// Line reads a line as typed.
	Line(ctx context.Context) (string, error)
	// Discard forgets what was typed before a line is asked for, and what is typed until the keyboard has been quiet for a moment.
	Discard()
	// Suspend gives the terminal to another program while f runs.
	Suspend(f func() error) error
}

const (
	// quiet is how long the keyboard must rest before a key answers.
	quiet = 300 * time.Millisecond
	// notice is how long a question must have been on the screen: somebody who presses a key sooner has not read it. A person sees that something
	// has changed after about 250 ms, and needs as long to stop a hand that has begun to type.
	notice = 500 * time.Millisecond
	// series is how soon a question must follow the answer to another one to be the next of a series, such as the hunks of a change. It is waited
	// for, so quiet is enough.
	series = time.Second
)

// noTerminal says why a run cannot ask; see permission.NoUser.
const noTerminal = "this run has no terminal, or --approve none was given"

// approvals asks the user: about permissions, changes and the question tool's questions. One question is on the screen at a
// time; it holds mu only while it writes, so that the events of other calls are shown meanwhile.
type approvals struct {
	*sheet
	*tally
	keys    Keys // nil: no user can answer
	approve Approve
	editor  []string
	check   func(ctx context.Context, session string, set *change.Set) *change.Verdict // nil: no language server is asked about hunks
	waiting patience
	// answered is when the last question was answered; only the question whose turn it is uses it.
	answered time.Time
}

// AskPermission shows the request and asks. It implements permission.Asker. Requests that no user can answer are
// refused with Unanswered set, so that the model is told why.
func (t *approvals) AskPermission(ctx context.Context, r permission.Request) (permission.Reply, error) {
	// One question at a time: two sub-agents may ask at once, and an answer must not reach the wrong one.
	defer t.waiting.turn()()
	if err := ctx.Err(); err != nil {
		return permission.Reply{}, err
	}
	set := r.Change
	// The time that the person takes is not part of the time that the call is shown to have taken.
	began := t.now()
	defer func() {
		t.mu.Lock()
		t.asked[r.CallID] += t.now().Sub(began)
		t.resume(began)
		t.mu.Unlock()
	}()
	t.mu.Lock()
	t.waitFor(activity{})
	t.endLine()
	approve, why := t.approve.For(r), noTerminal
	if r.Managed != "" && approve == Ask {
		why = managedAsks(r)
	}
	interactive := approve == Ask && t.keys != nil
	if set != nil {
		// The transcript does not print this set again when the change event comes.
		t.shown[set.ID] = true
		// A person sees the hunks one by one in askSet; without one the whole diff is printed, as a record of what
		// was decided.
		if interactive {
			// The verdict may have come while another question was open.
			said := set
			if v := t.verdicts[set.ID]; isNews(v, set.Verdict) {
				said = set.WithVerdict(v)
			}
			t.asking, t.verdicts[set.ID] = set.ID, said.Verdict
			defer func() {
				t.mu.Lock()
				t.asking = ""
				delete(t.verdicts, set.ID)
				t.mu.Unlock()
			}()
			t.head(said)
		} else {
			t.set(set)
		}
	} else {
		t.line("")
		t.line(t.paint(bold, "? "+r.Permission) + " " + Clean(textutil.FirstLine(r.Title)))
		command, _ := r.Metadata["command"].(string)
		t.command(command, r.Title)
		for _, p := range r.Patterns {
			// Patterns that repeat what is on the screen only push the command out of sight.
			if p != r.Title && p != "*" && !strings.Contains(command, p) {
				t.line("    " + Clean(visible.Text(p)))
			}
		}
	}
	if r.Why != "" {
		t.line(t.paint(dim, "  "+Clean(visible.Text(r.Why))))
	}
	t.mu.Unlock()
	switch {
	case approve == All && r.Permission == agent.LoopPermission: // --approve all stands for changes and commands; it must not keep a turn alive that only repeats itself
		return permission.Reply{Kind: permission.Reject, Message: permission.NoUser(r.Permission, noTerminal).Message, Unanswered: true}, nil
	case approve == All:
		return permission.Reply{Kind: permission.Once, Asked: true}, nil
	case approve == IfClean && set != nil && r.Why == "": // Why is set where a person must decide, as for a protected path
		return ByVerdict(set.Verdict), nil
	case !interactive:
		return permission.Reply{Kind: permission.Reject, Message: permission.NoUser(r.Permission, why).Message, Asked: true, Unanswered: true}, nil
	case set != nil:
		return t.askSet(ctx, r, set)
	}
	return t.askPlain(ctx, r)
}

// managedAsks says why --approve does not answer a request that a managed rule asks about.
func managedAsks(r permission.Request) string {
	return "this run has no terminal, and the managed rule " + r.Managed + " wants a person's answer, which --approve does not replace"
}

// ByVerdict answers for --approve clean: it allows a change whose verdict is fresh and introduces no error. Every other change is
// rejected with the reason, which the model reads, and stays a proposal.
func ByVerdict(v *change.Verdict) permission.Reply {
	why := "no language server has looked at it"
	if v != nil {
		introduced, _ := v.Errors()
		switch {
		case v.Certainty == change.Fresh && introduced == 0:
			return permission.Reply{Kind: permission.Once, Asked: true}
		case introduced > 0:
			why = "it " + v.Headline()
			left := 5 // as much as helps to find the cause
			for _, p := range v.Introduced {
				if p.IsError() && left > 0 {
					why += fmt.Sprintf("\n%s:%d:%d: %s", p.Path, p.Line, p.Column, p.Message)
					left--
				}
			}
		case v.Reason != "":
			why = fmt.Sprintf("its verdict is %s: %s", v.Certainty, v.Reason)
		default:
			why = "its verdict is " + string(v.Certainty)
		}
	}
	return permission.Reply{Kind: permission.Reject, Asked: true, Message: "Not applied, it stays a proposal: only changes that are checked in full and introduce no error are applied in this run, and " + why}
}

// command prints the whole command where the title does not show it. The patterns of the request are not a substitute: they
// leave out what the shell does itself. t.mu is held.
func (t *approvals) command(text, title string) {
	// A longer text would scroll the question away. Cutting it without a word would let the rest hide behind a
	// harmless beginning.
	const most = 100 // lines
	text = visible.Text(strings.TrimSpace(text))
	if text == "" || text == strings.TrimSpace(title) && !strings.Contains(text, "\n") {
		return
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		switch {
		case i == 0:
			t.line("  $ " + Clean(line))
		case i < most:
			t.line("    " + Clean(line))
		}
	}
	if more := len(lines) - most; more > 0 {
		t.line(t.paint(yellow, fmt.Sprintf("    … and %d more lines that are not shown; answer no unless you know them", more)))
	}
}

// askPlain asks about anything but a change. Keys that widen a permission are capital letters and ask a second time:
// y and n are typed without looking.
func (t *approvals) askPlain(ctx context.Context, r permission.Request) (permission.Reply, error) {
	keys := "ynq?"
	if len(r.Always) > 0 {
		keys = "ynAPEq?"
	}
	for {
		k, err := t.key(ctx, "Allow", keys)
		if err != nil {
			return permission.Reply{}, err
		}
		switch k {
		case 'y':
			return permission.Reply{Kind: permission.Once, Asked: true}, nil
		case 'A', 'P', 'E':
			if sure, err := t.sure(ctx, widens(k, r)); err != nil {
				return permission.Reply{}, err
			} else if !sure {
				continue
			}
		}
		switch k {
		case 'A':
			t.say(dim, "  allowed until this session ends: "+r.Remembers())
			return permission.Reply{Kind: permission.Always, Scope: permission.ScopeSession, Asked: true}, nil
		case 'P':
			t.say(dim, "  allowed in this project: "+r.Remembers()+"; pillion permission list shows it, revoke takes it back")
			return permission.Reply{Kind: permission.Always, Scope: permission.ScopeProject, Asked: true}, nil
		case 'E':
			t.say(dim, "  allowed in every project: "+r.Remembers()+"; pillion permission list shows it, revoke takes it back")
			return permission.Reply{Kind: permission.Always, Scope: permission.ScopeEverywhere, Asked: true}, nil
		case 'n':
			text, err := t.words(ctx, "  tell the model why (enter for nothing): ")
			if err != nil {
				return permission.Reply{}, err
			}
			if text == "" {
				text = "The user rejected this; continue without it."
			}
			return permission.Reply{Kind: permission.Reject, Message: text, Asked: true}, nil
		case 'q':
			t.quits()
			return permission.Reply{Kind: permission.Reject, Asked: true}, nil
		case '?':
			t.say(dim, "  y  allow it this once\n  n  no, and continue\n"+helpAlways(r)+"  q  no, and stop the turn")
		}
	}
}

// widens words what a key would allow beyond this one call. The words name the rule that would be remembered, which
// may allow more than the command on the screen.
func widens(key byte, r permission.Request) string {
	what := r.Permission + " " + r.Remembers()
	switch key {
	case 'A':
		return "Allow " + what + " until this session ends"
	case 'P':
		return "Allow " + what + " in this project from now on"
	}
	return "Allow " + what + " in every project from now on"
}

// sure asks for a second key before an answer counts for more than what is on the screen.
func (t *approvals) sure(ctx context.Context, question string) (bool, error) {
	k, err := t.key(ctx, "  "+Clean(visible.Text(question)), "yn")
	return k == 'y', err
}

// quits notes that the person stopped the turn, not only said no; Summary then reports the turn as cancelled.
func (t *approvals) quits() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.quit = true
}

// helpAlways is the part of the help about keys that remember; "" where nothing can be remembered.
func helpAlways(r permission.Request) string {
	if len(r.Always) == 0 {
		return ""
	}
	what := r.Remembers() + "\n"
	return "  A  always in this session: " + what + "  P  always in this project: " + what + "  E  always, in every project: " + what
}

// hunkHelp is the help of askHunk. Its keys are those that askHunk takes.
const hunkHelp = `  y  accept this hunk
  n  reject it
  e  edit it in $EDITOR, then accept what you wrote
  a  accept this and the rest of this change
  A  always: accept everything of this kind until the session ends
  c  comment to the model, then decide
  q  stop: reject this and the rest, end the turn
  ?  this help`

// review is one change while a person decides about it. Nothing is written before every hunk has its decision, so q in the
// middle keeps what was accepted until then and rejects the rest; the turn is ended after the call has written that.
type review struct {
	*approvals
	request   permission.Request
	set       *change.Set
	decisions change.Decisions
	reply     permission.Reply
	effects   *hunkEffects
	accepted  int
	all, stop bool
	headed    string // the file whose name was printed last
	// opened holds the groups that the person has opened with o: their hunks are asked one by one.
	opened map[*change.Group]bool
}

// askSet asks group by group and hunk by hunk. Verified groups come last, in one line each unless the person opens them.
// After q a set of which nothing was accepted is rejected as a whole.
func (t *approvals) askSet(ctx context.Context, r permission.Request, set *change.Set) (permission.Reply, error) {
	v := &review{approvals: t, request: r, set: set, decisions: change.Decisions{Hunks: map[string]change.Decision{}}, reply: permission.Reply{Kind: permission.Once, Asked: true}, opened: map[*change.Group]bool{}}
	v.effects = t.effects(ctx, r)
	var folded []*change.Group
	for i := range set.Files {
		f := &set.Files[i]
		hunks := f.Hunks
		if len(hunks) == 0 { // a pure rename, an empty file, a deletion of one
			hunks = []change.Hunk{{ID: ""}}
		}
		for j := range hunks {
			h := &hunks[j]
			if _, decided := v.decisions.Hunks[h.ID]; decided {
				continue // with its group
			}
			g := set.Evidence.GroupOf(h.ID)
			switch {
			case g != nil && g.Verified:
				if !slices.Contains(folded, g) {
					folded = append(folded, g)
				}
				continue
			case g != nil && len(g.Hunks) > 1 && !v.opened[g]:
				if err := v.group(ctx, g); err != nil {
					return permission.Reply{}, err
				}
				if !v.opened[g] {
					continue
				}
			}
			if err := v.hunk(ctx, f, h); err != nil {
				return permission.Reply{}, err
			}
		}
	}
	for _, g := range folded {
		if err := v.group(ctx, g); err != nil {
			return permission.Reply{}, err
		}
		if !v.opened[g] {
			continue
		}
		for i := range set.Files {
			for j := range set.Files[i].Hunks {
				if h := &set.Files[i].Hunks[j]; slices.Contains(g.Hunks, h.ID) {
					if err := v.hunk(ctx, &set.Files[i], h); err != nil {
						return permission.Reply{}, err
					}
				}
			}
		}
	}
	if v.stop && v.accepted == 0 {
		return permission.Reply{Kind: permission.Reject, Asked: true}, nil
	}
	if v.stop {
		t.mu.Lock()
		// The transcript ends the turn when this call has ended: cancelling it at once would lose the accepted hunks.
		t.stopping = r.CallID
		t.mu.Unlock()
	}
	if v.partly() && set.Evidence != nil && len(set.Evidence.Checks) > 0 {
		t.say(yellow, "  the checks ran on the whole proposal; what you accept of it was not checked alone")
	}
	v.reply.Decisions = &v.decisions
	return v.reply, nil
}

// partly reports whether any hunk was rejected or edited.
func (v *review) partly() bool {
	for _, d := range v.decisions.Hunks {
		if d.Kind != change.Accept {
			return true
		}
	}
	return false
}

// rest decides about a hunk without asking, after a (accept the rest) or q (reject the rest); it returns false where the person must
// be asked.
func (v *review) rest(id string) bool {
	switch {
	case v.stop:
		v.decisions.Hunks[id] = change.Decision{Kind: change.Reject}
	case v.all:
		v.decisions.Hunks[id] = change.Decision{Kind: change.Accept}
		v.accepted++
	default:
		return false
	}
	return true
}

// answered notes what a key means for the hunks that follow: a and A accept them, q rejects them and ends the turn.
func (v *review) answered(key byte) {
	switch key {
	case 'a':
		v.all = true
	case 'A':
		v.all = true
		v.reply.Kind, v.reply.Scope = permission.Always, permission.ScopeSession
	case 'q':
		v.stop = true
		v.quits()
	}
}

// show prints a hunk under its file's name. t.mu is held.
func (v *review) show(f *change.File, h *change.Hunk) {
	if v.headed != f.Path {
		v.fileHead(v.set, f)
		v.headed = f.Path
	}
	if h.ID != "" {
		v.sheet.hunk(f, h)
	}
}

// hunk asks about one hunk.
func (v *review) hunk(ctx context.Context, f *change.File, h *change.Hunk) error {
	if v.rest(h.ID) {
		return nil
	}
	v.mu.Lock()
	v.show(f, h)
	if words := v.effects.line(h.ID); words != "" {
		v.line(v.paint(yellow, words))
	}
	v.mu.Unlock()
	d, key, err := v.askHunk(ctx, v.request, f, h)
	if err != nil {
		return err
	}
	v.answered(key)
	// A set that has no hunk to decide about takes the answer as its default.
	if h.ID == "" {
		if d.Kind == change.Reject {
			v.decisions.Default = change.Reject
		}
	} else {
		v.decisions.Hunks[h.ID] = d
	}
	// Accepting a hunk changes nothing in the verdict, which is about the whole proposal; rejecting or editing one does.
	if d.Kind != change.Accept && !v.stop && !v.all {
		v.effects.decided(ctx, v.decisions)
	}
	if d.Kind != change.Reject {
		v.accepted++
	}
	return nil
}

// groupHelp is the help of group. Its keys are those that group takes.
const groupHelp = `  y  accept all of these hunks
  n  reject all of them
  o  open: decide about each of them
  a  accept these and the rest of this change
  c  comment to the model, then decide
  q  stop: reject these and the rest, end the turn
  ?  this help`

// group asks about hunks that are one decision. A verified group is shown as one line for each file; a group that only belongs
// together is shown whole, because nothing has verified it. After o nothing is decided, and the group is in opened.
func (v *review) group(ctx context.Context, g *change.Group) error {
	if v.all || v.stop {
		for _, id := range g.Hunks {
			v.rest(id)
		}
		return nil
	}
	v.mu.Lock()
	v.line("")
	v.line(v.paint(bold, Clean(visible.Text(g.Title))))
	for i := range v.set.Files {
		f := &v.set.Files[i]
		n := 0
		for j := range f.Hunks {
			if !slices.Contains(g.Hunks, f.Hunks[j].ID) {
				continue
			}
			if n++; !g.Verified {
				v.show(f, &f.Hunks[j])
			}
		}
		if g.Verified && n > 0 {
			v.line(v.paint(dim, fmt.Sprintf("    %s (%s)", Clean(v.rel(f.Path)), textutil.Plural(n, "hunk"))))
		}
	}
	v.mu.Unlock()
	comment := ""
	for {
		k, err := v.key(ctx, "Accept "+textutil.Plural(len(g.Hunks), "hunk")+" as one", "ynoacq?")
		if err != nil {
			return err
		}
		d := change.Decision{Kind: change.Accept, Comment: comment}
		switch k {
		case 'o':
			v.opened[g] = true
			// The lines of the group are between the file's name and its hunks, so the name is printed again.
			v.headed = ""
			return nil
		case '?':
			v.say(dim, groupHelp)
			continue
		case 'c':
			if comment, err = v.words(ctx, "  comment: "); err != nil {
				return err
			}
			continue
		case 'a':
			if sure, err := v.sure(ctx, "Accept these and the rest of this change unseen"); err != nil {
				return err
			} else if !sure {
				continue
			}
		case 'n', 'q':
			d.Kind = change.Reject
		}
		v.answered(k)
		for i, id := range g.Hunks {
			// The model reads the comment once.
			if i > 0 {
				d.Comment = ""
			}
			v.decisions.Hunks[id] = d
			if d.Kind == change.Accept {
				v.accepted++
			}
		}
		return nil
	}
}

// askHunk asks about one hunk and returns the decision and the key that made it: a, A and q concern the hunks after
// it. A comment and the help ask again. e is offered only with an editor and for a hunk that has text.
func (t *approvals) askHunk(ctx context.Context, r permission.Request, f *change.File, h *change.Hunk) (change.Decision, byte, error) {
	comment := ""
	keys := "yneaAcq?"
	if len(r.Always) == 0 {
		keys = "yneacq?"
	}
	if h.ID == "" || len(t.editor) == 0 {
		keys = strings.ReplaceAll(keys, "e", "")
	}
	for {
		k, err := t.key(ctx, asks(f, h), keys)
		if err != nil {
			return change.Decision{}, 0, err
		}
		// These keys decide about lines that are not on the screen.
		if k == 'a' || k == 'A' {
			question := "Accept this hunk and the rest of this change unseen"
			if k == 'A' {
				question = "Accept this change, and every later edit until this session ends, without asking"
			}
			if sure, err := t.sure(ctx, question); err != nil {
				return change.Decision{}, 0, err
			} else if !sure {
				continue
			}
		}
		switch k {
		case 'y', 'a', 'A':
			return change.Decision{Kind: change.Accept, Comment: comment}, k, nil
		case 'n', 'q':
			return change.Decision{Kind: change.Reject, Comment: comment}, k, nil
		case 'c':
			if comment, err = t.words(ctx, "  comment: "); err != nil {
				return change.Decision{}, 0, err
			}
		case 'e':
			text, changed, err := t.edit(f, h)
			if err != nil {
				t.say(yellow, "  "+err.Error())
				continue
			}
			if !changed {
				t.say(dim, "  unchanged")
				continue
			}
			return change.Decision{Kind: change.Replace, NewText: text, Comment: comment}, k, nil
		case '?':
			t.say(dim, hunkHelp)
		}
	}
}

// asks words the question about a hunk; a file that comes, goes or moves is asked about as what it is.
func asks(f *change.File, h *change.Hunk) string {
	switch {
	case f.Kind == change.Create:
		return "Create this file"
	case f.Kind == change.Delete:
		return "Delete this file"
	case f.Kind == change.Rename && textless(h):
		return "Move this file"
	}
	return "Accept this hunk"
}

// textless reports whether a hunk stands for the file itself: its move, its creation or deletion while empty.
func textless(h *change.Hunk) bool { return h.OldLines == 0 && h.NewLines == 0 }

// edit opens the proposed text of a hunk in the person's editor. The temporary file has the extension of the file, so
// that the editor knows the language. changed is false when the text was left as it was; an editor that fails decides
// nothing.
func (t *approvals) edit(f *change.File, h *change.Hunk) (text string, changed bool, err error) {
	ext := ""
	if i := strings.LastIndexByte(f.Path, '.'); i > strings.LastIndexByte(f.Path, '/') {
		ext = f.Path[i:]
	}
	tmp, err := os.CreateTemp("", "pillion-hunk-*"+ext)
	if err != nil {
		return "", false, err
	}
	defer os.Remove(tmp.Name())
	if _, err = tmp.WriteString(h.NewText); err == nil {
		err = tmp.Close()
	}
	if err != nil {
		return "", false, err
	}
	run := func() error {
		// The slice is cut to its length, so that append copies it: t.editor is shared by all questions.
		c := guard.Command(guard.Person, append(t.editor[:len(t.editor):len(t.editor)], tmp.Name())...)
		c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
		return c.Run()
	}
	if err := t.keys.Suspend(run); err != nil {
		return "", false, fmt.Errorf("%s: %v; nothing is decided yet", t.editor[0], err)
	}
	b, err := os.ReadFile(tmp.Name())
	if err != nil {
		return "", false, err
	}
	return string(b), string(b) != h.NewText, nil
}

// ctrlZ is the key that a question was left and come back to with. 0x1a is SUB, which a terminal sends for Ctrl-Z in
// raw mode.
const ctrlZ = 0x1a

// key asks a question that one key answers. The keys are named when they begin to count, so that whoever sees them can
// press one.
func (t *approvals) key(ctx context.Context, question, keys string) (byte, error) {
	question = t.paint(bold, question)
	named := question + " [" + strings.Join(strings.Split(keys, ""), ",") + "]? "
	ready := func(enter bool) {
		text := named
		if enter {
			text += "(then enter) "
		}
		t.screen.ask(text)
	}
	for {
		wait := notice
		if time.Since(t.answered) < series {
			wait = quiet
		}
		t.screen.ask(question)
		k, err := t.keys.Key(ctx, keys, wait, ready)
		t.answered = time.Now()
		switch {
		case err != nil:
			t.screen.answered("", false)
		case k == ctrlZ: // back again: the question is repeated below what the shell wrote
			t.screen.answered("", true)
			t.answered = time.Time{}
			continue
		default:
			t.screen.answered(string(k), false)
		}
		return k, err
	}
}

// words asks for a line of text and returns it without the white space around it; "" for an empty line and for
// Ctrl-D.
func (t *approvals) words(ctx context.Context, question string) (string, error) {
	t.screen.ask(question)
	s, err := t.keys.Line(ctx)
	t.answered = time.Now()
	t.screen.answered(s, true)
	if errors.Is(err, io.EOF) { // Ctrl-D is not an answer
		err = nil
	}
	return strings.TrimSpace(s), err
}

// say prints one styled text between questions; t.mu must not be held.
func (t *approvals) say(style, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.line(t.paint(style, text))
}
