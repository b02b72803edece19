package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/pillion-dev/pillion/tools/shell/programs"
	shellrun "github.com/pillion-dev/pillion/tools/shell/run"
	"github.com/pillion-dev/pillion/tools/shell/scan"
)

const howShell = "tools/shell's analysis alone: a typical command, everyday ones, and commands of 64 KB made to be slow. Starting: `bash` with `true` through " +
	"`pillion tool call --jsonl` (analysis, rules, run, output) and tools/shell's Runner alone, beside a bare `bash -c true`. A command that prints 100 MB: the processor time of it and of who reads it, beside the " +
	"same pipe with its output thrown away, and in a file. The Runner keeps the whole output in a file, as OpenCode does: the model is told to search it there. " +
	"That is as many copies as the file has, so twice the price of throwing it away is out of reach while it is kept; what does not pass through Pillion's memory is moved in the kernel (splice)."

func (b *bench) shell() {
	dir := b.project("shell")
	for i := range 100 {
		b.write(filepath.Join(dir, fmt.Sprintf("a%d/b%d/file.txt", i/5, i%5)), "x\n")
	}
	analyse := func(text string) *scan.Analysis {
		return programs.Analyze(scan.Request{Command: text, Dir: dir, Root: dir, Home: b.dir, Getenv: os.LookupEnv})
	}
	const typical = `cd sub && git status --short | grep -v '^??' > out.txt && go test ./... 2>&1 | tail -n 20`
	var s Samples
	analyse(typical)
	for range b.rounds(500) {
		s = append(s, timed(func() { analyse(typical) }))
	}
	b.add(Row{What: "analysis of a typical command", Unit: "ms", Ours: s, Target: Target{AtMost: 1}})

	fill := func(s string) string { return strings.Repeat(s, (scan.MaxCommand-1)/len(s)) }
	nest := func(open, body, end string, n int) string {
		return strings.Repeat(open, n) + body + strings.Repeat(end, n)
	}
	hostile := []struct{ name, text string }{
		{"commands", fill("echo a b; ")},
		{"a pipeline", "true" + fill(" | cat")},
		{"paths", "cat" + fill(" ../../x")},
		{"nested substitutions", nest("$(", "true", ")", 15_000)},
		{"nested groups", nest("{ ", "true", "; }", 10_000)},
		{"nested subshells", nest("(", "true", ")", 30_000)},
		{"nested quotes", nest(`"$(echo `, "x", `)"`, 5_000)},
		{"open brackets", fill("( [[ {")},
		{"backquotes", fill("`")},
		{"heredocs", fill("cat <<E\nx\nE\n")},
		{"one word", "echo " + fill("x")[:60_000]},
		{"globs", "ls " + fill("*/")[:60_000]},
		{"wrappers", fill("sudo env nice ")[:60_000] + " true"},
		{"redirects", "true" + fill(" >a")},
		{"assignments", fill("a=$b ")},
		{"brace expansion", "echo " + fill("{a,b}")[:60_000]},
		{"case", "case x in " + fill("a) b;; ")[:60_000] + " esac"},
	}
	worst, name := 0.0, ""
	for _, h := range hostile {
		best := timed(func() { analyse(h.text) })
		for range 2 {
			best = min(best, timed(func() { analyse(h.text) }))
		}
		if best > worst {
			worst, name = best, h.name
		}
	}
	b.add(Row{What: fmt.Sprintf("worst of %d hostile commands of 64 KB", len(hostile)), Unit: "ms", Ours: Samples{worst}, Target: Target{AtMost: 100}, Note: name})

	n := max(1000, int(100_000*b.scale))
	for range n / 2 {
		analyse(typical)
	}
	runtime.GC()
	before, err := memoryOf(os.Getpid())
	check(err)
	for range n {
		analyse(typical)
	}
	runtime.GC()
	after, err := memoryOf(os.Getpid())
	check(err)
	b.add(Row{What: fmt.Sprintf("growth over %d analyses", n), Unit: "MB", Ours: Samples{max(0, after.rss-before.rss)}, Target: Target{AtMost: 2}, Note: "resident; 2 MB would be 20 bytes each"})

	l := b.toolCalls(b.home("shell", map[string]any{"lsp": false}), dir)
	defer l.close()
	bash, err := shellrun.Detect("")
	check(err)
	var r shellrun.Runner
	defer r.Close()
	got := inTurns(b.rounds(100), func() float64 {
		_, took := l.call("bash", map[string]any{"command": "true", "description": "nothing"})
		return took
	}, func() float64 {
		return timed(func() { check(exec.CommandContext(b.ctx, "bash", "-c", "true").Run()) })
	}, func() float64 {
		return timed(func() {
			_, err := r.Run(context.Background(), shellrun.Command{Text: "true", Shell: bash, Dir: dir})
			check(err)
		})
	})
	b.add(Row{What: "bash tool, true", Unit: "ms", Ours: got[0], Beside: got[1], BesideName: "bash -c true", Target: Target{Over: 3}})
	// The output of a command is thrown away, written to a file, or read by the Runner, which keeps all of it.
	const prints = "yes | head -c 100M"
	bare := func(into string) func() float64 {
		return func() float64 {
			out, err := os.OpenFile(into, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
			check(err)
			defer out.Close()
			cmd := exec.CommandContext(b.ctx, bash, "-c", prints)
			cmd.Stdout = out
			return processorTime(func() { check(cmd.Run()) })
		}
	}
	much := inTurns(b.rounds(10), func() float64 {
		spills := filepath.Join(b.dir, "spills")
		defer os.RemoveAll(spills)
		return processorTime(func() {
			out, err := r.Run(context.Background(), shellrun.Command{Text: prints, Shell: bash, Dir: dir, SpillDir: spills})
			check(err)
			if info, err := os.Stat(out.Output.Path); err != nil || info.Size() != 100<<20 {
				failf("the output was not kept: %v %v", info, err)
			}
		})
	}, bare(os.DevNull), bare(filepath.Join(b.dir, "out")))
	b.add(Row{What: "a command that prints 100 MB: processor time", Unit: "ms", Ours: much[0], Beside: much[1], BesideName: "thrown away", Target: Target{Ratio: 2}})
	b.add(Row{What: "the same, beside a file", Unit: "ms", Ours: much[0], Beside: much[2], BesideName: "into a file", Target: Target{Ratio: 2}})
	b.add(Row{What: "Runner alone, true", Unit: "ms", Ours: got[2], Beside: got[1], BesideName: "bash -c true", Target: Target{Over: 3}})
}
