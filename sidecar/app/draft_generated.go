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

// directive is the line that says how a Go file is generated (go help generate): at the margin, without a blank after the slashes.
var directive = regexp.MustCompile(`(?m)^//go:generate (.+)$`)

// maxGenerators is how many folders' generators run once more for a proposal: somebody waits for it. Beyond it none runs, and the files are
// read hunk by hunk.
const maxGenerators = 5

// regenerated runs the generators of the generated files in a proposal once more, in a fresh draft that has the proposal without
// those files. It returns the files whose text comes out as proposed: path → the command that made it. A header that says "generated" is no
// proof, since an agent can edit below it; only a text that was made again need not be read line by line. It runs the project's
// code, so it is asked for like the tests. It knows go:generate; files of other generators are reviewed hunk by hunk. Whatever fails here
// only means that fewer files are folded to one decision.
func (d *Drafts) regenerated(ctx context.Context, s *agent.Session, o *openDraft, p *draft.Proposal) map[string]string {
	folders := map[string][]change.File{}
	for _, f := range p.Files {
		if f.Kind != change.Delete && !f.Binary && strings.HasSuffix(f.Path, ".go") && evidence.Generated(f.New) {
			folders[filepath.Dir(f.Path)] = append(folders[filepath.Dir(f.Path)], f)
		}
	}
	// go generate in a folder without a directive succeeds and makes nothing, which would look like a generator that agrees.
	maps.DeleteFunc(folders, func(dir string, _ []change.File) bool { return !hasDirective(dir, p) })
	if len(folders) == 0 || len(folders) > maxGenerators {
		return nil
	}
	// Not in the draft itself: what the agent left beside the sources there could change what comes out, and a generator would write into
	// the proposal.
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
		// The generated files stay as the project has them. So do deleted and binary ones and links: LayIn takes texts.
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
			// What the generator leaves as it is in the project is not a change of the fresh draft, so its text is the old one.
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

// hasDirective reports a folder one of whose files, as proposed, says how to generate. The directive may be in another file than the
// generated one, and the proposal may be what adds or removes it.
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

// generatedGroups makes one decision of the files that a generator made once more, a group for each command. made is what regenerated
// returned. The groups are sorted by command, so that the same proposal always looks the same.
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
