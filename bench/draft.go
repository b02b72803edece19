package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const howDraft = "`pillion tool call --jsonl --review draft`, as a script uses it, beside the same calls in the project. The draft is made, its worker started and " +
	"the view mounted when the session begins, beside its other work, and the first call waits for what is left of that; its row is what this costs over a first call in the project, of 50,000 files in 1,000 folders. " +
	"Copied is where a system has no namespaces. An edit is one line of a 200-line file. Landing is the time from the end of the input to the proposal's line, 20 edited files written; beside it, 20 files of that size written and " +
	"flushed to the disk one by one, by a program that does nothing else. Memory is that of `pillion` and all processes it has started, with an edited file: while the draft's worker runs, over the same calls in the project, and " +
	"what ten drafts that wait for a decision (`--approve none`) add to a session of the same project, for each. Such a draft is a folder: no process belongs to it."

// draft measures what working in a draft costs over working in the project.
func (b *bench) draft() {
	env := b.home("draft", map[string]any{})
	files := b.sizes(50_000)[0]
	large := b.project("draft-large")
	b.flat(large, files)
	b.write(filepath.Join(large, "a.txt"), "a\n")
	first := func(more ...string) func() float64 {
		return func() float64 {
			l := b.toolCalls(env, large, more...)
			defer l.close()
			_, took := l.call("read", map[string]any{"filePath": "a.txt"})
			return took
		}
	}
	s := inTurns(b.rounds(20), first("--review", "draft"), first())
	b.add(Row{What: fmt.Sprintf("first call in a new draft of %d files", files), Unit: "ms", Ours: s[0], Beside: s[1], BesideName: "in the project", Target: Target{Over: 50}})

	text := strings.Repeat("a line of text in a file of some length\n", 200)
	step := func(dir string, more ...string) func() float64 {
		project := b.project(dir)
		b.write(filepath.Join(project, "a.txt"), "n 0\n"+text)
		l, n := b.toolCalls(env, project, more...), 0
		l.call("read", map[string]any{"filePath": "a.txt"})
		return func() float64 {
			_, took := l.call("edit", map[string]any{"filePath": "a.txt", "oldString": fmt.Sprintf("n %d\n", n), "newString": fmt.Sprintf("n %d\n", n+1)})
			n++
			return took
		}
	}
	s = inTurns(b.rounds(100), step("draft-step", "--review", "draft"), step("tree-step"))
	b.add(Row{What: "an edit in a draft", Unit: "ms", Ours: s[0], Beside: s[1], BesideName: "in the project", Target: Target{Ratio: 1.5}})

	project := b.project("draft-land")
	round, disk := 0, b.project("draft-disk")
	both := inTurns(b.rounds(20), func() float64 {
		round++
		l := b.toolCalls(env, project, "--review", "draft")
		for i := range 20 {
			l.call("write", map[string]any{"filePath": fmt.Sprintf("f%d-%d.txt", round, i), "content": text})
		}
		began := time.Now()
		check(l.in.Close())
		_, err := l.out.ReadBytes('\n')
		took := ms(time.Since(began))
		check(err)
		check(l.cmd.Wait())
		return took
	}, func() float64 {
		return timed(func() {
			for i := range 20 {
				f, err := os.Create(filepath.Join(disk, fmt.Sprintf("f%d-%d.txt", round, i)))
				check(err)
				_, err = f.WriteString(text)
				check(err)
				check(f.Sync())
				check(f.Close())
			}
		})
	})
	s, flushed := both[:1], both[1]
	b.add(Row{What: "landing 20 files", Unit: "ms", Ours: s[0], Beside: flushed, BesideName: "20 files flushed", Target: Target{Over: 50}, Note: "the end of the worker included"})

	b.draftMemory(env)

	// Without namespaces, as on macOS, Windows and some distributions, a draft is a copy of all files. The limits hold in a namespace of
	// its own. Where a disk is slow this takes minutes, so a quick run leaves it out.
	without := []string{"unshare", "--user", "--map-root-user", "--mount", "sh", "-c", `echo 0 > /proc/sys/user/max_user_namespaces && echo 0 > /proc/sys/user/max_mnt_namespaces && exec "$0" "$@"`}
	if b.scale < 1 || exec.CommandContext(b.ctx, without[0], append(without[1:], "true")...).Run() != nil {
		return
	}
	s = inTurns(1, func() float64 {
		l := b.toolCallsBy(without, env, large, "--review", "draft")
		defer l.close()
		_, took := l.call("read", map[string]any{"filePath": "a.txt"})
		return took
	}, func() float64 {
		to := filepath.Join(filepath.Dir(large), "copied")
		began := time.Now()
		check(exec.CommandContext(b.ctx, "cp", "-a", large, to).Run())
		took := ms(time.Since(began))
		check(os.RemoveAll(to))
		return took
	})
	b.add(Row{What: fmt.Sprintf("first call in a new draft of %d files, copied", files), Unit: "ms", Ours: s[0], Beside: s[1], BesideName: "cp -a", Target: Target{AtMost: 3000}})
}

// draftMemory measures what a draft holds in memory: one that a session works in, and those that wait.
func (b *bench) draftMemory(env []string) {
	const waiting = 10
	project := b.project("draft-memory")
	b.write(filepath.Join(project, "a.txt"), "n 0\n")
	// held is the memory of a session in which a file was edited. The edit is dropped at its end.
	held := func(more ...string) func() float64 {
		return func() float64 {
			l := b.toolCalls(env, project, append([]string{"--approve", "none"}, more...)...)
			l.call("read", map[string]any{"filePath": "a.txt"})
			mem := familyOf(l.cmd.Process.Pid)
			for below := childrenOf(l.cmd.Process.Pid); len(below) > 0; below = below[1:] { // the worker is a child's child
				for _, pid := range childrenOf(below[0]) {
					if m, err := memoryOf(pid); err == nil {
						mem += m.private
					}
					below = append(below, pid)
				}
			}
			check(l.in.Close())
			check(l.cmd.Wait())
			return mem
		}
	}
	s := inTurns(b.rounds(5), held("--review", "draft"), held())
	b.add(Row{What: "memory of a session that works in a draft", Unit: "MB", Ours: s[0], Beside: s[1], BesideName: "in the project"})
	// Drafts that were proposed and rejected wait as folders. Pillion rejects by itself here, so each session leaves one.
	before := inTurns(b.rounds(5), held())[0]
	for i := range waiting {
		l := b.toolCalls(env, project, "--approve", "none", "--review", "draft")
		l.call("write", map[string]any{"filePath": fmt.Sprintf("w%d.txt", i), "content": "w\n"})
		check(l.in.Close())
		_ = l.cmd.Wait() // it says that its proposal was rejected
	}
	after := inTurns(b.rounds(5), held())[0]
	each := make(Samples, len(after))
	for i := range after {
		each[i] = max(0, (after[i]-before[i])/waiting)
	}
	b.add(Row{What: "memory of an idle draft", Unit: "MB", Ours: each, Target: Target{AtMost: 5}, Note: fmt.Sprintf("%d wait", waiting)})
}
