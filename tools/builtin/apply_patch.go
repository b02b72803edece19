package builtin

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/files"
	"github.com/pillion-dev/pillion/tools/patch"
	"github.com/pillion-dev/pillion/tools/replace"
	"github.com/pillion-dev/pillion/tools/symbol"
)

//go:embed apply_patch.txt
var applyPatchText string

// applyPatchParams has the name of OpenCode's tool.
type applyPatchParams struct {
	PatchText string `json:"patchText"`
}

// ApplyPatch changes several files by one patch, all or nothing. It needs no read before: the patch
// quotes the lines it changes, and they are compared with the file.
func ApplyPatch(env Env) tools.Tool {
	changer := env.changes()
	return tools.New("apply_patch", applyPatchText, func(ctx context.Context, p applyPatchParams, call *tools.Call) (tools.Result, error) {
		parsed, err := patch.Parse(p.PatchText)
		if err != nil {
			return tools.Result{}, patchError(err)
		}
		// Two sections for "a.go" and "./a.go" are one file, and the patch engine refuses or joins them by this name.
		parsed.Key, parsed.Literals = changer.canonicalName, symbol.LongLiterals
		opened, places, err := changer.openAll(ctx, call, parsed)
		if err != nil {
			return tools.Result{}, err
		}
		for _, op := range parsed.Ops {
			for _, name := range []string{op.Path, op.Instead} {
				if f := opened[name]; f != nil && len(op.Hunks) > 0 {
					if err := changer.askUnseen(ctx, call, f); err != nil {
						return tools.Result{}, err
					}
				}
			}
			// A move or a copy gives the text a second name. It is judged as a read, or a patch could copy
			// `.env` to `env.txt` and read that.
			if at, ok := places[op.Path]; ok && (op.Kind == patch.Move || op.Copy) && opened[op.Path].Exists {
				if err := changer.askContent(ctx, call, at); err != nil {
					return tools.Result{}, err
				}
			}
		}
		// Pure text: the patch is worked out on what was opened, and nothing is written here.
		changes, err := parsed.Apply(func(path string) (string, bool, error) {
			f := opened[path]
			if f == nil {
				return "", false, &tools.Error{Kind: "io", Message: "the patch reads " + path + ", which it does not name"}
			}
			return f.Text, f.Exists || f.Dirty, nil
		})
		if err != nil {
			return tools.Result{}, patchError(err)
		}
		prop := proposal{told: true}
		var notes []string
		var done strings.Builder
		// OpenCode's words and letters (A, D, M), on which models are trained.
		done.WriteString("Success. Updated the following files:")
		for _, c := range changes {
			f := opened[c.Path]
			if f == nil {
				return tools.Result{}, &tools.Error{Kind: "io", Message: "the patch changes " + c.Path + ", which it does not name"}
			}
			m := member{File: change.File{Path: f.Path, Old: c.Old, New: c.New, Mode: uint32(c.Mode)}, base: f}
			line := ""
			switch c.Kind {
			case patch.Add:
				m.Kind, line = change.Create, "A "+changer.rel(f.Path)
			case patch.Delete:
				m.Kind, line = change.Delete, "D "+changer.rel(f.Path)
			case patch.Move:
				to := places[c.NewPath]
				m.Kind, m.NewPath, m.to = change.Rename, to.path, &to
				line = "M " + changer.rel(to.path)
			default:
				m.Kind, line = change.Edit, "M "+changer.rel(f.Path)
			}
			done.WriteString("\n" + line)
			note, err := changer.loosely(f, c)
			if err != nil {
				return tools.Result{}, err
			}
			if note != "" {
				notes = append(notes, note)
			}
			var stale *files.StaleError
			if known := changer.Tracker.Check(f); errors.As(known, &stale) {
				note, whole := changer.sinceRead(stale, changer.rel(f.Path)+" has changed since it was last read; the patch was applied to the file as it is now.")
				notes, prop.told = append(notes, note), prop.told && whole
			} else if known != nil {
				prop.told = false
			}
			prop.members = append(prop.members, m)
		}
		prop.done, prop.note = done.String(), strings.Join(notes, "\n")
		return changer.propose(ctx, call, prop)
	}, tools.WithPermission("edit"), tools.WithKind(tools.KindEdit), patchNames)
}

// loosely weighs the places of a file that are not exactly as the patch quotes them: an exact quotation is its own proof that the
// file was seen, a loose one is not. The note tells the model what the file really had.
func (c changes) loosely(f *files.File, to patch.FileChange) (note string, err error) {
	if len(to.Loose) == 0 {
		return "", nil
	}
	// A file that the session has not read, or that changed since, must be quoted exactly.
	if err := c.requireRead(f); err != nil {
		return "", err
	}
	shown := func(l patch.Loose) string {
		return fmt.Sprintf("%s, which are:\n%s", replace.LineRange(l.First, l.Last), capLines(l.Text, 60))
	}
	var notes []string
	for _, l := range to.Loose {
		// Only white space differs otherwise, and a broken syntax is then the patch's own.
		if l.Reworded {
			if err := c.unbroken(f, to.New, shown(l)); err != nil {
				return "", err
			}
		}
		notes = append(notes, fmt.Sprintf("%s did not have the lines exactly as the patch quotes them; the hunk was merged with %s", c.rel(f.Path), shown(l)))
	}
	return strings.Join(notes, "\n"), nil
}

// openAll resolves every name of the patch, asks once for all places outside the project, then opens
// the files. Nothing is opened before the question: see askRead.
func (c changes) openAll(ctx context.Context, call *tools.Call, parsed *patch.Patch) (map[string]*files.File, map[string]place, error) {
	// By the names in the patch, with which patch.Apply asks for texts.
	places := map[string]place{}
	var list []place
	paths := parsed.Paths()
	for _, name := range paths {
		path, err := c.abs(name)
		if err != nil {
			return nil, nil, sectionError(parsed, name, err)
		}
		p, err := c.place(path)
		if err != nil {
			return nil, nil, sectionError(parsed, name, err)
		}
		places[name] = p
		list = append(list, p)
	}
	if err := c.askOutside(ctx, call, list...); err != nil {
		return nil, nil, err
	}
	opened := map[string]*files.File{}
	for _, name := range paths {
		f, err := c.openPlace(places[name])
		if err != nil {
			return nil, nil, sectionError(parsed, name, err)
		}
		opened[name] = f
	}
	return opened, places, nil
}

// sectionError gives an error about one file the kind that fits the section which names it, as OpenCode's tool does (delete failed,
// target missing …): models are trained on those words. "stale" stays, because it asks for another read and not for another patch.
func sectionError(parsed *patch.Patch, name string, err error) error {
	var t *tools.Error
	if !errors.As(err, &t) || t.Kind == "stale" {
		return err
	}
	kind := t.Kind
	for _, op := range parsed.Ops {
		switch {
		case op.Path != name && op.NewPath != name && op.Instead != name:
			continue
		case op.Kind == patch.Delete:
			kind = patch.DeleteFailed
		case (op.Kind == patch.Add || op.NewPath == name) && t.Kind == "is_directory":
			kind = patch.Exists
		case op.Kind == patch.Add || op.NewPath == name:
			kind = patch.WriteFailed
		default:
			kind = patch.UpdateTargetMissing
		}
		break
	}
	return &tools.Error{Kind: kind, Message: "apply_patch verification failed: " + t.Message, Err: err}
}

// patchError gives an error of the patch engine the prefix that OpenCode's tool has; other errors pass unchanged.
func patchError(err error) error {
	var p *patch.Error
	if errors.As(err, &p) {
		return &tools.Error{Kind: p.Kind, Message: "apply_patch verification failed: " + p.Message, Err: err}
	}
	return err
}
