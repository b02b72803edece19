// Package check gives the verdict on changes that are not proposals of ours: a patch, a commit range, the working tree. The
// language servers look at the state before the changes, and the changes are laid over it inside them, as for any proposal;
// nothing is written but a copy of that state where it is not what is on disk.
//
//	plan, err := check.Range(ctx, root, "main..HEAD")
//	defer plan.Close()
//	verdict := plan.Run(ctx, servers) // servers: a Manager for plan.Dir
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
)

// Servers is what a plan needs of the language servers.
type Servers interface {
	Check(ctx context.Context, files []lspbridge.Proposal) lspbridge.Delta
}

// Plan is a set of changes and the state before them.
type Plan struct {
	Root  string // of the project
	Dir   string // where the state before the changes lies: Root, or a copy
	Files []lspbridge.Proposal

	close func()
}

// Close takes the copy away.
func (p *Plan) Close() {
	if p.close != nil {
		p.close()
	}
}

// Paths are the changed files, relative to the root.
func (p *Plan) Paths() []string {
	out := []string{}
	for _, f := range p.Files {
		out = append(out, p.rel(f.Path))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (p *Plan) rel(path string) string {
	if r, err := filepath.Rel(p.Dir, path); err == nil && paths.Within(p.Dir, path) {
		return filepath.ToSlash(r)
	}
	return filepath.ToSlash(path)
}

// again is how long a server gets before it is asked once more after "not yet".
const again = 500 * time.Millisecond

// Run asks the servers for as long as ctx lasts or an answer is pending. The problems' paths are in Root.
func (p *Plan) Run(ctx context.Context, servers Servers) change.Verdict {
	if len(p.Files) == 0 {
		return change.Verdict{Certainty: change.Fresh}
	}
	var v change.Verdict
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
	return v
}

// home is a path of the copy as the person knows it.
func (p *Plan) home(path string) string {
	if p.Dir != p.Root && paths.Within(p.Dir, path) {
		if r, err := filepath.Rel(p.Dir, path); err == nil {
			return filepath.Join(p.Root, r)
		}
	}
	return path
}

// Outcome is a verdict in one word, for exit codes.
type Outcome int

// The outcomes, in the order of their exit codes.
const (
	Clean     Outcome = iota // every server has looked, and no error is introduced
	Errors                   // errors are introduced, whatever else is not known
	Uncertain                // none is known, but not everything was looked at
)

// Judge is what a verdict amounts to. Where no server is for any of the files there is nothing to be uncertain about; partial
// says that an answer about a part is enough.
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
