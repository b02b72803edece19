package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools/change"
)

const howVerdict = "Real projects, fetched by version, are edited by a seeded mutator: a declaration renamed, a parameter added, a type changed, a line, an import or an export deleted, a name mistyped; " +
	"and comments and blank lines, which break nothing. The truth is the compiler's: `go list -export` with tests, `tsc --noEmit` (`tsc -b` of every tsconfig.json, where a project has more than one), pyright, `gcc` and `clang -fsyntax-only` over every file that an edit can reach, " +
	"each on a copy of its own, before and after the edit. `tsc` 5 and pyright watch their copy; where the verdict says anything else, they are run again from the start, and that counts. *Caught*: of the edits that break the build, those for which the verdict says so. *Named*: of the compiler's errors, those that the verdict has at their line. " +
	"*False alarm*: of the edits that break nothing, those with an error in the verdict. *False fresh*: edits that break the build and are called fresh without an error. The first edit of a project meets servers that have just been started. " +
	"Every case is kept in `.cache/verdict.jsonl` as it is measured, with the load of the machine; a measurement that was stopped goes on where it was."

// verdictLimit is how long a verdict may take; what is not final then counts as pending.
const verdictLimit = 90 * time.Second

// corpusDir is where a project is kept for the next run: fetching it and leaving out what does not compile takes longer than measuring it.
// It is not in .cache: pyright does not watch what is in a folder whose name begins with a dot, and a project in another's ignored folder
// would be ignored as well.
func corpusDir(c corpus) (string, error) {
	all := filepath.Join(os.TempDir(), "pillion-bench-corpus")
	if err := os.MkdirAll(all, 0o700); err != nil {
		return "", err
	}
	// This fails when another user has made the folder, whose contents would be compiled here.
	if err := os.Chmod(all, 0o700); err != nil {
		return "", err
	}
	name := strings.NewReplacer("/", "_", "@", "_", " ", "_", "'", "", "(", "", ")", "").Replace(strings.Fields(c.language)[0] + " " + c.name)
	return filepath.Join(all, name), nil
}

// fetchOnce fetches a project into dir, as shown to the servers and as compiled.
func fetchOnce(ctx context.Context, c corpus, dir string) (shown, compiled string, err error) {
	shown, compiled = filepath.Join(dir, "shown"), filepath.Join(dir, "compiled")
	whole := filepath.Join(dir, "whole")
	if _, err := os.Stat(whole); err == nil {
		return shown, compiled, nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return "", "", err
	}
	if err := c.fetch(ctx, shown); err != nil {
		return "", "", err
	}
	if err := os.CopyFS(compiled, os.DirFS(shown)); err != nil {
		return "", "", err
	}
	return shown, compiled, os.WriteFile(whole, nil, 0o600)
}

// verdicts measures edits of one project after another.
type verdicts struct {
	log    *caseLog
	commit string
	tree   bool // files are made, deleted and renamed, and each verdict is measured again after the write
	repeat bool // cases whose verdict differs from the kept truth, or was not final in time, are judged again; the truth stays
	print  func(string)
}

// run judges n edits of a project: those that are not in the log, or with repeat those that differ from the compiler.
func (r *verdicts) run(ctx context.Context, c corpus, dir string, n int, bins []string) error {
	shown, compiled, err := fetchOnce(ctx, c, dir)
	if err != nil {
		return err
	}
	if shown, err = filepath.EvalSymlinks(shown); err != nil {
		return err
	}
	kind := strings.Fields(c.language)[0]
	make := mutants
	if r.tree {
		make = treeMutants
	}
	edits, err := make(shown, kind, n, 1)
	if err != nil {
		return err
	}
	all := edits
	edits = slices.DeleteFunc(slices.Clone(edits), func(e mutant) bool {
		was, known := r.log.cases[caseKey(c.language, c.name, e.id())]
		if after, ok := r.log.cases[caseKey(c.language, c.name, e.id()+writtenID)]; r.repeat && ok && after.differs() {
			return false
		}
		return known && !(r.repeat && (was.differs() || was.Certainty == change.Pending))
	})
	if len(edits) == 0 {
		return nil
	}
	compiler := &compiledCopy{corpus: c, dir: compiled}
	defer compiler.close()
	// A run that was killed has left an edit behind.
	for _, e := range all {
		if err := errors.Join(e.takeBack(compiled), e.takeBack(shown)); err != nil {
			return err
		}
	}
	// clangd keeps its index in the project; here it shall be as in a project that was never opened.
	if err := os.RemoveAll(filepath.Join(shown, ".cache")); err != nil {
		return err
	}
	m := lspbridge.New(lspbridge.Options{Root: shown, Bin: bins, NoWatch: true, Idle: -1, Log: slog.New(slog.DiscardHandler)})
	defer m.Close(context.WithoutCancel(ctx))
	for i, e := range edits {
		got := verdictCase{Language: c.language, Project: c.name, Edit: e.id(), File: e.file, Kind: e.kind, First: i == 0, Commit: r.commit}
		if err := r.judge(ctx, compiler, e, &got, shown, func(ctx context.Context) lspbridge.Delta { return m.Check(ctx, e.proposals(shown)) }); err != nil {
			return err
		}
		if !r.tree || got.Truth == nil && got.refused {
			continue
		}
		after := got
		after.Edit, after.Written, after.First, after.Introduced = got.Edit+writtenID, true, false, nil
		if err := e.put(shown); err != nil {
			return err
		}
		err := r.judge(ctx, compiler, e, &after, shown, func(ctx context.Context) lspbridge.Delta {
			return m.Changed(ctx, e.proposals(shown))
		})
		if err = errors.Join(err, e.takeBack(shown)); err != nil {
			return err
		}
		limited, cancel := context.WithTimeout(ctx, verdictLimit)
		m.Changed(limited, e.reverse().proposals(shown))
		cancel()
	}
	return nil
}

// writtenID is added to the id of an edit, for the case of the verdict after the write.
const writtenID = " written"

// judge measures one verdict and keeps it with the compiler's word. An edit about which the compiler says nothing is left out.
func (r *verdicts) judge(ctx context.Context, compiler *compiledCopy, e mutant, got *verdictCase, shown string, ask func(context.Context) lspbridge.Delta) error {
	began := time.Now()
	v := final(ctx, got.Written, ask)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	got.MS, got.Certainty, got.Reason = ms(time.Since(began)), v.Certainty, v.Reason
	got.Load, _ = strconv.ParseFloat(load(), 64)
	for _, p := range v.Introduced {
		if rel, err := filepath.Rel(shown, p.Path); err == nil && p.IsError() {
			got.Introduced = append(got.Introduced, finding{filepath.ToSlash(rel), p.Line, p.Message})
		}
	}
	key := caseKey(got.Language, got.Project, strings.TrimSuffix(got.Edit, writtenID))
	if was, known := r.log.cases[key]; known {
		got.Truth, got.CompilerMS = was.Truth, was.CompilerMS
	} else if err := compiler.judge(ctx, e, got); errors.As(err, new(refusal)) && compiler.asked {
		r.print(fmt.Sprintf("%s %s: %s is left out: %v", got.Language, got.Project, e.kind, err))
		got.refused = true
		return nil
	} else if err != nil {
		return err
	}
	if err := r.log.add(*got); err != nil {
		return err
	}
	if got.differs() {
		r.print(got.String())
	}
	return nil
}

// String says how a verdict differs from the compiler's word.
func (c verdictCase) String() string {
	what := fmt.Sprintf("%s %s %s: %s", c.Language, c.Project, c.File, c.Kind)
	if c.Written {
		what += ", written"
	}
	switch {
	case c.alarm():
		return fmt.Sprintf("false alarm: %s: %v", what, c.Introduced[0])
	case !c.caught():
		return fmt.Sprintf("missed (%s %s): %s: %v", c.Certainty, c.Reason, what, c.Truth[0])
	}
	return fmt.Sprintf("named %d of %d (%s %s): %s", c.named(), len(c.Truth), c.Certainty, c.Reason, what)
}

// compiledCopy is a project's copy with its compiler.
type compiledCopy struct {
	corpus
	dir    string
	before []finding // nil until asked; of the project as it is
	asked  bool
	stands *standing
	// standsBefore are the errors before, of the standing compiler: the messages of the two may differ in detail.
	standsBefore []finding
}

func (c *compiledCopy) close() {
	if c.stands != nil {
		c.stands.stop()
		c.stands.clear()
		c.stands = nil
	}
}

// judge finds the compiler's word on an edit. The verdict is known: where a standing compiler agrees with it, no other is asked.
func (c *compiledCopy) judge(ctx context.Context, e mutant, got *verdictCase) (err error) {
	if err := c.prepare(ctx); err != nil {
		return err
	}
	if err := e.put(c.dir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.takeBack(c.dir)) }()
	if c.stands != nil {
		after, stop := c.stands.errors(ctx)
		if stop == nil {
			got.Truth = introduced(c.standsBefore, after)
			if !got.differs() {
				return nil
			}
		} else {
			c.close() // the next edit starts it again
		}
	}
	if c.stands != nil {
		c.stands.clear()
	}
	if err := c.baseline(ctx, e); err != nil {
		return err
	}
	began := time.Now()
	only := e.file
	if e.made || e.gone || len(e.more) > 0 {
		only = "" // other files may find or miss a file now
	}
	after, err := c.truth(ctx, c.dir, only)
	got.CompilerMS = ms(time.Since(began))
	got.Truth = introduced(c.before, after)
	return err
}

// baseline asks the compiler for the errors without the edit.
func (c *compiledCopy) baseline(ctx context.Context, e mutant) (err error) {
	if c.asked {
		return nil
	}
	if err := e.takeBack(c.dir); err != nil {
		return err
	}
	if c.before, err = c.truth(ctx, c.dir, ""); err != nil {
		return fmt.Errorf("%s does not compile as it is: %w", c.name, err)
	}
	c.asked = true
	return e.put(c.dir)
}

// prepare starts the standing compiler, if this one can watch.
func (c *compiledCopy) prepare(ctx context.Context) (err error) {
	if c.watch == nil || c.stands != nil {
		return nil
	}
	if c.stands, err = c.watch(ctx, c.dir); err != nil {
		return err
	}
	if c.standsBefore, err = c.stands.errors(ctx); err != nil && ctx.Err() == nil {
		c.close()
		c.watch = nil // the compiler is run for each edit then
		return nil
	}
	return err
}

// final asks until the answer is final; of what was written only once, because a second question would compare with the state after the write.
func final(ctx context.Context, written bool, ask func(context.Context) lspbridge.Delta) change.Verdict {
	ctx, cancel := context.WithTimeout(ctx, verdictLimit)
	defer cancel()
	for {
		v := ask(ctx).Verdict
		if v.Certainty != change.Pending || written || ctx.Err() != nil {
			return v
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// tally is what came of the edits of a language.
type tally struct {
	edits, breaking, caught int
	errors, named           int
	harmless, alarms        int
	falseFresh              int
	projects                map[string]bool
	certainty               map[change.Certainty]int
	quiet, busy, compiler   Samples // ms
	first                   Samples // ms
	busyLoad                Samples
}

// quietLoad is the load up to which a core was free for the measurement.
var quietLoad = float64(runtime.NumCPU()) + 0.5

func (t *tally) add(c verdictCase) {
	if t.certainty == nil {
		t.certainty, t.projects = map[change.Certainty]int{}, map[string]bool{}
	}
	t.edits++
	t.projects[c.Project] = true
	t.certainty[c.Certainty]++
	switch {
	case c.First:
		t.first = append(t.first, c.MS)
	case c.Load > quietLoad:
		t.busy, t.busyLoad = append(t.busy, c.MS), append(t.busyLoad, c.Load)
	default:
		t.quiet = append(t.quiet, c.MS)
	}
	if c.CompilerMS > 0 {
		t.compiler = append(t.compiler, c.CompilerMS)
	}
	if !c.breaks() {
		t.harmless++
		if c.alarm() {
			t.alarms++
		}
		return
	}
	t.breaking++
	t.errors += len(c.Truth)
	t.named += c.named()
	switch {
	case c.caught():
		t.caught++
	case c.Certainty == change.Fresh:
		t.falseFresh++
	}
}

// corpusServers are where the servers of the corpora's languages are, and the compilers.
func corpusServers() (bins []string, ts7 string, with compilers) {
	servers := filepath.Join(cacheDir(), "servers")
	bins = []string{filepath.Join(cacheDir(), "bin"), filepath.Join(servers, "node_modules", ".bin"), filepath.Join(servers, "more", "node_modules", ".bin")}
	ts7 = filepath.Join(servers, "ts7", "node_modules", ".bin")
	program := func(dir, name string) string {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err != nil {
			return ""
		}
		return path
	}
	php, _ := exec.LookPath("php")
	return bins, ts7, compilers{program(bins[1], "tsc"), program(ts7, "tsc"), program(bins[1], "pyright"), php}
}

// verdict measures the verdict against the compilers.
func (b *bench) verdict() {
	_, _, with := corpusServers()
	b.verdictsOn(&verdicts{}, corpora(with), "verdict")
	if clang == "" {
		b.missing = "clang, as a second compiler of C: it is not installed, so an error of C is what gcc alone rejects; `apt-get install clang` gets it."
	}
}

// verdictsOn measures the projects of a list, or those that were chosen instead, and keeps the cases in a file of this name.
func (b *bench) verdictsOn(r *verdicts, list []corpus, kept string) {
	bins, ts7, with := corpusServers()
	if strings.Contains(b.chosen, "=") {
		// Projects that are not in the list: what was mended after them would make the page's figures look better than they are.
		var err error
		list, err = with.others(b.chosen)
		check(err)
		b.chosen = ""
		kept += "-others"
	}
	log, err := openCases(filepath.Join(cacheDir(), kept+".jsonl"))
	check(err)
	r.log, r.commit, r.repeat, r.print = log, versionOf(b.bin), b.repeat, func(line string) { fmt.Fprintln(os.Stderr, "  "+line) }
	for _, c := range list {
		if b.kept || !strings.Contains(c.language+" "+c.name, b.chosen) {
			continue
		}
		use := bins
		if c.language == "ts 7" {
			use = append([]string{ts7}, bins...)
		}
		dir, err := corpusDir(c)
		check(err)
		began := time.Now()
		err = r.run(b.ctx, c, dir, b.rounds(c.edits), use)
		check(b.ctx.Err())
		if err != nil {
			fmt.Fprintf(os.Stderr, "  %s is left out: %v\n", c.name, err)
			continue
		}
		fmt.Fprintf(os.Stderr, "  %s %s: %.0f s\n", c.language, c.name, time.Since(began).Seconds())
	}
	b.verdictRows(log)
}

// verdictRows adds the figures of all cases in the log.
func (b *bench) verdictRows(log *caseLog) {
	by := map[string]*tally{}
	for _, k := range log.order {
		c := log.cases[k]
		if !strings.Contains(c.Language+" "+c.Project, b.chosen) {
			continue
		}
		name := c.Language
		if c.Written {
			name += ", written"
		}
		if by[name] == nil {
			by[name] = &tally{}
		}
		by[name].add(c)
	}
	var table strings.Builder
	table.WriteString("| language | projects | edits | breaking | caught | errors named | harmless | false alarms | false fresh | fresh | partial | pending | unavailable |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	var names []string
	for _, language := range verdictLanguages {
		names = append(names, language, language+", written")
	}
	for _, language := range names {
		t := by[language]
		if t == nil {
			continue
		}
		share := func(c change.Certainty) string {
			return fmt.Sprintf("%.0f %%", 100*float64(t.certainty[c])/float64(t.edits))
		}
		fmt.Fprintf(&table, "| %s | %d | %d | %d | %d | %d of %d | %d | %d | %d | %s | %s | %s | %s |\n", language, len(t.projects), t.edits, t.breaking, t.caught, t.named, t.errors, t.harmless, t.alarms, t.falseFresh,
			share(change.Fresh), share(change.Partial), share(change.Pending), share(change.Unavailable))
		percent := func(what string, n, of int) {
			b.add(Row{What: language + ": " + what, Unit: "%", Ours: Samples{100 * float64(n) / float64(max(1, of))}, Note: fmt.Sprintf("%d of %d", n, of)})
		}
		percent("breaking edits caught", t.caught, t.breaking)
		percent("errors named", t.named, t.errors)
		percent("false alarms in edits that break nothing", t.alarms, t.harmless)
		b.add(Row{What: language + ": false fresh (promised: none)", Ours: Samples{float64(t.falseFresh)}, Target: Target{AtMost: 0.5}})
		timed := func(what string, s, beside Samples) {
			if len(s) > 0 {
				b.add(Row{What: language + ": to the verdict, " + what, Unit: "ms", Ours: s, Beside: beside, BesideName: cmp.Or(map[bool]string{true: "the compiler"}[len(beside) > 0], "")})
			}
		}
		timed("servers just started", t.first, nil)
		timed("servers warm", t.quiet, t.compiler)
		if len(t.busy) > 0 {
			timed(fmt.Sprintf("servers warm, under load (median %.1f)", t.busyLoad.Median()), t.busy, nil)
		}
	}
	b.table = table.String()
}

// cacheDir is where set-up puts servers and tools.
func cacheDir() string {
	abs, err := filepath.Abs(".cache")
	if err != nil {
		return ".cache"
	}
	return abs
}
