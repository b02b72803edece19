package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/pillion-dev/pillion/tools/diff"
	"github.com/pillion-dev/pillion/tools/patch"
)

const howDiff = "Unified text of two files of 100,000 lines (4.3 MB) with 1,000 changes spread over them, files read, beside `git diff --no-index`. " +
	"The same diff applied to the old text by tools/patch, beside `git apply`. Git's figures contain the start of a process."

func (b *bench) diff() {
	dir := b.project("diff")
	old := goLines(100_000)
	lines := strings.Split(old, "\n")
	for i := range 1000 {
		k := i*100 + i%7
		switch i % 3 {
		case 0:
			lines[k] += " // changed"
		case 1:
			lines[k] = ""
		case 2:
			lines[k] = lines[k] + "\n\tinserted()"
		}
	}
	now := strings.Join(lines, "\n")
	b.write(filepath.Join(dir, "a"), old)
	b.write(filepath.Join(dir, "b"), now)
	git := func(args ...string) func() float64 {
		return func() float64 {
			return timed(func() {
				cmd := exec.CommandContext(b.ctx, "git", args...)
				cmd.Dir = dir
				out, err := os.Create(filepath.Join(dir, "out"))
				check(err)
				defer out.Close()
				cmd.Stdout = out
				if err := cmd.Run(); err != nil && cmd.ProcessState.ExitCode() != 1 {
					check(err)
				}
			})
		}
	}
	unified := ""
	s := inTurns(b.rounds(20), func() float64 {
		return timed(func() {
			a, err := os.ReadFile(filepath.Join(dir, "a"))
			check(err)
			z, err := os.ReadFile(filepath.Join(dir, "b"))
			check(err)
			unified = diff.Unified("a", "b", string(a), string(z))
		})
	}, git("diff", "--no-index", "--no-color", "a", "b"))
	if got, err := diff.Apply(old, unified); err != nil || got != now {
		failf("the diff does not lead from the old text to the new: %v", err)
	}
	b.add(Row{What: "unified diff, 100,000 lines, 1,000 changes", Unit: "ms", Ours: s[0], Beside: s[1], BesideName: "git diff --no-index", Target: Target{Ratio: 1}})

	b.write(filepath.Join(dir, "work", "a"), old)
	named := strings.Replace(unified, "--- a\n+++ b\n", "--- a/a\n+++ b/a\n", 1)
	b.write(filepath.Join(dir, "work", "p"), named)
	gitApply := func() float64 {
		b.write(filepath.Join(dir, "work", "a"), old)
		return timed(func() {
			cmd := exec.CommandContext(b.ctx, "git", "apply", "p")
			cmd.Dir = filepath.Join(dir, "work")
			if out, err := cmd.CombinedOutput(); err != nil {
				failf("git apply: %v %s", err, out)
			}
		})
	}
	s = inTurns(b.rounds(20), func() float64 {
		return timed(func() {
			p, err := patch.Parse(named)
			check(err)
			changes, err := p.Apply(func(string) (string, bool, error) { return old, true, nil })
			check(err)
			if len(changes) != 1 || changes[0].New != now {
				failf("the patch leads elsewhere: %d changes", len(changes))
			}
		})
	}, gitApply)
	b.add(Row{What: "the same patch applied", Unit: "ms", Ours: s[0], Beside: s[1], BesideName: "git apply", Note: fmt.Sprintf("%d KB of patch", len(named)>>10)})
}
