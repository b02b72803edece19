// Package check gives the verdict on changes that are not proposals of Pillion: a patch, a commit range, the working tree. The
// language servers look at the state before the changes, and the changes are laid over it inside them, as for any proposal;
// nothing is written but a copy of that state where it is not what is on disk.
//
//	plan, err := check.Range(ctx, root, "main..HEAD")
//	defer plan.Close()
//	verdict := plan.Run(ctx, servers, nil) // servers: a Manager for plan.Dir
package check

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/paths"
	"github.com/pillion-dev/pillion/tools/symbol"
)

// Servers is what a plan needs of the language servers; *lspbridge.Manager implements it.
type Servers interface {
	// Check gives the verdict on files laid over what is on disk; see lspbridge.Manager.Check.
	Check(ctx context.Context, files []lspbridge.Proposal) lspbridge.Delta
	// Busy says what the servers of these files do instead of answering; "" when they do not say.
	Busy(files []lspbridge.Proposal) string
}

// Plan is a set of changes and the state before them. The caller must Close it.
type Plan struct {
	Root  string               // of the project, absolute
	Dir   string               // where the state before the changes is: Root itself, or a copy of it
	Files []lspbridge.Proposal // the state after the changes; absolute paths in Dir

	unchecked []string // links and submodules that the change names and no server sees
	close     func()   // removes the copy; nil without one
}

// Close removes the copy. Stop the servers first: they may still read it.
func (p *Plan) Close() {
	if p.close != nil {
		p.close()
	}
}

// Paths are the changed files, sorted, with slashes, relative to the root. A renamed file counts under
// both names.
func (p *Plan) Paths() []string {
	out := []string{}
	for _, f := range p.Files {
		out = append(out, p.rel(f.Path))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// rel is a path of Dir relative to it, with slashes; another path stays as it is.
func (p *Plan) rel(path string) string {
	if r, err := filepath.Rel(p.Dir, path); err == nil && paths.Within(p.Dir, path) {
		return filepath.ToSlash(r)
	}
	return filepath.ToSlash(path)
}

// again is the pause between two checks while a server says Pending. Servers do not announce that they are
// ready, so Run has to ask.
const again = 500 * time.Millisecond

// Run checks the plan, and repeats the check while the verdict is Pending and ctx lasts: a server that
// loads a large project answers only later. tell hears what the servers do meanwhile, and what parsing alone
// finds; it may be nil. The paths and the reason of the verdict name Root even when
// the servers work in a copy, so that an editor or a CI log can open them.
func (p *Plan) Run(ctx context.Context, servers Servers, tell func(text string)) change.Verdict {
	v := change.Verdict{Certainty: change.Fresh}
	if len(p.Files) == 0 {
		return p.qualify(v)
	}
	stop := p.reportWaiting(ctx, servers, tell)
	defer stop()
	for {
		v = servers.Check(ctx, p.Files).Verdict
		if v.Certainty != change.Pending || ctx.Err() != nil {
			break
		}
		select {
		case <-time.After(again):
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
	}
	for _, list := range [][]change.Problem{v.Introduced, v.Fixed} {
		for i := range list {
			list[i].Path = p.home(list[i].Path)
		}
	}
	v.Reason = strings.ReplaceAll(v.Reason, p.Dir, p.Root)
	if v.Certainty == change.Pending {
		v.Reason = joined(v.Reason, p.syntax())
	}
	return p.qualify(v)
}

// A person reads what the servers do after the first second, and something new every five seconds at most. In the first second nothing is
// said, because on a loaded machine servers need as long for a project that has nothing to load.
const (
	tellFirst = time.Second
	tellAgain = 5 * time.Second
)

// reportWaiting tells what the servers do until they have answered, each thing once, until stop.
func (p *Plan) reportWaiting(ctx context.Context, servers Servers, tell func(text string)) (stop func()) {
	if tell == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		said, syntax := "", p.syntax()
		for wait := tellFirst; ; wait = tellAgain {
			select {
			case <-ctx.Done():
				return
			case <-time.After(wait):
			}
			if doing := servers.Busy(p.Files); doing != "" && doing != said {
				tell(strings.ReplaceAll(joined(doing, syntax), p.Dir, p.Root))
				said, syntax = doing, ""
			}
		}
	}()
	return func() { cancel(); <-ended }
}

// syntax is what parsing alone tells about the change.
func (p *Plan) syntax() string {
	var texts []symbol.Revision
	for _, f := range p.Files {
		if !f.Delete {
			texts = append(texts, symbol.Revision{Path: f.Path, Name: p.rel(f.Path), Old: f.Old, New: f.Text})
		}
	}
	return symbol.Syntax(texts)
}

// joined is two halves of a reason, either of which may be empty.
func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// qualify makes a verdict partial where the change has what no server sees although a build can depend on it.
func (p *Plan) qualify(v change.Verdict) change.Verdict {
	if len(p.unchecked) > 0 && (v.Certainty == change.Fresh || v.Unserved) {
		v.Certainty, v.Unserved = change.Partial, false
		v.Reason = "links and submodules are not checked: " + strings.Join(p.unchecked, ", ")
	}
	return v
}

// home maps a path in the copy to the same file in the project; other paths (a library's) stay as they
// are.
func (p *Plan) home(path string) string {
	if p.Dir != p.Root && paths.Within(p.Dir, path) {
		if r, err := filepath.Rel(p.Dir, path); err == nil {
			return filepath.Join(p.Root, r)
		}
	}
	return path
}

// Outcome is a verdict reduced to the exit code of pillion check. Scripts depend on the numbers.
type Outcome int

// The outcomes, in the order of their exit codes.
const (
	Clean     Outcome = iota // every server has answered, and no error is introduced
	Errors                   // errors are introduced, whether or not the answer is complete
	Uncertain                // no error is known, but not everything was checked
)

// Judge reduces a verdict to an outcome. Only introduced errors count, not warnings. Files that no
// configured server is for make it Clean: an edit of a README must not fail a build. partial accepts an
// incomplete answer as Clean.
func Judge(v change.Verdict, partial bool) Outcome {
	introduced, _ := v.Errors()
	switch {
	case introduced > 0:
		return Errors
	case v.Certainty == change.Fresh, v.Unserved, partial && v.Certainty == change.Partial:
		return Clean
	}
	return Uncertain
}
