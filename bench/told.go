package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/agent/provider/wiretest"
	"github.com/pillion-dev/pillion/tools/change"
)

const howTold = "Breaking edits of the part `verdict`, those that the compiler rejects, made by the agents themselves: a scripted model reads the file, makes the edit with the agent's own tool, and takes it back. Each agent works in a copy of the project of its own and has language servers: the same " +
	"programs, found in PATH, with `\"lsp\": true` for OpenCode, which has them off unless a person turns them on. *Before the write* is what a person can read while the agent waits for permission; the person takes three seconds, or until the verdict is there. " +
	"*After it* is what the edit's result tells the model. *Caught*: an error of the edit is told, at any line. *Named*: of the compiler's errors, those told at their line. " +
	"So that a silent agent is not one whose server had not started yet, each project begins with an edit that plainly breaks a file, repeated until the agent tells of it, and ends with another; an agent that does not tell of that is not measured in this project. " +
	"Crush (the Go module proxy refuses its module) and Serena (PyPI is not reached) could not be had on the machine that measured."

// toldReading is how long a person waits for a verdict before they allow a proposal.
const toldReading = 3 * time.Second

// toldTries is how often the first edit of a project is repeated until an agent tells of its error.
const toldTries = 30

// toldProjects are small and have no requirements of their own: no agent has to download any.
var toldProjects = []string{"go github.com/google/uuid@v1.6.0", "go github.com/gorilla/mux@v1.8.1", "ts 5 redux@5.0.1", "ts 5 immer@10.1.1"}

// toldEach is how many edits of a project are made.
const toldEach = 6

// quotation is the shortest run of whole lines around an edit that occurs once in the old text, before and after the edit.
func quotation(old, text string) (before, after string) {
	start := 0
	for start < min(len(old), len(text)) && old[start] == text[start] {
		start++
	}
	tail := 0
	for tail < min(len(old), len(text))-start && old[len(old)-1-tail] == text[len(text)-1-tail] {
		tail++
	}
	from, to := lineStart(old, start), lineEnd(old, len(old)-tail)
	for strings.Count(old, old[from:to]) > 1 || from == to {
		from, to = lineStart(old, max(0, from-1)), lineEnd(old, min(len(old), to+1))
		if from == 0 && to == len(old) {
			break
		}
	}
	return old[from:to], text[from : len(text)-(len(old)-to)]
}

func lineStart(s string, at int) int { return strings.LastIndexByte(s[:at], '\n') + 1 }

func lineEnd(s string, at int) int {
	if at > 0 && s[at-1] == '\n' {
		return at
	}
	if n := strings.IndexByte(s[at:], '\n'); n >= 0 {
		return at + n + 1
	}
	return len(s)
}

// plainMistake is a text with an error that no server of the language can miss.
func plainMistake(language, text string, n int) string {
	if language == "go" {
		return fmt.Sprintf("%s\nvar qxProbe%d int = qxNothing%d\n", text, n, n)
	}
	return fmt.Sprintf("%s\nexport const qxProbe%d: number = qxNothing%d;\n", text, n, n)
}

var (
	toldFile  = regexp.MustCompile(`<diagnostics file="([^"]+)">((?s).*?)</diagnostics>`)
	toldPlace = regexp.MustCompile(`(?m)^ERROR \[(\d+):\d+\] (.*)$`)
)

// toldErrors are the errors in the text that an edit's result has for the model. Pillion writes them as OpenCode does.
func toldErrors(text, dir string) (all []finding) {
	for _, f := range toldFile.FindAllStringSubmatch(text, -1) {
		rel, err := filepath.Rel(dir, f[1])
		if err != nil {
			continue
		}
		for _, p := range toldPlace.FindAllStringSubmatch(f[2], -1) {
			line, _ := strconv.Atoi(p[1])
			all = append(all, finding{filepath.ToSlash(rel), line, p[2]})
		}
	}
	return all
}

// shownVerdict finds a verdict in a message of an agent to its editor. ok is false without one, and while it is not final.
func shownVerdict(line []byte, dir string) (errs []finding, ok bool) {
	var tree any
	if json.Unmarshal(line, &tree) != nil {
		return nil, false
	}
	var visit func(any)
	visit = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, x := range v {
				visit(x)
			}
		case map[string]any:
			if raw, found := v["diagnostics"].(map[string]any); found && raw["certainty"] != nil {
				b, _ := json.Marshal(raw)
				var d change.Verdict
				if json.Unmarshal(b, &d) == nil && d.Certainty != change.Pending {
					ok = true
					for _, p := range d.Introduced {
						if rel, err := filepath.Rel(dir, p.Path); err == nil && p.IsError() {
							errs = append(errs, finding{filepath.ToSlash(rel), p.Line, p.Message})
						}
					}
				}
			}
			for _, x := range v {
				visit(x)
			}
		}
	}
	visit(tree)
	return errs, ok
}

// told is what an agent told of one edit.
type told struct {
	before, after []finding
	ms            float64 // from the model's call to its next request, without the person's reading
}

// teller is an agent in a copy of a project.
type teller struct {
	peer
	c   *client
	m   *model
	dir string
}

// edit has the agent make an edit and take it back.
func (t *teller) edit(ctx context.Context, e mutant) (told, error) {
	path := filepath.Join(t.dir, filepath.FromSlash(e.file))
	was, now := quotation(e.old, e.text)
	var got told
	var mu sync.Mutex // guards what follows, and got.before
	var read time.Duration
	asked := false
	verdict := make(chan struct{})
	see := func(line []byte) {
		errs, final := shownVerdict(line, t.dir)
		errs = append(errs, toldErrors(strings.NewReplacer(`\n`, "\n", `\"`, `"`).Replace(string(line)), t.dir)...)
		mu.Lock()
		defer mu.Unlock()
		got.before = append(got.before, errs...)
		if final {
			select {
			case <-verdict:
			default:
				close(verdict)
			}
		}
	}
	t.c.beforeAnswering(func(params json.RawMessage) {
		t.c.listen(func(line []byte, _ time.Time) { see(line) })
		began := time.Now()
		see(params)
		select {
		case <-verdict:
		case <-time.After(toldReading):
		case <-ctx.Done():
		}
		t.c.listen(nil)
		mu.Lock()
		asked, read = true, time.Since(began)
		mu.Unlock()
	})
	defer t.c.beforeAnswering(nil)
	session := t.c.newSession(t.dir)
	answer, took, err := t.turn(session, t.read(path), t.peer.edit(path, was, now))
	if err != nil {
		return got, err
	}
	mu.Lock()
	got.ms = took - ms(read)
	mu.Unlock()
	if text, err := os.ReadFile(path); err == nil && string(text) == e.old {
		// Nothing was written: Pillion first sends errors back to the model. It asks the person when the model makes the same edit again.
		mu.Lock()
		got.before = append(got.before, refusedFor(answer)...)
		mu.Unlock()
		if answer, _, err = t.turn(session, t.peer.edit(path, was, now)); err != nil {
			return got, err
		}
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != e.text {
		return got, fmt.Errorf("%s did not make the edit of %s: %s", t.name, e.file, answer)
	}
	got.after = toldErrors(answer, t.dir)
	mu.Lock()
	defer mu.Unlock()
	if !asked {
		return got, fmt.Errorf("%s did not ask before its edit of %s", t.name, e.file)
	}
	t.c.beforeAnswering(nil)
	if answer, _, err = t.turn(session, t.peer.edit(path, now, was)); err != nil {
		return got, err
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != e.old {
		return got, fmt.Errorf("%s did not take back its edit of %s: %s", t.name, e.file, answer)
	}
	return got, nil
}

// turn has the agent take some steps. It returns what the model was told of the last one, and how long that took.
func (t *teller) turn(session string, steps ...wiretest.Step) (answer string, took float64, err error) {
	for _, s := range append(steps, says) {
		t.m.Add(s)
	}
	t.m.take()
	if _, err := t.c.prompt(session, "do it"); err != nil {
		return "", 0, err
	}
	if left := t.m.Left(); left > 0 {
		t.m.Drop()
		return "", 0, fmt.Errorf("%s left %d steps", t.name, left)
	}
	all, times := t.m.Requests(), gaps(t.m.take())
	if len(times) < len(steps) {
		return "", 0, fmt.Errorf("%s sent %d requests", t.name, len(times)+1)
	}
	return all[len(all)-1].LastText(), times[len(steps)-1], nil
}

var refusedPlace = regexp.MustCompile(`(?m)^([^\s:]+):(\d+):\d+: (.*)$`)

// refusedFor are the errors in Pillion's answer to a call for which it did not ask yet.
func refusedFor(text string) []finding { return parseFindings([]byte(text), "", refusedPlace) }

// serves repeats an edit with a plain mistake until the agent tells of it, and returns how often that took.
func (t *teller) serves(ctx context.Context, language string, of mutant, from int) (int, error) {
	for n := range toldTries {
		e := mutant{edited: edited{file: of.file, old: of.old, text: plainMistake(language, of.old, from+n)}, kind: "plain"}
		got, err := t.edit(ctx, e)
		if err != nil {
			return 0, err
		}
		if slices.ContainsFunc(got.after, func(f finding) bool { return strings.Contains(f.Text, fmt.Sprint("qxNothing", from+n)) }) {
			return n + 1, nil
		}
	}
	return 0, fmt.Errorf("%s told nothing of an undeclared name in %d edits", t.name, toldTries)
}

// toldTally is what an agent told of all edits of a language.
type toldTally struct {
	edits, errors                                      int
	caughtBefore, namedBefore, caughtAfter, namedAfter int
	took                                               Samples // ms
	untilServed                                        Samples // edits until the first one was told
}

func (s *toldTally) add(truth []finding, got told) {
	count := func(told []finding, caught, named *int) {
		c := verdictCase{Truth: truth, Introduced: told}
		if c.caught() {
			*caught++
		}
		*named += c.named()
	}
	s.edits++
	s.errors += len(truth)
	count(got.before, &s.caughtBefore, &s.namedBefore)
	count(got.after, &s.caughtAfter, &s.namedAfter)
	s.took = append(s.took, got.ms)
}

// told compares what agents tell of the same breaking edits.
func (b *bench) told() {
	m := newModel()
	defer m.close()
	servers := filepath.Join(cacheDir(), "servers", "node_modules")
	path := "PATH=" + strings.Join([]string{filepath.Join(cacheDir(), "bin"), filepath.Join(servers, ".bin"), os.Getenv("PATH")}, string(os.PathListSeparator))
	config := m.config()
	delete(config, "lsp")
	config["small_model"] = "scripted/title"
	ours := b.ourselves(m)
	ours.env = append(b.home("told", config), path)
	agents := []peer{ours}
	if theirs, ok := b.peerOpenCode(m); ok {
		theirs.env = append(b.opencodeHomeWith(m, true), path)
		agents = append(agents, theirs)
	} else {
		b.missing = "OpenCode is not installed; `scripts/setup-peers.sh` gets it."
	}
	tallies := map[string]*toldTally{}
	with := compilers{tsc: filepath.Join(servers, ".bin", "tsc")}
	log, err := openCases(filepath.Join(cacheDir(), "verdict.jsonl"))
	check(err)
	for _, c := range corpora(with) {
		if !slices.Contains(toldProjects, c.language+" "+c.name) || !strings.Contains(c.language+" "+c.name, b.chosen) {
			continue
		}
		if err := b.toldIn(c, m, log, agents, tallies, filepath.Join(servers, "typescript")); err != nil {
			check(b.ctx.Err())
			fmt.Fprintf(os.Stderr, "  %s is left out: %v\n", c.name, err)
		}
	}
	var table strings.Builder
	table.WriteString("| agent | language | breaking edits | caught before the write | errors named | caught after it | errors named | a step, ms: median / p95 | edits until its servers told of the first |\n|---|---|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, language := range verdictLanguages {
		for _, a := range agents {
			t := tallies[a.name+language]
			if t == nil {
				continue
			}
			fmt.Fprintf(&table, "| %s | %s | %d | %d | %d of %d | %d | %d of %d | %s / %s | %.0f |\n", a.name, language, t.edits, t.caughtBefore, t.namedBefore, t.errors, t.caughtAfter, t.namedAfter, t.errors,
				figure(t.took.Median()), figure(t.took.P95()), t.untilServed.Median())
		}
	}
	if len(tallies) == 0 {
		failf("no project could be measured")
	}
	b.table = table.String()
	fmt.Print(b.table)
}

// toldIn measures the agents in one project. What one of them could not be measured with counts for none.
func (b *bench) toldIn(c corpus, m *model, log *caseLog, agents []peer, tallies map[string]*toldTally, typescript string) error {
	dir, err := corpusDir(c)
	if err != nil {
		return err
	}
	shown, compiled, err := fetchOnce(b.ctx, c, dir)
	if err != nil {
		return err
	}
	edits, err := mutants(shown, strings.Fields(c.language)[0], c.edits, 1)
	if err != nil {
		return err
	}
	type breaking struct {
		mutant
		truth []finding
	}
	var some []breaking
	compiler := &compiledCopy{corpus: c, dir: compiled}
	defer compiler.close()
	for _, e := range edits {
		was, known := log.cases[caseKey(c.language, c.name, e.id())]
		if !known {
			if err := compiler.judge(b.ctx, e, &was); err != nil {
				return err
			}
		}
		if was.breaks() && len(some) < max(2, int(toldEach*b.scale)) {
			some = append(some, breaking{e, was.Truth})
		}
	}
	got := map[string][]told{}
	tries := map[string]int{}
	for i, a := range agents {
		cwd := b.project(fmt.Sprintf("told-%d-%s", i, filepath.Base(dir)))
		if err := os.CopyFS(cwd, os.DirFS(shown)); err != nil {
			return err
		}
		if c.language != "go" { // OpenCode starts TypeScript's server only in a project that has the compiler among its packages
			if err := os.MkdirAll(filepath.Join(cwd, "node_modules"), 0o755); err != nil {
				return err
			}
			if err := os.Symlink(typescript, filepath.Join(cwd, "node_modules", "typescript")); err != nil {
				return err
			}
		}
		if out, err := exec.CommandContext(b.ctx, "git", "-C", cwd, "init", "-q").CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		t := &teller{peer: a, c: b.agent(a.env, a.command[0], a.command[1:]...), m: m, dir: cwd}
		err := func() error {
			defer t.c.close()
			t.c.initialize()
			if tries[a.name], err = t.serves(b.ctx, c.language, some[0].mutant, 0); err != nil {
				return err
			}
			for _, e := range some {
				one, err := t.edit(b.ctx, e.mutant)
				if err != nil {
					return err
				}
				got[a.name] = append(got[a.name], one)
			}
			_, err := t.serves(b.ctx, c.language, some[0].mutant, toldTries)
			return err
		}()
		if err != nil {
			return err
		}
	}
	for _, a := range agents {
		t := tallies[a.name+c.language]
		if t == nil {
			t = &toldTally{}
			tallies[a.name+c.language] = t
		}
		t.untilServed = append(t.untilServed, float64(tries[a.name]))
		for i, one := range got[a.name] {
			t.add(some[i].truth, one)
			fmt.Fprintf(os.Stderr, "  %s, %s %s: %s: before %d, after %d of %d named, %.0f ms\n", a.name, c.name, some[i].file, some[i].kind,
				(&verdictCase{Truth: some[i].truth, Introduced: one.before}).named(), (&verdictCase{Truth: some[i].truth, Introduced: one.after}).named(), len(some[i].truth), one.ms)
		}
	}
	return nil
}
