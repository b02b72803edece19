package lspbridge

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/guard"
	"github.com/pillion-dev/pillion/tools/paths"
)

// Diagnostics returns the problems of one file as the person sees it now, from all its servers. It returns
// within ctx's deadline (1.5 s without one).
func (v *verdicts) Diagnostics(ctx context.Context, path string) FileReport {
	ctx, cancel := budget(ctx)
	defer cancel()
	ctx, end := waits(ctx, "diagnostics", 1)
	defer end(nil)
	d := v.askServers(ctx, []Proposal{{Path: path}}, func(ctx context.Context, c *client, _ []Proposal) serverVerdict {
		return c.report(ctx, []string{path}, false)
	})
	if len(d.Files) == 0 {
		return FileReport{Path: path, Certainty: d.Certainty, Reason: d.Reason}
	}
	return d.Files[0]
}

// ProjectDiagnostics returns the problems of the whole project, or of the files below paths. It starts the
// servers for these files and waits for them as long as ctx allows. Beside the files with problems it
// returns one report without items for each server, whose Path is the server's root: it says how certain
// the answer of that server is. That a server is missing is told only for a language of which a good part of these files
// is.
func (v *verdicts) ProjectDiagnostics(ctx context.Context, paths ...string) []FileReport {
	if len(paths) == 0 {
		paths = []string{v.o.Root}
	}
	return v.projectReports(ctx, paths, true)
}

// RunningDiagnostics is ProjectDiagnostics by the servers that run: what was not needed so far is not started.
func (v *verdicts) RunningDiagnostics(ctx context.Context) []FileReport {
	return v.projectReports(ctx, []string{v.o.Root}, false)
}

// projectReports asks the servers for the files below tops; with start also those that do not run yet.
func (v *verdicts) projectReports(ctx context.Context, tops []string, start bool) []FileReport {
	ctx, cancel := budget(ctx)
	defer cancel()
	v.fleet.Flush(ctx)
	groups := map[*slot][]string{}
	var order []*slot
	total := 0 // files that a server is for
	for _, top := range tops {
		for _, f := range projectFiles(ctx, top) {
			slots := v.slotsFor(f)
			if len(slots) > 0 {
				total++
			}
			for _, s := range slots {
				if !start && s.current() == nil {
					continue
				}
				if groups[s] == nil {
					order = append(order, s)
				}
				groups[s] = append(groups[s], f)
			}
		}
	}
	for _, s := range order {
		// Servers without markers are for configuration and prose, which every project has some of.
		if files := len(groups[s]); files*fairShare >= total && len(s.spec.Markers) > 0 || files == total {
			v.notices.concern([]*slot{s})
		}
	}
	out := make([][]FileReport, len(order))
	var wg sync.WaitGroup
	for i, s := range order {
		wg.Go(func() { out[i] = s.report(ctx, groups[s], tops) })
	}
	wg.Wait()
	all := slices.Concat(out...)
	slices.SortStableFunc(all, func(a, b FileReport) int { return strings.Compare(a.Path, b.Path) })
	return all
}

// report is the reports of one server on files; tops are the folders that were asked for.
func (s *slot) report(ctx context.Context, files, tops []string) []FileReport {
	c, err := s.get(ctx)
	if err != nil {
		// A linter that is not installed takes nothing from the answer of the others.
		if s.spec.Extra && failState(err) == change.Unavailable {
			return nil
		}
		state, reason := failState(err), err.Error()
		if state == change.Unavailable {
			reason = countKinds(files) + " not checked: " + reason // other servers may have answered for the rest
		}
		return []FileReport{{Path: s.root, Certainty: state, Reason: reason}}
	}
	v := c.report(ctx, files, true)
	out := []FileReport{{Path: s.root, Certainty: v.state, Reason: v.reason}}
	for p, f := range v.files {
		items := slices.Clone(f.items())
		if len(items) == 0 || !slices.ContainsFunc(tops, func(t string) bool { return t == p || paths.Within(t, p) }) {
			continue
		}
		items = unique(items)
		out = append(out, FileReport{Path: p, Version: v.versions[p], Certainty: v.state, Reason: v.reason, Items: items})
	}
	return out
}

// countKinds names files by their endings, the most frequent first: "12 .py and 3 .pyi files". More than two kinds are "other" ones.
func countKinds(files []string) string {
	count := map[string]int{}
	for _, f := range files {
		kind := filepath.Ext(f)
		if kind == "" {
			kind = filepath.Base(f)
		}
		count[kind]++
	}
	names := slices.SortedFunc(maps.Keys(count), func(a, b string) int { return cmp.Or(count[b]-count[a], strings.Compare(a, b)) })
	if len(names) > 2 {
		rest := len(files) - count[names[0]]
		return fmt.Sprintf("%d %s and %d other files", count[names[0]], names[0], rest)
	}
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = fmt.Sprintf("%d %s", count[name], name)
	}
	noun := " files"
	if len(files) == 1 {
		noun = " file"
	}
	return strings.Join(parts, " and ") + noun
}

// maxProjectFiles limits the files that are listed in a project, so that a question about a huge one ends.
const maxProjectFiles = 50_000

// skippedDir reports folders that hold no code of the project's own: dependencies, build output, hidden
// folders.
func skippedDir(name string) bool {
	return name == "node_modules" || name == "vendor" || name == "target" || name == "__pycache__" || len(name) > 1 && name[0] == '.'
}

// projectFiles lists the files below a folder, or the file itself. In a repository Git lists them, ignored
// files excluded; elsewhere a walk does.
func projectFiles(ctx context.Context, top string) []string {
	// core.fsmonitor off: the repository's configuration could name a program there.
	cmd := guard.CommandContext(ctx, guard.Helper, "git", "-c", "core.fsmonitor=", "ls-files", "-co", "--exclude-standard", "-z", "--", ".")
	cmd.Dir = top
	if b, err := cmd.Output(); err == nil {
		var out []string
		for name := range strings.SplitSeq(strings.TrimSuffix(string(b), "\x00"), "\x00") {
			if name != "" && len(out) < maxProjectFiles {
				out = append(out, filepath.Join(top, name))
			}
		}
		return out
	}
	var out []string
	_ = filepath.WalkDir(top, func(p string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil || len(out) >= maxProjectFiles:
			return filepath.SkipAll
		// A folder that cannot be read is left out; the rest is listed all the same.
		case err != nil:
			if d != nil && d.IsDir() {
				return filepath.SkipDir
			}
		case d.IsDir() && p != top && skippedDir(d.Name()):
			return filepath.SkipDir
		case d.Type().IsRegular():
			out = append(out, p)
		}
		return nil
	})
	return out
}
