package builtin

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/files"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/symbol"
)

// proposal is the input of propose: the files a tool is going to change, and what is said about that. It belongs to one call and is
// not stored; the change set made of it is.
type proposal struct {
	told    bool   // the note has everything of the files that the model did not know, so they count as read afterwards
	title   string // the call's title; empty: the paths
	done    string // first sentence of the result when all of it is applied
	note    string // for the model, after done: how a passage was found, and the like
	members []member
	meta    map[string]any // added to the result's metadata
	confirm string         // why a person must agree whatever the rules allow; empty: the rules decide

	again *change.Set // the set as it was proposed before the session was cut off; nil: it is new
	ask   string      // id of the approval request of that time; empty: a new one

	// evidence collects what else is known of the set, before the person is asked; nil: nothing. The approval request shows it; it
	// does not decide.
	evidence func(ctx context.Context, set *change.Set) *change.Evidence

	// complete says that the consequences of its moves, such as changed imports, are among the members. Asking the servers for
	// them again would make the same edits twice.
	complete bool
}

// member is a change of one file, with the file as it was when the change was made.
type member struct {
	change.File
	base *files.File // as opened by open; never nil, for a Create it does not exist
	to   *place      // of a rename: the new place, which is judged like the old one
}

// changes is the only way in which a tool changes files: it shows a proposal, has it checked, asks for approval, compares it
// with the files once more, has Writer write it and reports the result to the model.
type changes struct {
	workspace
	Tracker *files.Tracker
	Bridge  Bridge // nil: no language servers

	writer  *Writer
	checker checker
	repairs *Repairs // nil: no change goes back to the model
}

// changeFiles proposes and applies edits that were computed elsewhere (a language server's rename or code action) like any other
// edit. The server computed them for the text that it has. If the file has changed since, the edit is rebased; if that is not
// possible, it is refused.
func (c changes) changeFiles(ctx context.Context, call *tools.Call, title string, edits []lspbridge.FileEdit) (tools.Result, error) {
	var places []place
	for _, ed := range edits {
		// In the order in which the loop below takes them off the list again.
		for _, path := range []string{ed.Path, ed.NewPath} {
			if path == "" {
				continue
			}
			p, err := c.place(filepath.Clean(path))
			if err != nil {
				return tools.Result{}, err
			}
			places = append(places, p)
		}
	}
	if err := c.askOutside(ctx, call, places...); err != nil {
		return tools.Result{}, err
	}
	// The server has computed what follows from its moves.
	p := proposal{title: title, done: "Change applied successfully.", complete: true}
	for _, ed := range edits {
		here := places[0]
		places = places[1:]
		f, err := c.openPlace(here)
		if err != nil {
			return tools.Result{}, err
		}
		m := member{File: change.File{Path: here.path, Kind: change.Kind(ed.Kind), Old: f.Text, New: ed.New}, base: f}
		if ed.NewPath != "" {
			m.to, m.NewPath = &places[0], places[0].path
			places = places[1:]
		}
		switch m.Kind {
		case change.Create:
			if f.Exists || f.Dirty {
				return tools.Result{}, &tools.Error{Kind: "exists", Message: here.path + " exists already"}
			}
		case change.Delete:
			m.New = ""
		case change.Rename, change.Edit:
			if !f.Exists && !f.Dirty {
				return tools.Result{}, missing(here.path)
			}
			if m.Kind == change.Rename && ed.Old == "" && ed.New == "" {
				m.New = f.Text // only the name changes
			} else if ed.Old != f.Text {
				r, err := change.File{Path: here.path, Kind: change.Edit, Old: ed.Old, New: ed.New}.Rebase(f.Text)
				if err != nil {
					return tools.Result{}, &tools.Error{Kind: "stale", Message: here.path + " changed while the edit was computed; try again", Err: err}
				}
				m.New = r.New
			}
		default:
			return tools.Result{}, fmt.Errorf("unknown kind of file edit %q", ed.Kind)
		}
		p.members = append(p.members, m)
		if ed.Confirm != "" && p.confirm == "" {
			p.confirm = "the language server wants " + c.rel(here.path) + " to be confirmed: " + ed.Confirm
		}
	}
	return c.propose(ctx, call, p)
}

// propose is the only way in which a tool changes files: show, check, ask, compare again, write, check what was written,
// report. The order matters: what can never be written is refused before a person reads it, the verdict comes before the
// question, and the files are compared after it, because somebody may have typed while the person was deciding. Whatever
// fails leaves the card in a final state: an open one would wait for a decision for ever.
func (c changes) propose(ctx context.Context, call *tools.Call, p proposal) (tools.Result, error) {
	// First, because it adds members, which everything after it must see.
	c.followMoves(ctx, call, &p)
	if err := rejectDuplicates(p); err != nil {
		return tools.Result{}, err
	}
	var unknown []string // files of which the session knows the lines it changes, not the whole
	for _, m := range p.members {
		if m.base != nil && (m.base.Exists || m.base.Dirty) && !p.told && c.Tracker.Check(m.base) != nil {
			unknown = append(unknown, m.base.Real)
			if m.to != nil {
				unknown = append(unknown, m.to.real)
			}
		}
	}
	set := c.set(call, p)
	if isEmpty(set) {
		return tools.Result{Title: set.Title, Output: "Nothing to do: the file already has exactly this content. Nothing was written.",
			Metadata: c.metadata(set, p.meta)}, nil
	}
	if err := checkWritable(p); err != nil {
		return tools.Result{}, writeError(err)
	}
	// A notebook with unsaved cells, a read-only editor: found before a person reads the
	// diff.
	if f, ok := c.writer.Applier.(ApplyChecker); ok {
		if err := f.CanApply(set); err != nil {
			return tools.Result{}, err
		}
	}
	broken := c.brokenFiles(p)
	attempts, merged := c.repairs.earlier(set), c.changedSince(p)
	if p.evidence != nil {
		set = set.WithEvidence(p.evidence(ctx, set))
	} else if attempts > 0 || len(merged) > 0 {
		set = set.WithEvidence(&change.Evidence{Attempts: attempts, Merged: merged})
	}
	r := c.request(set, p)
	stop := func() {}
	if wouldAsk(ctx, call, r) { // a rule that allows or denies waits for nothing
		c.show(call, set, change.Proposed)
		checker := c.checker
		checker.broken, checker.rel = broken, c.rel
		if w, ok := c.writer.Applier.(VerdictWaiter); ok {
			checker.budget = w.VerdictWait()
		}
		set, stop = checker.check(ctx, set, func(s *change.Set) { c.show(call, s, change.Proposed) })
		if introduced := introducedErrors(set); attempts > 0 && introduced > 0 {
			set = set.WithEvidence(&change.Evidence{Attempts: attempts, Merged: merged, Insists: Reason(call.Words)})
			c.show(call, set, change.Proposed)
		} else if attempts == 0 && p.evidence == nil && p.again == nil && c.checker.mode != VerdictDecides {
			if err := c.repairs.sendBack(call, set, c.rel); err != nil {
				stop()
				c.show(call, set, change.Failed)
				return tools.Result{}, err
			}
		}
		r.Change = set
	}
	// The set in r carries the verdict so far; a later one reaches the card by show.
	reply, err := askReply(ctx, call, r)
	// The servers get their own documents back before the write; otherwise they would apply the written text on top of the
	// proposed one.
	stop()
	if err != nil {
		state := change.Failed
		if errors.Is(err, permission.ErrRejected) || errors.Is(err, permission.ErrDenied) {
			state = change.Rejected
		}
		c.show(call, set, state)
		return tools.Result{}, err
	}
	d, err := decide(set, reply)
	if err != nil {
		c.show(call, set, change.Failed)
		return tools.Result{}, err
	}
	// Every hunk was rejected one by one.
	if len(d.Set.Files) == 0 {
		c.show(call, set, change.Rejected)
		return tools.Result{}, rejected(d, c.rel)
	}
	done, err := c.writer.carryOut(ctx, d, p, func(set *change.Set) {
		call.Report(tools.Update{Change: set, ChangeState: change.Writing})
	})
	if err != nil {
		c.show(call, set, change.Failed)
		return tools.Result{}, err
	}
	// The writer recorded these files as known, but the model has not seen the rest of them.
	for _, path := range unknown {
		c.Tracker.Forget(path)
	}
	c.show(call, done.set, change.Applied)
	delta := c.checker.waitForDiagnostics(ctx, done.set)
	if delta != nil {
		done.set = done.set.WithVerdict(&delta.Verdict)
		c.show(call, done.set, change.Applied)
	}
	if note := syntaxNote(broken.wait()); note != "" {
		p.note = strings.TrimSpace(p.note + "\n" + note)
	}
	return c.result(p, d, done, delta), nil
}

// changedSince are the paths of the files that have changed since the session last read or wrote them. Their new texts are made of what
// they are now, and a person who decides is told.
func (c changes) changedSince(p proposal) (paths []string) {
	for _, m := range p.members {
		var stale *files.StaleError
		if m.Kind != change.Create && errors.As(c.Tracker.Check(m.base), &stale) {
			paths = append(paths, m.Path)
		}
	}
	return paths
}

// introducedErrors counts the errors of a verdict that is known.
func introducedErrors(set *change.Set) int {
	if !set.Verdict.Known() {
		return 0
	}
	n, _ := set.Verdict.Errors()
	return n
}

// brokenFile is a file with a syntax error that a change introduces, by what parsing it alone tells.
type brokenFile struct {
	path string // as a person reads it
	line int    // from 1; the error is there or before
}

// brokenFiles finds the files that could be parsed before the change and cannot be any more. A language server says so too, but there may
// be none, and it may take minutes; tree-sitter answers at once. The question does not wait for it: parsing is most of what a large change
// takes, 2 to 4 ms for a file of 400 lines.
func (c changes) brokenFiles(p proposal) *brokenSearch {
	s := &brokenSearch{done: make(chan struct{})}
	found := make([]*brokenFile, len(p.members)) // nil: not broken
	go func() {
		defer close(s.done)
		var next atomic.Int64
		var wg sync.WaitGroup
		for range min(len(p.members), max(1, runtime.GOMAXPROCS(0)-1)) { // a processor is left to the question
			wg.Go(func() {
				for i := next.Add(1) - 1; i < int64(len(p.members)); i = next.Add(1) - 1 {
					found[i] = c.brokenFile(p.members[i].File)
				}
			})
		}
		wg.Wait()
		for _, f := range found {
			if f != nil {
				s.found = append(s.found, *f)
			}
		}
	}()
	return s
}

// brokenSearch is a search by brokenFiles. It ends by itself.
type brokenSearch struct {
	done  chan struct{} // closed when found is complete
	found []brokenFile
}

// wait returns the files when all are parsed.
func (s *brokenSearch) wait() []brokenFile {
	<-s.done
	return s.found
}

// brokenFile is a file that brokenFiles names, or nil.
func (c changes) brokenFile(f change.File) *brokenFile {
	if f.Kind != change.Edit && f.Kind != change.Rename || f.Old == f.New {
		return nil
	}
	path := f.Path
	if f.NewPath != "" {
		path = f.NewPath
	}
	line, broken := symbol.Breaks(path, f.Old, f.New)
	if !broken {
		return nil
	}
	return &brokenFile{c.rel(path), line}
}

// syntaxNote tells the model about broken files. It is a note, not a refusal: a change may pass through a broken state on purpose.
func syntaxNote(broken []brokenFile) string {
	var notes []string
	for _, f := range broken {
		notes = append(notes, fmt.Sprintf("%s could be parsed before this change and has a syntax error now, at or before line %d. If you did not intend this, check the lines around it.", f.path, f.line))
	}
	return strings.Join(notes, "\n")
}

// set makes the change set of the proposal. A reopened proposal keeps its id and its hunks' ids, so that the new decision closes the
// card of the old session.
func (c changes) set(call *tools.Call, p proposal) *change.Set {
	list := make([]change.File, len(p.members))
	for i, m := range p.members {
		list[i] = m.File
		list[i].BaseHash, list[i].BaseBuffer, list[i].OldMode = m.base.Hash, m.base.Version, uint32(m.base.Mode.Perm())
	}
	if p.again != nil {
		return p.again.WithFiles(list)
	}
	s := change.New("chg_"+rand.Text(), list)
	s.Tool, s.SessionID, s.CallID, s.Title = call.Tool, call.SessionID, call.CallID, p.title
	if s.Title == "" {
		s.Title = c.names(s)
	}
	return s
}

// rejectDuplicates refuses two changes of one file in one proposal: each was computed without the other, and the
// second would overwrite the first. The real path counts, so two names of one file are found.
func rejectDuplicates(p proposal) error {
	seen := map[string]bool{}
	for _, m := range p.members {
		if seen[m.base.Real] {
			return &tools.Error{Kind: "write_failed", Message: m.Path + " would be changed twice by one call; nothing was written. Put all changes of a file into one section."}
		}
		seen[m.base.Real] = true
	}
	return nil
}

// checkWritable refuses what could never be written (read-only files, characters that the file's encoding
// lacks), so that no person reviews it in vain. Only the mode of a file that exists counts; the
// folder's is found when writing.
func checkWritable(p proposal) error {
	for _, m := range p.members {
		if m.base.Exists && m.Kind != change.Create && m.base.Mode.Perm()&0o222 == 0 && m.Mode&0o222 == 0 {
			return fmt.Errorf("%s %w (mode %04o); make it writable first if it may change", m.Path, files.ErrReadOnly, m.base.Mode.Perm())
		}
		if m.Kind != change.Delete && m.base.Exists && !m.Links() && !m.Binary {
			if err := files.CheckEncodable(m.New, m.base.Encoding); err != nil {
				return fmt.Errorf("%s: %w", m.Path, err)
			}
		}
	}
	return nil
}

// isEmpty reports whether the set changes nothing. A person is not asked about it.
func isEmpty(s *change.Set) bool {
	for _, f := range s.Files {
		if len(f.Hunks) > 0 {
			return false
		}
	}
	return true
}

// names lists the set's paths for a title, three at most.
func (c changes) names(s *change.Set) string {
	var out []string
	for _, p := range s.Paths() {
		out = append(out, c.rel(p))
	}
	if len(out) > 3 {
		return fmt.Sprintf("%s and %d more", strings.Join(out[:2], ", "), len(out)-2)
	}
	return strings.Join(out, ", ")
}

// request is the approval request: every path, both ends of a rename, as named and as resolved. It
// offers no "always" where the next change would be asked about all the same (protected paths, hard
// links, a server that wants to be confirmed).
func (c changes) request(set *change.Set, p proposal) permission.Request {
	r := permission.Request{ID: p.ask, Permission: "edit", Always: []string{"*"}, Change: set, Title: "Edit " + set.Title, Followable: true}
	protected := c.protector()
	add := func(path, real string) {
		r.Patterns = append(r.Patterns, c.patterns(path, real)...)
		r.Also = append(r.Also, filepath.ToSlash(path))
		if real != path {
			r.Also = append(r.Also, filepath.ToSlash(real))
		}
		r.Followable = r.Followable && c.inside(real)
		for _, x := range []string{real, path} {
			if why, ok := protected(x); ok && !r.MustAsk {
				// An "always" would not cover the next one either, so it is not offered.
				r.MustAsk, r.Always, r.Why = true, nil, c.rel(path)+" is protected: "+why
			}
		}
	}
	for _, m := range p.members {
		add(m.Path, m.base.Real)
		if m.to != nil {
			add(m.to.path, m.to.real)
		}
	}
	for _, m := range p.members {
		// A hard link keeps no trace of where its file's other names are, so they may be anywhere: ~/.bashrc, another project.
		// Deleting one name leaves the file alone.
		if n := files.Links(m.base.Real); n > 1 && !m.File.Links() && m.Kind != change.Delete && !r.MustAsk {
			r.MustAsk, r.Always = true, nil
			r.Why = fmt.Sprintf("%s is a hard link: the file has %d names, and the change is visible under all of them, also outside the project", c.rel(m.Path), n)
		}
	}
	if p.confirm != "" && !r.MustAsk {
		r.MustAsk, r.Always, r.Why = true, nil, p.confirm
	}
	if c.checker.mode == VerdictDecides && !r.MustAsk {
		r.MustAsk, r.Always = true, nil
	}
	meta := c.metadata(set, nil)
	r.Metadata = map[string]any{"filepath": set.Title, "diff": meta["diff"], "files": meta["files"]}
	if len(set.Files) == 1 {
		r.Metadata["filepath"] = set.Files[0].Path
	}
	return r
}

// decide applies the person's decisions to the set. An answer that names other hunks or unknown decisions is an error, never
// an approval.
func decide(set *change.Set, reply permission.Reply) (*change.Decided, error) {
	var d change.Decisions
	if reply.Decisions != nil {
		d = *reply.Decisions
	}
	out, err := set.Decide(d)
	if err != nil {
		return nil, fmt.Errorf("the answer does not fit the change: %w; nothing was written", err)
	}
	return out, nil
}

// rejected is the error when the person decided on each hunk and accepted none. Unlike a plain
// rejection of the whole, which ends the turn, the model continues: the person looked closely, so the
// next proposal may be the right one.
func rejected(d *change.Decided, name func(string) string) error {
	text := "The user looked at this change and rejected all of it; nothing was written. Do not propose the same again: ask what is wanted, do it another way, or continue with the rest."
	if report := d.Report(name); report != "" {
		text += "\n\n" + report
	}
	return &tools.Error{Kind: "rejected", Message: text}
}

// writeError gives an error of a write the kind by which models and scripts tell "read again" (stale) from "choose another name"
// (exists) and "cannot be done" (encoding, write_failed). A cancel and an error that has a kind pass unchanged.
func writeError(err error) error {
	var t *tools.Error
	kind := "write_failed"
	switch {
	case errors.As(err, &t) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, files.ErrStale):
		kind = "stale"
	case errors.Is(err, files.ErrExists):
		kind = "exists"
	case errors.Is(err, files.ErrUnencodable):
		kind = "encoding"
	}
	return &tools.Error{Kind: kind, Message: err.Error(), Err: err}
}

// requireRead refuses files that the session has not read, or that changed since it did. In the second case the error shows what
// changed, so that the model need not read the whole file again. Without it, a model overwrites what the person typed meanwhile.
func (c changes) requireRead(f *files.File) error {
	err := c.Tracker.Check(f)
	// Check returns these types unwrapped.
	switch x := err.(type) {
	case nil:
		return nil
	case *files.UnreadError:
		if isBinary(f) {
			return &tools.Error{Kind: "binary", Message: "Cannot change binary file: " + f.Path + ". Use the shell and the program that made it.", Err: err}
		}
		return &tools.Error{Kind: "unread", Message: err.Error(), Err: err}
	case *files.StaleError:
		msg := err.Error()
		if !x.Now.Exists && !x.Now.Dirty {
			c.Tracker.Forget(f.Real)
			msg = "File " + x.Path + " has been deleted since it was last read; nothing was written. If it should exist again, repeat this call."
		}
		if x.HasThen && x.Now.Exists {
			msg = "File " + x.Path + " has been modified since it was last read; nothing was written." + c.writer.describeChange(f, x.Then)
		}
		return &tools.Error{Kind: "stale", Message: msg, Err: err}
	}
	return err
}
