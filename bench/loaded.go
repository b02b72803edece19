package main

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/pillion-dev/pillion/agent/provider/wiretest"
)

const howLoaded = `One session of 2,000 steps (40 turns of 50 reads of small files), the process's memory a second after it; before that, at 500 steps, the session loaded
by a fresh process, everything replayed. Then 20 sub-agents of one answer, each with a read: none answers before all have asked, so that all 20 are there at once; the peak.`

func (b *bench) loaded() {
	r := b.rigWith(map[string]any{"permission": map[string]any{"doom_loop": "allow", "task": "allow"}})
	defer func() { r.m.close() }()
	r.limit.close()
	file := func(i int) string { return filepath.Join(r.cwd, fmt.Sprintf("l%d.txt", i%100)) }
	for i := range 100 {
		b.write(file(i), fmt.Sprintf("file %d\nand a second line\n", i))
	}
	steps, at := 0, 0
	long := r.ours.newSession(r.cwd)
	until := func(n int) {
		for ; steps < n; steps += 50 {
			for range 50 {
				at++
				r.m.Add(calls("read", map[string]any{"filePath": file(at)}))
			}
			r.m.Add(says)
			_, err := r.ours.prompt(long, "read on")
			check(err)
		}
	}
	until(500)
	_, _, err := r.ours.call("session/close", map[string]any{"sessionId": long})
	check(err)
	var replay Samples
	for range b.rounds(8) {
		_, took, _ := b.load(r, long, 1000)
		replay = append(replay, took)
	}
	b.add(Row{What: "session/load of 500 steps, all replayed", Unit: "ms", Ours: replay, Target: Target{AtMost: 1000}})
	_, _, err = r.ours.call("session/load", map[string]any{"sessionId": long, "cwd": r.cwd, "mcpServers": []any{}})
	check(err)
	until(2000)
	time.Sleep(time.Second)
	m, err := memoryOf(r.ours.cmd.Process.Pid)
	check(err)
	b.add(Row{What: "memory after 2,000 steps, resident", Unit: "MB", Ours: Samples{m.rss}, Target: Target{AtMost: 60}, Note: fmt.Sprintf("peak %s", figure(m.peak))})
	r.ours.close()

	var peak Samples
	for range b.rounds(3) {
		peak = append(peak, b.delegates(r))
	}
	b.add(Row{What: "20 sub-agents at once: memory, peak", Unit: "MB", Ours: peak, Target: Target{AtMost: 100}})
}

// delegates lets a fresh process run 20 sub-agents at once and gives its peak.
func (b *bench) delegates(r *rig) float64 {
	const many = 20
	c := b.agent(r.env, b.bin, "acp")
	defer c.close()
	c.initialize()
	var arrived atomic.Int64
	all := make(chan struct{})
	parent := wiretest.Step{Chunk: -1, Burst: true}
	var children []wiretest.Step
	for k := range many {
		mark := fmt.Sprintf("job-%02d-of-many", k)
		parent.Calls = append(parent.Calls, calls("task", map[string]any{"description": "a job", "prompt": mark + ": read a file", "subagent_type": "explore"}).Calls...)
		read := calls("read", map[string]any{"filePath": filepath.Join(r.cwd, fmt.Sprintf("l%d.txt", k))})
		last := wiretest.Step{Text: "Done.", Chunk: -1, Burst: true, When: mark, Wait: all, Do: func(wiretest.Request) {
			if arrived.Add(1) == many {
				close(all)
			}
		}}
		read.When = mark
		children = append(children, read, last)
	}
	r.m.Add(parent)
	r.m.Add(children...)
	r.m.Add(says)
	_, err := c.prompt(c.newSession(r.cwd), "hand it out")
	check(err)
	if arrived.Load() != many {
		failf("%d of %d sub-agents asked", arrived.Load(), many)
	}
	m, err := memoryOf(c.cmd.Process.Pid)
	check(err)
	return m.peak
}
