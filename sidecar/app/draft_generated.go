package app

import (
	"context"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/draft"
	"github.com/pillion-dev/pillion/tools/evidence"
	"github.com/pillion-dev/pillion/tools/search"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// directive is the line that says how a Go file is generated (go help generate).
var directive = regexp.MustCompile(`(?m)^//go:generate (.+)$`)

// maxGenerators is how many folders' generators run once more for a proposal: somebody waits for it.
const maxGenerators = 5

// regenerated runs the generators of the generated files in a proposal once more, in a fresh draft that has the proposal without
// those files, and gives the texts that come out as the proposed ones, with the command that made them. It runs the project's
// code, so it is asked for like the tests. It knows go:generate; other generators are read hunk by hunk.
func (d *Drafts) regenerated(ctx context.Context, s *agent.Session, o *openDraft, p *draft.Proposal) map[string]string {
	folders := map[string][]change.File{}
	for _, f := range p.Files {
		if f.Kind != change.Delete && !f.Binary && strings.HasSuffix(f.Path, ".go") && evidence.Generated(f.New) {
			folders[filepath.Dir(f.Path)] = append(folders[filepath.Dir(f.Path)], f)
		}
	}
	maps.DeleteFunc(folders, func(dir string, _ []change.File) bool { return !hasDirective(dir, p) })
	if len(folders) == 0 || len(folders) > maxGenerators {
		return nil
	}
	fresh, err := draft.Create(ctx, draft.Options{Dir: d.Dir(), Project: o.root, Title: "generators", View: o.Head().View, Ignored: search.Ignored(o.root)})
	if err != nil {
		return nil // the files are read like all others
	}
	again := &openDraft{Draft: fresh, app: d.app, root: o.root}
	defer func() {
		again.stop()
		_ = fresh.Drop()
	}()
	for _, f := range p.Files {
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
		if x, _ := d.run(ctx, s, again, "cd '"+strings.ReplaceAll(dir, "'", `'\''`)+"' && go generate .", name); x.Status != change.EvidencePassed {
			continue
		}
		made, err := again.proposal()
		if err != nil {
			return nil
		}
		for _, f := range folders[dir] {
			// What the generator leaves as it is in the project is not in the fresh draft.
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

// hasDirective reports a folder one of whose files, as proposed, says how to generate.
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
			return directive.MatchString(f.New)
		}
		text, ok := readSource(name)
		return ok && directive.MatchString(text)
	})
}

// generatedGroups makes one decision of the files that a generator made once more, a group a command.
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
