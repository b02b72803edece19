package app

import (
	"context"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/draft"
	"github.com/pillion-dev/pillion/tools/evidence"
	"github.com/pillion-dev/pillion/tools/search"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// directive matches the line that says how a Go file is generated (go help generate): at the left margin, without a blank after the
// slashes.
var directive = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^//go:generate (.+)$`) })

// maxGenerators is the number of folders in which generators may be run again for a proposal, because the person waits for it. With more
// folders no generator runs, and the files are reviewed hunk by hunk.
const maxGenerators = 5

// regenerated runs the generators of the generated files in a proposal again, in a fresh draft that has the proposal without those
// files. It returns the files whose result is the proposed text: path → the command that made it. A header that says "generated"
// proves nothing, because an agent can edit below it; only a text that was reproduced need not be read line by line. It runs the
// project's code, so it needs approval like the tests. It knows go:generate; files of other generators are reviewed hunk by hunk.
// If anything fails, the files concerned are reviewed hunk by hunk too.
func (d *Drafts) regenerated(ctx context.Context, s *agent.Session, o *openDraft, p *draft.Proposal) map[string]string {
	folders := map[string][]change.File{}
	for _, f := range p.Files {
		if f.Kind != change.Delete && !f.Binary && strings.HasSuffix(f.Path, ".go") && evidence.Generated(f.New) {
			folders[filepath.Dir(f.Path)] = append(folders[filepath.Dir(f.Path)], f)
		}
	}
	// In a folder without a directive, go generate succeeds and makes nothing; that would look like a generator with the same
	// result.
	maps.DeleteFunc(folders, func(dir string, _ []change.File) bool { return !hasDirective(dir, p) })
	if len(folders) == 0 || len(folders) > maxGenerators {
		return nil
	}
	// Not in the draft itself: files that the agent left there could change the result, and a generator would write into the
	// proposal.
	fresh, err := draft.Create(ctx, draft.Options{Dir: d.Dir(), Project: o.root, Title: "generators", View: o.Head().View, Ignored: search.Ignored(o.root)})
	if err != nil {
		return nil // the files are reviewed like all others
	}
	again := &openDraft{Draft: fresh, app: d.app, root: o.root}
	defer func() {
		again.stop()
		_ = fresh.Drop()
	}()
	for _, f := range p.Files {
		// Generated files stay as in the project, because the generator is to make them. Deleted files, binary ones and links do too,
		// because LayIn takes only texts.
		if slices.ContainsFunc(folders[filepath.Dir(f.Path)], func(g change.File) bool { return g.Path == f.Path }) || f.Kind == change.Delete || f.Binary || f.Links() {
			continue
		}
		if fresh.LayIn(f.Path, []byte(f.New)) != nil {
			return nil
		}
	}
	out := map[string]string{}
	for _, dir := range slices.Sorted(maps.Keys(folders)) {
		r, err := filepath.Rel(o.Head().Project, dir)
		if err != nil {
			continue
		}
		name := "go generate ./" + filepath.ToSlash(r)
		if r == "." {
			name = "go generate ."
		}
		// A folder name is quoted for the shell; name is what people read and approve by.
		if x, _ := d.run(ctx, s, again, "cd '"+strings.ReplaceAll(dir, "'", `'\''`)+"' && go generate .", name); x.Status != change.EvidencePassed {
			continue
		}
		made, err := again.proposal()
		if err != nil {
			return nil
		}
		for _, f := range folders[dir] {
			// If the generator does not change a file of the project, the fresh draft has no change of it, so its text is the old
			// one.
			text := f.Old
			for _, m := range made.Files {
				if m.Path == f.Path {
					text = m.New
				}
			}
			if text == f.New {
				out[f.Path] = name
			}
		}
	}
	return out
}

// hasDirective reports whether a proposed file in a folder has a directive. It may be in another file than the generated one, and
// the proposal may add or remove it.
func hasDirective(dir string, p *draft.Proposal) bool {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return false
	}
	texts := map[string]change.File{}
	for _, f := range p.Files {
		if filepath.Dir(f.Path) == dir && strings.HasSuffix(f.Path, ".go") {
			texts[f.Path] = f
			names = append(names, f.Path)
		}
	}
	return slices.ContainsFunc(names, func(name string) bool {
		if f, ok := texts[name]; ok {
			return directive().MatchString(f.New)
		}
		text, ok := readSource(name)
		return ok && directive().MatchString(text)
	})
}

// generatedGroups groups the hunks of reproduced files by the command that made them, so that each group is one decision. made is the
// result of regenerated. The groups are sorted by command, so that the same proposal always looks the same.
func generatedGroups(set *change.Set, made map[string]string) (out []change.Group) {
	hunks, files := map[string][]string{}, map[string]int{}
	for _, f := range set.Files {
		name, ok := made[f.Path]
		if !ok {
			continue
		}
		files[name]++
		for _, h := range f.Hunks {
			hunks[name] = append(hunks[name], h.ID)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(hunks)) {
		out = append(out, change.Group{Kind: change.GroupGenerated, Verified: true, Hunks: hunks[name], Title: "verified generated: " + textutil.Plural(files[name], "file") + " as `" + name + "` makes it"})
	}
	return out
}
