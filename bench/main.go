// Command bench measures the real binary beside peers and physical limits, both in one run and in turns, and writes
// docs/BENCHMARKS.md. Nothing of it is a test: figures on a busy machine are figures of a busy machine, and the page
// says the load.
//
//	make bench                                        everything, less than twenty minutes on two cores; QUICK=1: a tenth of it
//	go run ./bench -only start,step -scale 0.1        two parts with a tenth of the rounds, printed, page updated
//	go run ./bench -profile DIR -only engine          pprof of this process and of each Pillion it starts
//
// A part is a file: start.go, step.go, stream.go … The plots go beside the page, into images/bench.
// limit is the agent that does nothing but what the wire demands: how fast any agent could be here.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"syscall"
)

// part is a section of the page.
type part struct {
	name, title, how string
	run              func(*bench)
	after            string // what follows from the figures
}

// parts in the order of the page.
var parts = []part{
	{"start", "Cold start and idle memory", howStart, (*bench).start, ""},
	{"step", "A step of the loop", howStep, (*bench).step, ""},
	{"stream", "Streaming", howStream, (*bench).stream, ""},
	{"sessions", "Sessions", howSessions, (*bench).sessions, ""},
	{"edit", "Edit of a large file", howEdit, (*bench).edit, ""},
	{"review", "Review of a large change", howReview, (*bench).review, ""},
	{"engine", "The edit engine", howEngine, (*bench).engine, ""},
	{"replay", "Real histories as edits", howReplay, (*bench).replay, afterReplay},
	{"diff", "Diff and patch", howDiff, (*bench).diff, ""},
	{"search", "Search", howSearch, (*bench).search, warmSearch},
	{"shell", "Shell", howShell, (*bench).shell, ""},
	{"draft", "A draft", howDraft, (*bench).draft, ""},
	{"questions", "Questions a day", howQuestions, (*bench).questions, afterQuestions},
	{"lsp", "Language servers", howLSP, (*bench).lsp, ""},
	{"verdict", "The verdict", howVerdict, (*bench).verdict, ""},
	{"tree", "The verdict on new, deleted and renamed files", howTree, (*bench).verdictTree, ""},
	{"large", "The verdict on a large module", howLarge, (*bench).largeVerdict, ""},
	{"memory", "Memory on a large module", howMemory, (*bench).serverMemory, ""},
	{"told", "The same edits, told by agents", howTold, (*bench).told, ""},
	{"mend", "The built-in model on real modules", howMend, (*bench).mend, ""},
	{"extend", "Extensions", howExtend, (*bench).extend, ""},
	{"loaded", "A loaded process", howLoaded, (*bench).loaded, ""},
	{"life", "A long life", howLife, (*bench).life, ""},
	{"grow-files", "Growth with files", howGrowFiles, (*bench).growFiles, ""},
	{"grow-messages", "Growth with messages", howGrowMessages, (*bench).growMessages, ""},
	{"grow-text", "Growth with lines and deltas", howGrowText, (*bench).growText, ""},
	{"vscode", "VS Code", howVSCode, (*bench).vscode, ""},
	{"nvim", "Neovim", howNvim, (*bench).nvim, ""},
	{"peers", "Beside OpenCode, Codex and Gemini CLI", howPeers, (*bench).peers, ""},
	{"rides", "Agents of other makers through Pillion", howRides, (*bench).rides, ""},
	{"sent", "What a first request sends", howSent, (*bench).sent, ""},
	{"bring", "What a project brings along", howBring, (*bench).bring, afterBring},
	{"opencode", "Beside OpenCode: more figures", howOpenCode, (*bench).opencode, ""},
}

// bench is one part's surroundings.
type bench struct {
	bin   string // the binary measured, a copy of its own
	limit string // the agent that does nothing
	dir   string // scratch, this part's own, removed afterwards
	scale float64
	ctx   context.Context

	chosen string // of the corpora, only those whose name contains it
	repeat bool   // of the parts verdict and tree: judge again what differed from the compiler
	kept   bool   // of the parts verdict and tree: measure nothing, compute the figures
	rows   []Row

	curves []Curve
	table  string // a part's own table, Markdown

	profile  string // a folder for profiles; "" makes none
	profiled int

	missing string // a peer that is not installed, and how to get it
}

// rounds is how often something is measured.
func (b *bench) rounds(n int) int { return max(3, int(float64(n)*b.scale)) }

func (b *bench) add(r Row) {
	b.rows = append(b.rows, r)
	fmt.Println("  " + r.Line())
}

func main() {
	only := flag.String("only", "", "parts to run, comma separated (default: all)")
	bin := flag.String("bin", "bin/pillion", "the binary to measure, as make build leaves it")
	scale := flag.Float64("scale", 1, "how many rounds, as a share of the usual number")
	project := flag.String("project", "", "of the parts verdict, tree, mend and peers: only what has this in its name; for mend also any modules, as PATH@VERSION,PATH@VERSION; for verdict and tree any projects, as go=PATH@VERSION,ts=NAME@VERSION:FOLDER,python=DEBIAN-PACKAGE,c=NAME@VERSION:FOLDER; the page is only printed")
	repeat := flag.Bool("repeat", false, "of the parts verdict and tree: judge again the kept cases whose verdict differed from the compiler's word, which is not asked for again, or was not final in time")
	kept := flag.Bool("kept", false, "of the parts verdict and tree: measure nothing, only compute the figures from the kept cases")
	quick := flag.Bool("quick", false, "a tenth of the rounds, the largest sizes left out, the page only printed: does it work, and roughly how fast?")
	page := flag.String("page", "docs/BENCHMARKS.md", "where the page goes; empty writes none")
	profile := flag.String("profile", "", "a folder for pprof's profiles; they cost time, so the page is not written")
	flag.Parse()
	if *quick {
		*scale, *page = 0.1, ""
	}
	if *profile != "" || *project != "" {
		*page = ""
	}
	if err := run(*only, *bin, *project, *scale, *repeat, *kept, *page, *profile); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(only, bin, project string, scale float64, repeat, kept bool, page, profile string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends a measurement that cannot be cancelled
	chosen := strings.Split(only, ",")
	for _, name := range chosen {
		if only != "" && !slices.ContainsFunc(parts, func(p part) bool { return p.name == name }) {
			return fmt.Errorf("there is no part %q; see go doc ./bench", name)
		}
	}
	dir, err := os.MkdirTemp("", "pillion-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ours, err := copyProgram(bin, filepath.Join(dir, "pillion"))
	if err != nil {
		return fmt.Errorf("%w; run make build first", err)
	}
	limit := filepath.Join(dir, "limit")
	if out, err := exec.CommandContext(ctx, "go", "build", "-ldflags", "-s -w", "-o", limit, "./bench/limit").CombinedOutput(); err != nil {
		return fmt.Errorf("building bench/limit: %w\n%s", err, out)
	}
	results := loadResults()
	var failed []string
	for _, p := range parts {
		if only != "" && !slices.Contains(chosen, p.name) {
			continue
		}
		fmt.Println(p.name)
		b := &bench{chosen: project, repeat: repeat, kept: kept, bin: ours, limit: limit, dir: filepath.Join(dir, p.name), scale: scale, ctx: ctx}
		if profile != "" {
			b.profile = filepath.Join(profile, p.name)
		}
		if err := os.MkdirAll(b.dir, 0o755); err != nil {
			return err
		}
		r := startResult(bin)
		if err := b.guarded(p.run); err != nil {
			fmt.Fprintln(os.Stderr, "  FAILED:", err)
			failed = append(failed, p.name)
			r.Failure = err.Error()
		}
		_ = os.RemoveAll(b.dir)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.Rows, r.Curves, r.Table, r.Missing = b.rows, b.curves, b.table, b.missing
		r.Rounds = scale
		r.finish()
		results[p.name] = r
		if page != "" { // at once: a later part may be interrupted
			if err := saveResults(results); err != nil {
				return err
			}
		}
	}
	if page != "" {
		if err := writePage(page, results); err != nil {
			return err
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("these parts could not be measured: %s", strings.Join(failed, ", "))
	}
	return nil
}

// failure carries what went wrong out of a measurement; guarded catches it.
type failure struct{ error }

func (b *bench) guarded(part func(*bench)) (err error) {
	defer func() {
		switch f := recover().(type) {
		case nil:
		case failure:
			err = f.error
		default:
			panic(f)
		}
	}()
	if b.profile != "" {
		check(os.MkdirAll(b.profile, 0o755))
		out, err := os.Create(filepath.Join(b.profile, "bench.pprof"))
		check(err)
		defer out.Close()
		check(pprof.StartCPUProfile(out))
		defer pprof.StopCPUProfile()
	}
	part(b)
	return nil
}

// check ends the part that is being measured. It must be called from the part's own goroutine.
func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// failf is check with a text.
func failf(format string, a ...any) { check(fmt.Errorf(format, a...)) }

// copyProgram keeps what is measured from being rebuilt meanwhile.
func copyProgram(from, to string) (string, error) {
	in, err := os.Open(from)
	if err != nil {
		return "", err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return "", err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return "", err
	}
	return to, out.Close()
}
