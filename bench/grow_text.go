package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/agent/provider/wiretest"
	"github.com/pillion-dev/pillion/tools/diff"
	"github.com/pillion-dev/pillion/tools/replace"
)

const howGrowText = "One file of many lines: edited through `pillion tool call` beside what the disk takes, diffed with a change in every hundredth line beside `git diff " +
	"--no-index` (which contains the start of a process), matched by the last stage of `tools/replace`. Then one answer of many deltas, through to the ACP client beside the same bytes read over plain HTTP."

func (b *bench) growText() {
	cwd := b.project("text")
	l := b.toolCalls(b.home("text", map[string]any{"lsp": false}), cwd)
	defer l.close()
	for _, size := range b.sizes(1_000, 10_000, 100_000) {
		b.growLines(l, cwd, size)
	}
	r := b.rig()
	defer r.close()
	for _, size := range b.sizes(1_000, 10_000, 100_000) {
		ours, raw := b.streamOf(r, size)
		b.grow("deltas", size, measured{what: "an answer, to the turn's end", unit: "ms", ours: ours, peer: raw, peerName: "raw HTTP reader"})
	}
}

func (b *bench) growLines(l *lines, cwd string, size int) {
	n := b.rounds(10)
	path, limit := filepath.Join(cwd, "a.go"), filepath.Join(cwd, "limit.go")
	text := goLines(size)
	b.write(path, text)
	b.write(limit, text)
	l.call("read", map[string]any{"filePath": path, "limit": 5})
	middle := size/2 - size/2%5 + 2
	flip := [2]string{fmt.Sprintf("return value * %d\n", middle), fmt.Sprintf("return value * %d // changed\n", middle)}
	i := 0
	edit := inTurns(n, func() float64 {
		i++
		_, took := l.call("edit", map[string]any{"filePath": path, "oldString": flip[(i+1)%2], "newString": flip[i%2]})
		return took
	}, func() float64 {
		return timed(func() {
			text, err := os.ReadFile(limit)
			check(err)
			check(writeSynced(limit, bytes.Replace(text, []byte("* 12"), []byte("* 12 "), 1)))
		})
	})

	lines := strings.Split(text, "\n")
	block := append([]string(nil), lines[middle-2:middle+4]...)
	block = slices.Delete(block, 2, 4)
	quoted := strings.Join(block, "\n")
	block[len(block)-1] = "replaced"
	wanted := strings.Join(block, "\n")
	var fuzzy Samples
	for range n {
		fuzzy = append(fuzzy, timed(func() {
			if _, err := replace.Apply(text, quoted, wanted, false); err != nil {
				failf("the last stage in %d lines: %v", size, err)
			}
		}))
	}

	for k := 0; k < len(lines); k += 100 {
		lines[k] += " // changed"
	}
	now := strings.Join(lines, "\n")
	old := filepath.Join(cwd, "old")
	b.write(old, text)
	b.write(filepath.Join(cwd, "new"), now)
	diffs := inTurns(n, func() float64 {
		return timed(func() {
			if diff.Unified("a", "b", text, now) == "" {
				failf("no difference")
			}
		})
	}, func() float64 {
		return timed(func() {
			cmd := exec.CommandContext(b.ctx, "git", "diff", "--no-index", "--no-color", "old", "new")
			cmd.Dir = cwd
			if out, _ := cmd.Output(); len(out) == 0 {
				failf("git found no difference")
			}
		})
	})
	b.grow("lines", size,
		measured{what: "edit", unit: "ms", ours: edit[0], peer: edit[1], peerName: "read, write, fsync, rename"},
		measured{what: "unified diff", unit: "ms", ours: diffs[0], peer: diffs[1], peerName: "git diff --no-index"},
		measured{what: "last stage", unit: "ms", ours: fuzzy},
	)
}

// streamOf is an answer of so many deltas, in turns through us and read raw.
func (b *bench) streamOf(r *rig, size int) (ours, raw Samples) {
	pieces := make([]string, size)
	for i := range pieces {
		pieces[i] = fmt.Sprintf("word%d ", i)
	}
	burst := wiretest.Step{Deltas: pieces, Burst: true}
	s := inTurns(b.rounds(6), func() float64 {
		session := r.ours.newSession(r.cwd)
		r.m.Add(burst)
		r.m.take()
		end, err := r.ours.prompt(session, "write")
		check(err)
		return ms(end.Sub(r.m.take()[0].arrived))
	}, func() float64 {
		r.m.Add(burst)
		r.m.take()
		n := b.readRaw(r.m)
		end := time.Now()
		if n < size {
			failf("the raw reader saw %d events", n)
		}
		return ms(end.Sub(r.m.take()[0].arrived))
	})
	return s[0], s[1]
}
