package builtin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/evidence"
	"github.com/pillion-dev/pillion/tools/files"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// Landing is what a draft proposes when it ends.
type Landing struct {
	Title string
	Files []change.File // Old is what the draft began from, which may not be what is there now
	Notes []string      // for the person and the model: what a reader must know of the whole
	// Bulk lists what is kept or dropped as a whole: ignored output, folders without files. One request asks for all of it, after
	// the files.
	Bulk []string
	// Evidence is what is known of the proposal as it is landed, merged with what the project has by then; nil: nothing.
	Evidence func(ctx context.Context, set *change.Set) *change.Evidence
	// Take carries out what is not the text of a file, after the files were written. bulk says that the person keeps the bulk, partly
	// that some hunks were not accepted. Its error is reported in the result and does not fail the call: the files were written by
	// then, and a failed call reads as if nothing was.
	Take func(ctx context.Context, bulk, partly bool) error
}

// Land is the proposal of a draft as a tool that is not offered to models. It runs once and goes through propose like every other
// change. A person is always asked, whatever the rules allow, because what commands did in the draft was not shown before.
// The result's metadata has Left where something accepted is not in the project: the draft still has it.
func Land(env Env, l Landing) tools.Tool {
	return tools.Tool{ID: "draft", Permission: "edit", Kind: tools.KindEdit, Description: "What was done in a draft.", Parameters: json.RawMessage(`{"type":"object"}`),
		Run: func(ctx context.Context, _ json.RawMessage, call *tools.Call) (tools.Result, error) {
			return env.changes().land(ctx, call, l)
		}}
}

// Left is the member of the metadata of Land's result that is true where something could not be landed, see there.
const Left = "left"

// land merges each file onto what is there now and proposes all of it. A rejection of the files ends it before the bulk is asked about or
// taken: nothing of the draft reaches the project then.
func (c changes) land(ctx context.Context, call *tools.Call, l Landing) (tools.Result, error) {
	p := proposal{title: l.Title, done: "The user accepted the draft; it was written to the project.", complete: true, evidence: l.Evidence,
		confirm: "it is all that was done in the draft; the project has not been touched"}
	notes, left := l.Notes, false
	for _, f := range l.Files {
		m, note, err := c.landed(f)
		if err != nil {
			return tools.Result{}, err
		}
		if note != "" {
			notes = append(notes, note)
		}
		// Nothing to propose: both sides agree, or note says why not.
		if m.Kind != "" {
			p.members = append(p.members, m)
		} else if note != "" {
			left = true
		}
	}
	byRisk(p.members)
	p.note = strings.Join(notes, "\n")
	if len(notes) > 0 {
		p.confirm += ". " + strings.Join(notes, " ")
	}
	var r tools.Result
	if len(p.members) > 0 {
		var err error
		if r, err = c.propose(ctx, call, p); err != nil {
			return r, err
		}
	} else {
		r = tools.Result{Title: l.Title, Output: strings.TrimSpace("The draft changed no file that is to be reviewed. " + p.note), Metadata: map[string]any{}}
	}
	bulk := false
	if len(l.Bulk) > 0 {
		// No "always": what the next draft leaves besides is another matter.
		ask := permission.Request{Permission: "edit", Patterns: []string{"*"}, MustAsk: true, Title: "Keep what the draft made besides: " + nameList(l.Bulk),
			Why: "it is not reviewed file by file: Git ignores it, or there is no text to show", Metadata: map[string]any{"bulk": l.Bulk}}
		_, err := askReply(ctx, call, ask)
		switch {
		case err == nil:
			bulk = true
			r.Output += "\n\nKept as a whole: " + strings.Join(l.Bulk, ", ") + "."
		case errors.Is(err, permission.ErrRejected) || errors.Is(err, permission.ErrDenied):
			r.Output += "\n\nNot kept: " + strings.Join(l.Bulk, ", ") + "."
			// There were no files, so this question was the whole; its rejection is the call's.
			if len(p.members) == 0 {
				return r, err
			}
		default:
			return r, err
		}
	}
	if l.Take != nil {
		if err := l.Take(ctx, bulk, r.Metadata["partly"] == true); err != nil {
			r.Output += "\n\nNot all of it could be written: " + err.Error()
			left = true
		}
	}
	if left {
		r.Metadata[Left] = true
	}
	return r, nil
}

// byRisk sorts the files of a draft by how much they need a reader: first programs, each followed by its tests, then tests of programs
// that are not in the proposal, settings, documents, and last what a program generated. Every front end shows them in this order.
func byRisk(list []member) {
	subject := map[string]bool{} // programs in the proposal, by stem
	// stem is what a program and its tests have in common: "a" of a.go, a_test.go, test_a.py and a.spec.ts.
	stem := func(path string) string {
		name := strings.ToLower(filepath.Base(path))
		name, _, _ = strings.Cut(name, ".")
		return strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(name, "test_"), "_test"), "_spec")
	}
	for _, m := range list {
		if !evidence.TestFile(m.Path) {
			subject[stem(m.Path)] = true
		}
	}
	rank := func(m member) int {
		switch ext := strings.ToLower(filepath.Ext(m.Path)); {
		case evidence.Generated(m.New) || m.Kind == change.Delete && evidence.Generated(m.Old):
			return 4
		case ext == ".md" || ext == ".txt" || ext == ".rst" || ext == ".adoc":
			return 3
		case ext == ".json" || ext == ".yaml" || ext == ".yml" || ext == ".toml" || ext == ".lock" || ext == ".sum" || ext == ".mod":
			return 2
		// A test of what is not in the proposal follows the programs.
		case evidence.TestFile(m.Path) && !subject[stem(m.Path)]:
			return 1
		}
		return 0
	}
	test := func(m member) int {
		if evidence.TestFile(m.Path) {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(list, func(a, b member) int {
		if r := rank(a) - rank(b); r != 0 {
			return r
		}
		if rank(a) > 0 {
			return strings.Compare(a.Path, b.Path)
		}
		return cmp.Or(strings.Compare(stem(a.Path), stem(b.Path)), test(a)-test(b), strings.Compare(a.Path, b.Path))
	})
}

// nameList is some names in a title, three at most.
func nameList(list []string) string {
	if len(list) > 3 {
		return strings.Join(list[:3], ", ") + " and " + textutil.Plural(len(list)-3, "more place")
	}
	return strings.Join(list, ", ")
}

// landed merges one file of a draft with what the project has now. A member without a kind is not proposed; note says why, or what the
// reader must know of it. A file that cannot be landed is left out with a note, so that one does not hold back the others.
func (c changes) landed(f change.File) (m member, note string, err error) {
	// The name that people and the model know; the notes are for both.
	name := c.rel(f.Path)
	if f.Links() {
		if err := rebaseLink(&f); err != nil {
			return member{}, name + " is not landed: " + err.Error(), nil
		}
		real, err := nameAt(f.Path)
		if err != nil {
			return member{}, "", pathError(f.Path, err)
		}
		return member{File: f, base: &files.File{Path: f.Path, Real: real, Hash: f.BaseHash}}, "", nil
	}
	here, err := c.place(f.Path)
	if err != nil {
		return member{}, "", err
	}
	if here.dir {
		return member{}, name + " is not landed: it is a folder in the project now.", nil
	}
	base, err := c.openPlace(here)
	if err != nil {
		return member{}, name + " is not landed: " + err.Error(), nil
	}
	// A command in the draft can make a link; the draft's changes must not leave the project through it.
	if !c.inside(base.Real) {
		return member{}, name + " is not landed: a link leads it out of the project.", nil
	}
	m = member{File: f, base: base}
	there := base.Exists || base.Dirty
	// The whole proposal would otherwise be refused for one read-only file, see checkWritable.
	if there && f.Kind != change.Create && base.Mode.Perm()&0o222 == 0 && (f.Kind == change.Delete || f.Mode&0o222 == 0) {
		return member{}, fmt.Sprintf("%s is not landed: it is read-only (mode %04o).", name, base.Mode.Perm()), nil
	}
	switch {
	case f.Kind == change.Create && !there:
		return m, "", nil
	case f.Kind == change.Delete && !there:
		return member{}, "", nil // deleted on both sides
	case !there:
		m.Kind, m.Old, m.Hunks = change.Create, "", nil
		return m, name + " was deleted in the project meanwhile; it is proposed as a new file.", nil
	case f.Kind != change.Delete && base.Text == strings.TrimPrefix(f.New, "\ufeff") && f.Mode == 0:
		return member{}, "", nil // the project has the same text already
	// Without a common base, or without lines, a merge is impossible: the person gets both versions to choose from.
	case f.Kind == change.Create || f.Binary && base.Text != f.Old:
		m.Kind, m.Old = change.Edit, base.Text
		if m.Binary = f.Binary; !f.Binary {
			m.New = change.BothSides(base.Text, f.New)
		}
		return m, name + " was made or changed in the project meanwhile; both versions are in the proposal.", nil
	case f.Kind == change.Delete && base.Text != f.Old:
		return member{}, name + " is not deleted: it was changed in the project meanwhile.", nil
	}
	m.File, err = f.Rebase(base.Text)
	var clash *change.ConflictError
	if errors.As(err, &clash) {
		m.File = f
		// The hunks are cut again from these texts; the old ones are of the draft's base.
		m.Old, m.New = base.Text, change.Conflicted(f.Old, base.Text, f.New)
		m.Hunks = nil
		return m, fmt.Sprintf("the draft and the project both changed the same lines of %s (%s); both versions are in the proposal, between conflict markers.", name, textutil.Plural(len(clash.Conflicts), "place")), nil
	}
	if err != nil {
		return member{}, "", err
	}
	if base.Text != f.Old {
		note = name + " was changed in the project meanwhile, in other lines; the draft's changes were merged with that."
	}
	return m, note, nil
}

// nameAt is the path with the links of its folder resolved, but not its last part: the place of a link itself. A folder that does not
// exist yet is not an error.
func nameAt(path string) (string, error) {
	dir, err := files.Real(filepath.Dir(path))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	return filepath.Join(dir, filepath.Base(path)), nil
}
