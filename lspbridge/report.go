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

// Diagnostics returns the problems of one file, as the person sees it, from all its servers. It returns within ctx's deadline (1.5 s
// without one).
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

// ProjectDiagnostics returns the problems of the whole project, or of the files below paths. It starts the servers for these files and
// waits for them as long as ctx allows. In addition to the files with problems it returns one report without items for each server: its
// Path is the server's root, and it says how certain that server's answer is. A missing server is reported only for a language in which
// many of these files are written.
func (v *verdicts) ProjectDiagnostics(ctx context.Context, paths ...string) []FileReport {
	if len(paths) == 0 {
		paths = []string{v.o.Root}
	}
	return v.projectReports(ctx, paths, true)
}

// RunningDiagnostics is ProjectDiagnostics by the running servers alone; it starts none. If any runs, the reports of servers are followed by
// those of servers that do not, linters left out: their files were not checked.
func (v *verdicts) RunningDiagnostics(ctx context.Context) []FileReport {
	return v.projectReports(ctx, []string{v.o.Root}, false)
}

// projectReports asks the servers about the files below tops; with start it also starts servers.
func (v *verdicts) projectReports(ctx context.Context, tops []string, start bool) []FileReport {
	ctx, cancel := budget(ctx)
	defer cancel()
	v.fleet.Flush(ctx)
	groups := map[*slot][]string{}
	var order []*slot
	total := 0 // files that have a server
	running := false
	for _, top := range tops {
		for _, f := range projectFiles(ctx, top) {
			slots := v.slotsFor(f)
			if len(slots) > 0 {
				total++
			}
			for _, s := range slots {
				runs := s.current() != nil
				if !start && !runs && s.spec.Extra {
					continue
				}
				running = running || runs
				if groups[s] == nil {
					order = append(order, s)
				}
				groups[s] = append(groups[s], f)
			}
		}
	}
	if !start && !running {
		return nil
	}
	count := map[string]int{} // a server's files, in all packages
	for _, s := range order {
		count[s.name()] += len(groups[s])
	}
	if start { // else nobody has asked about the files of servers that do not run
		for _, s := range order {
			// Servers without markers are for configuration and prose, of which every project has some.
			if n := count[s.name()]; n*fairShare >= total && len(s.spec.Markers) > 0 || n == total {
				v.notices.concern([]*slot{s})
			}
		}
	}
	// The server of most files first: its answer, or that it is missing, is what a person reads of all.
	slices.SortStableFunc(order, func(a, b *slot) int { return count[b.name()] - count[a.name()] })
	answers, absent := make([]serverVerdict, len(order)), make([]bool, len(order))
	var wg sync.WaitGroup
	for i, s := range order {
		if !start && s.current() == nil {
			answers[i], absent[i] = serverVerdict{state: change.Unavailable, reason: s.name() + " was not needed"}, true
			continue
		}
		wg.Go(func() {
			c, err := s.get(ctx)
			if err != nil {
				answers[i] = serverVerdict{state: failState(err), reason: err.Error()}
				absent[i] = answers[i].state == change.Unavailable
				return
			}
			answers[i] = c.report(ctx, groups[s], true)
		})
	}
	wg.Wait()
	return reportsOf(order, groups, answers, absent, tops)
}

// reportsOf makes the reports of what the servers have answered about their files: for each server one of its own, and one for each file below tops
// with problems. absent are the servers that did not run.
func reportsOf(order []*slot, groups map[*slot][]string, answers []serverVerdict, absent []bool, tops []string) []FileReport {
	var all []FileReport
	done := make([]bool, len(order))
	for i, s := range order {
		if done[i] {
			continue
		}
		a, root, files := answers[i], s.root, groups[s]
		if absent[i] {
			if s.spec.Extra {
				continue // without a linter that is not installed the others' answer is still complete
			}
			// In a project of several packages one server is absent several times. It is reported once, for the files of all.
			for j := i + 1; j < len(order); j++ {
				if absent[j] && order[j].name() == s.name() && answers[j].reason == a.reason {
					files = append(files, groups[order[j]]...)
					root = min(root, order[j].root) // of a folder and one in it, the outer
					done[j] = true
				}
			}
		}
		of, reason := countKinds(s.spec, files), a.reason
		if absent[i] {
			reason = of + " not checked: " + reason // other servers may have answered for the rest
		}
		all = append(all, FileReport{Path: root, Certainty: a.state, Reason: reason, Of: of})
		for p, f := range a.files {
			items := f.items()
			if len(items) > 0 && slices.ContainsFunc(tops, func(t string) bool { return t == p || paths.Within(t, p) }) {
				all = append(all, FileReport{Path: p, Version: a.versions[p], Certainty: a.state, Reason: a.reason, Items: unique(slices.Clone(items))})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b FileReport) int { return strings.Compare(a.Path, b.Path) })
	return all
}

// countKinds counts a server's files by extension, the most frequent first: "12 .py and 3 .pyi files". Kinds beyond the second are summed up
// as "other". A file that is the server's by its name, as Dockerfile.eex is, counts by its name.
func countKinds(row Server, files []string) string {
	count := map[string]int{}
	for _, f := range files {
		kind := strings.ToLower(filepath.Ext(f))
		if !slices.Contains(row.Extensions, kind) {
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

// maxProjectFiles limits how many files of a project are listed, so that a question about a huge project ends.
const maxProjectFiles = 50_000

// skippedDir reports whether a folder by this name holds no code of the project itself: dependencies, build output, hidden folders.
func skippedDir(name string) bool {
	return name == "node_modules" || name == "vendor" || name == "target" || name == "__pycache__" || len(name) > 1 && name[0] == '.'
}

// projectFiles lists the files below a folder, or the file itself. In a repository it uses git ls-files, without ignored files; elsewhere
// it walks the folders.
func projectFiles(ctx context.Context, top string) []string {
	// Turn core.fsmonitor off: the repository's configuration could name a program in it, which Git would run.
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
		// Skip a folder that cannot be read, and list the rest.
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
