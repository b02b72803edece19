package builtin

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/files"
	"github.com/pillion-dev/pillion/tools/paths"
	"github.com/pillion-dev/pillion/tools/permission"
)

// askSearch asks when a search begins outside the project. The folder of long outputs, to which the model is
// pointed, is never outside.
func (w workspace) askSearch(ctx context.Context, call *tools.Call, at place) error {
	if spill := w.spill(); spill != "" && paths.Within(spill, at.real) {
		return nil
	}
	return w.askReading(ctx, call, at)
}

// visible says which files below at a search may show. Names appear unless a rule denies reading the file; content
// only where reading is allowed without a question: one search would otherwise have to ask for every .env file.
func (w workspace) visible(ctx context.Context, call *tools.Call, at place, content bool) func(string) bool {
	would := foretold(ctx, call.Host.Gate)
	return func(real string) bool {
		path := at.named(real)
		action := would(permission.Request{
			MustAsk: w.credential(real), SessionID: call.SessionID, CallID: call.CallID, Tool: "read", Permission: "read",
			Patterns: w.patterns(path, real), Also: []string{path, real},
		})
		return action == permission.Allow || action == permission.Ask && !content
	}
}

// hidden says which files a command may not print without asking: those that the tool read would ask for.
func (w workspace) hidden(ctx context.Context, gate any, session string) func(string) bool {
	would := foretold(ctx, gate)
	return func(real string) bool {
		return would(permission.Request{SessionID: session, Tool: "read", Permission: "read", Patterns: []string{w.rel(real)}, Also: []string{real}}) != permission.Allow
	}
}

// foretold is what a gate will say; the default rules for one that cannot tell.
func foretold(ctx context.Context, gate any) func(permission.Request) permission.Action {
	if f, ok := gate.(tools.Foreteller); ok {
		return func(r permission.Request) permission.Action { return f.Would(ctx, r) }
	}
	return func(r permission.Request) permission.Action {
		worst := permission.Allow
		for _, p := range r.Patterns {
			if a, _ := permission.Default().Judge(r, p); a != permission.Allow {
				worst = a
			}
		}
		return worst
	}
}

// askOutside asks for the folders of those places that lie outside the project, once for all of them.
func (w workspace) askOutside(ctx context.Context, call *tools.Call, places ...place) error {
	var patterns, also []string
	for _, p := range places {
		if w.inside(p.real) {
			continue
		}
		dir, named := p.real, p.path
		if !p.dir {
			dir, named = filepath.Dir(dir), filepath.Dir(named)
		}
		patterns = append(patterns, folderPattern(dir))
		if named != dir {
			also = append(also, folderPattern(named))
		}
	}
	if len(patterns) == 0 {
		return nil
	}
	sort.Strings(patterns)
	patterns = slices.Compact(patterns)
	title := "Use " + strings.Join(patterns, ", ") + ", outside the project"
	return ask(ctx, call, permission.Request{
		Permission: "external_directory", Patterns: patterns, Also: also, Always: patterns, Title: title,
		Why:      "the path lies outside " + w.root(),
		Metadata: map[string]any{"filepath": places[0].path, "parentDir": filepath.Dir(places[0].real)},
	})
}

// folderPattern is the rule pattern for everything below a folder. The root "/" becomes "/*", not "//*".
func folderPattern(dir string) string {
	return strings.TrimSuffix(filepath.ToSlash(dir), "/") + "/*"
}

// ask fills in whose call it is and asks. The error carries the kind "denied" or "rejected".
func ask(ctx context.Context, call *tools.Call, r permission.Request) error {
	_, err := askReply(ctx, call, r)
	return err
}

// askReply is ask with the answer, which carries the person's decisions by hunk. Without a gate nothing is allowed.
func askReply(ctx context.Context, call *tools.Call, r permission.Request) (permission.Reply, error) {
	r.SessionID, r.CallID, r.Tool = call.SessionID, call.CallID, call.Tool
	if call.Host.Gate == nil {
		return permission.Reply{}, &tools.Error{Kind: "denied", Message: "nobody can be asked for permission here, so this is not done", Err: permission.ErrDenied}
	}
	reply, err := call.Host.Gate.Ask(ctx, r)
	switch {
	case err == nil:
		return reply, nil
	case errors.Is(err, permission.ErrRejected):
		return reply, &tools.Error{Kind: "rejected", Message: err.Error(), Err: err}
	case errors.Is(err, permission.ErrDenied):
		return reply, &tools.Error{Kind: "denied", Message: err.Error(), Err: err}
	}
	return reply, err
}

// askRead judges a place before anything of it is looked at.
func (w workspace) askRead(ctx context.Context, call *tools.Call, at place) error {
	if spill := w.spill(); spill == "" || !paths.Within(spill, at.real) { // long outputs that the model was pointed to
		if err := w.askReading(ctx, call, at); err != nil {
			return err
		}
	}
	return w.askContent(ctx, call, at)
}

// askContent judges the reading of a place that is inside, or was asked about.
func (w workspace) askContent(ctx context.Context, call *tools.Call, at place) error {
	return ask(ctx, call, permission.Request{
		MustAsk:    w.credential(at.real),
		Permission: "read", Patterns: w.patterns(at.path, at.real), Also: []string{at.path, at.real}, Always: []string{"*"}, Title: "Read " + w.rel(at.path),
		Metadata: map[string]any{"filepath": at.path},
	})
}

// credential reports a file outside the project that holds keys or Pillion's own state: no rule for everything outside
// lets it be read without a question. Long outputs and the project's own files are not among them.
func (w workspace) credential(real string) bool {
	if spill := w.spill(); spill != "" && paths.Within(spill, real) || w.inside(real) || w.Skills != nil && w.Skills.Holds(real) {
		return false
	}
	if secretive(real) {
		return true
	}
	return slices.ContainsFunc(append([]string{w.StateDir}, w.Own...), func(dir string) bool {
		if r, err := files.Real(dir); err == nil {
			dir = r
		}
		return dir != "" && paths.Within(dir, real)
	})
}

// askReading is askOutside for what is only read: the files of a skill may be.
func (w workspace) askReading(ctx context.Context, call *tools.Call, at place) error {
	if w.Skills != nil && !w.inside(at.real) && w.Skills.Holds(at.real) {
		return nil
	}
	return w.askOutside(ctx, call, at)
}

// asks reports whether a person will be asked, so that work that only serves the question is skipped otherwise. A gate that
// cannot tell counts as asking.
func asks(ctx context.Context, call *tools.Call, r permission.Request) bool {
	g, ok := call.Host.Gate.(interface {
		Would(context.Context, permission.Request) permission.Action
	})
	r.SessionID, r.CallID, r.Tool = call.SessionID, call.CallID, call.Tool
	return !ok || g.Would(ctx, r) == permission.Ask
}
