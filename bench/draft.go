package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const howDraft = "`pillion tool call --jsonl --review draft`, as a script uses it, beside the same calls in the project. The first call makes the draft, starts its worker and " +
	"mounts the view; its row is what that costs over a first call in the project, of 50,000 files in 1,000 folders. Copied is where a system has no namespaces. An edit is one line of a 200-line file. Landing is the time from the end of " +
	"the input to the proposal's line, 20 edited files written. An idle draft is a folder: no process belongs to it."

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
	round := 0
	s = inTurns(b.rounds(20), func() float64 {
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
	})
	b.add(Row{What: "landing 20 files", Unit: "ms", Ours: s[0], Target: Target{AtMost: 50}, Note: "the end of the worker included"})

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
