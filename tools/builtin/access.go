package builtin

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/files"
	"github.com/pillion-dev/pillion/tools/paths"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/shell/sandbox"
)

// askSearch asks when a search begins outside the project. The folder of long outputs, to which the model is
// pointed, is never outside.
func (w workspace) askSearch(ctx context.Context, call *tools.Call, at place) error {
	if spill := w.spill(); spill != "" && paths.Within(spill, at.real) {
		return nil
	}
	return w.askReading(ctx, call, at)
}

// visible returns a test for the files below at that a search may show, by real path. Names appear unless a rule denies reading the
// file; content appears only where reading is allowed without a question, because one search would otherwise ask about every .env
// file.
func (w workspace) visible(ctx context.Context, call *tools.Call, at place, content bool) func(string) bool {
	would := predicted(ctx, call.Host.Gate)
	linked := func(string) []string { return nil } // a name alone gives nothing away
	if content {
		linked = w.linked(call.Host.Gate)
	}
	return func(real string) bool {
		path := at.named(real)
		action := would(permission.Request{
			MustAsk: w.credential(real), SessionID: call.SessionID, CallID: call.CallID, Tool: "read", Permission: "read",
			Patterns: append(w.patterns(path, real), linked(real)...), Also: []string{path, real},
		})
		return action == permission.Allow || action == permission.Ask && !content
	}
}

// linked returns a function that lists, as patterns of rules, the hard links of a file for which a rule may ask (sandbox.HiddenFiles.Linked).
func (w workspace) linked(gate any) func(real string) []string {
	known := w.Hidden
	if known == nil {
		known = &sandbox.HiddenFiles{}
	}
	quiet, rules := w.quiet(gate)
	if quiet == nil { // a gate that does not say its rules; the default ones ask about .env files only
		allowed := permission.Unquestioned([]permission.Ruleset{permission.Default()}, "read", "read")
		quiet = func(real string) bool { return allowed(w.rel(real), real) }
	}
	names := known.Linked(append([]string{w.root(), w.Cwd}, w.Extra...), quiet, rules)
	return func(real string) (patterns []string) {
		for _, name := range names(real) {
			patterns = append(patterns, w.patterns(name, name)...)
		}
		return patterns
	}
}

// hidden returns a test for files that a command must not print without a question: those for which the tool read would ask.
// Without it, `cat .env` and `rg -uu KEY` would give the model what the read tool withholds.
func (w workspace) hidden(ctx context.Context, gate any, session string) func(string) bool {
	would := predicted(ctx, gate)
	return func(real string) bool {
		return would(permission.Request{SessionID: session, Tool: "read", Permission: "read", Patterns: []string{w.rel(real)}, Also: []string{real}}) != permission.Allow
	}
}

// quiet returns a test for files that a command may surely print: the rules alone allow reading them. rules is the text of
// those rules, which tells that an answer still holds. It is nil for a gate that does not say what its rules are; hidden then
// decides on every file.
func (w workspace) quiet(gate any) (quiet func(string) bool, rules string) {
	g, ok := gate.(tools.RuleReader)
	if !ok {
		return nil, ""
	}
	sets := g.Rulesets()
	if len(sets) == 0 {
		return nil, ""
	}
	allowed := permission.Unquestioned(sets, "read", "read")
	return func(real string) bool { return allowed(w.rel(real), real) }, fmt.Sprint(sets)
}

// predicted is what a gate would answer, without asking a person. A gate that cannot tell beforehand (a
// host's own, in tests) is represented by the default rules, and of several patterns any that is not
// allowed decides: .env files stay out of a search even then.
func predicted(ctx context.Context, gate any) func(permission.Request) permission.Action {
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

// askOutside asks once for all folders outside the project that hold one of the places. One question
// for the whole call, because a person who allows the first folder of a patch and rejects the second
// would leave half of it. "Also" has the names as they were given, so that a rule about a symbolic link
// counts as well as one about its target.
func (w workspace) askOutside(ctx context.Context, call *tools.Call, places ...place) error {
	var patterns, also []string
	for _, p := range places {
		if w.inside(p.real) {
			continue
		}
		// A folder is asked about as itself, a file by its folder: "always" for one file
		// would ask again for its neighbour.
		dir, named := p.real, p.path
		if !p.dir {
			dir, named = filepath.Dir(dir), filepath.Dir(named)
		}
		patterns = append(patterns, folderPattern(dir))
		if named != dir {
			also = append(also, folderPattern(named))
		}
	}
	// Every place is inside: the usual case, and no question.
	if len(patterns) == 0 {
		return nil
	}
	sort.Strings(patterns)
	patterns = slices.Compact(patterns)
	// One title for all folders; the patterns are listed in the request.
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

// askReply is ask with the answer, which carries the person's decisions by hunk. Without a gate nothing
// is allowed: a tool that runs outside a session must fail closed.
func askReply(ctx context.Context, call *tools.Call, r permission.Request) (permission.Reply, error) {
	r.SessionID, r.CallID, r.Tool = call.SessionID, call.CallID, call.Tool
	if call.Host.Gate == nil {
		err := permission.NoUser(r.Permission, "this host asks no user")
		return permission.Reply{}, &tools.Error{Kind: "rejected", Message: err.Error(), Err: err}
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

// askRead judges a place before anything of it is looked at, its existence included: "file not found"
// about a place outside the project would answer a question that nobody was asked. Spilled outputs are
// the exception, because the result of an earlier call points the model to them.
func (w workspace) askRead(ctx context.Context, call *tools.Call, at place) error {
	if !w.inside(at.real) { // else no folder but the project's is resolved, at every read
		if spill := w.spill(); spill == "" || !paths.Within(spill, at.real) {
			if err := w.askReading(ctx, call, at); err != nil {
				return err
			}
		}
	}
	return w.askContent(ctx, call, at)
}

// askContent judges the reading of a place that is inside the project, or whose folder has been asked
// about already. All names are judged: a link `notes.txt` to `.env` is what it leads to, and a hard link is `.env` itself.
func (w workspace) askContent(ctx context.Context, call *tools.Call, at place) error {
	why := ""
	linked := w.linked(call.Host.Gate)(at.real)
	if len(linked) > 0 {
		why = w.rel(at.path) + " is a hard link: it is the same file as " + nameSome(linked)
	}
	return ask(ctx, call, permission.Request{
		MustAsk: w.credential(at.real), Why: why,
		Permission: "read", Patterns: append(w.patterns(at.path, at.real), linked...), Also: []string{at.path, at.real}, Always: []string{"*"}, Title: "Read " + w.rel(at.path),
		Metadata: map[string]any{"filepath": at.path},
	})
}

// askUnseen judges the reading of a file whose text a call is about to compare with a quotation. Whether a quotation fits is an answer about
// the text: without the question a model could spell out a key that it may not read, character by character. A file that the session has
// read, and that is as it was then, has been judged before.
func (c changes) askUnseen(ctx context.Context, call *tools.Call, f *files.File) error {
	if !f.Exists && !f.Dirty || c.Tracker.Check(f) == nil {
		return nil
	}
	at := place{path: f.Path, real: f.Real}
	if c.visible(ctx, call, at, true)(f.Real) {
		return nil
	}
	return c.askContent(ctx, call, at)
}

// credential reports a file outside the project that holds keys or Pillion's own state. No "always" and
// no broad rule for folders outside lets it be read without a question: the person who allowed `~/*`
// once did not think of `~/.ssh`. Spilled outputs, files of skills and the project's own files are not
// among them.
func (w workspace) credential(real string) bool {
	// inside first: a search asks about each of its files, and the others resolve folders.
	if w.inside(real) || w.Skills != nil && w.Skills.Holds(real) {
		return false
	}
	if spill := w.spill(); spill != "" && paths.Within(spill, real) {
		return false
	}
	if secretive(real) {
		return true
	}
	return slices.ContainsFunc(append([]string{w.StateDir}, w.Own...), func(dir string) bool {
		// The state folder may be reached through a link (macOS: /tmp, a home on another disk); real is
		// resolved.
		if r, err := files.Real(dir); err == nil {
			dir = r
		}
		return dir != "" && paths.Within(dir, real)
	})
}

// askReading is askOutside for places that are only read. The files of a skill need no question: the
// person installed the skill for the agent to read.
func (w workspace) askReading(ctx context.Context, call *tools.Call, at place) error {
	if w.Skills != nil && !w.inside(at.real) && w.Skills.Holds(at.real) {
		return nil
	}
	return w.askOutside(ctx, call, at)
}

// wouldAsk reports whether a person will be asked. Work that only serves the question (the check of a
// proposal, the card) is skipped otherwise, so a rule that allows edits also makes them fast. A gate
// that cannot tell counts as asking.
func wouldAsk(ctx context.Context, call *tools.Call, r permission.Request) bool {
	g, ok := call.Host.Gate.(interface {
		Would(context.Context, permission.Request) permission.Action
	})
	r.SessionID, r.CallID, r.Tool = call.SessionID, call.CallID, call.Tool
	return !ok || g.Would(ctx, r) == permission.Ask
}
