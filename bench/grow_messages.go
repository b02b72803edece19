package main

import (
	"fmt"
	"path/filepath"
	"time"
)

const howGrowMessages = `Sessions of 100, 1,000 and 10,000 messages: turns of a prompt, an answer that reads 23 small files at once, their results, and a last word. Every
step sends the whole history to the model, so that the limit grows too. Loading: a fresh process, session/load to its 50th update (the first screen) and to its answer, everything replayed;
resident: that process a second later.`

// perTurn is how many messages a filling turn adds: the prompt, the calls, their results, the answer.
const perTurn = 26

func (b *bench) growMessages() {
	r := b.rigWith(map[string]any{
		"compaction": map[string]any{"auto": false, "prune": false},
		"permission": map[string]any{"doom_loop": "allow"},
	})
	defer r.close()
	const readsAtOnce, inTurn = perTurn - 3, 10
	file := func(i int) string { return filepath.Join(r.cwd, fmt.Sprintf("m%d.txt", i%200)) }
	for i := range 200 {
		b.write(file(i), fmt.Sprintf("file %d\nwith a second line of some words\n", i))
	}
	at := 0
	fill := func(c *client, session string) {
		step := calls("read", map[string]any{"filePath": file(at)})
		for range readsAtOnce - 1 {
			at++
			step.Calls = append(step.Calls, calls("read", map[string]any{"filePath": file(at)}).Calls...)
		}
		at++
		r.m.Add(step, says)
		_, err := c.prompt(session, fmt.Sprintf("question %d: what do these files say?", at))
		check(err)
	}
	steps := func(c *client, session string) Samples {
		for range inTurn {
			at++
			r.m.Add(calls("read", map[string]any{"filePath": file(at)}))
		}
		r.m.Add(says)
		r.m.take()
		_, err := c.prompt(session, "read them")
		check(err)
		return gaps(r.m.take())
	}
	have := 0
	long, limit := r.ours.newSession(r.cwd), r.limit.newSession(r.cwd)
	for _, size := range b.sizes(100, 1_000, 10_000) {
		for ; have < size; have += perTurn {
			fill(r.ours, long)
			fill(r.limit, limit)
		}
		var ours, theirs Samples
		for range b.rounds(4) {
			ours = append(ours, steps(r.ours, long)...)
			theirs = append(theirs, steps(r.limit, limit)...)
			have += 2*inTurn + 2
		}
		live, err := memoryOf(r.ours.cmd.Process.Pid)
		check(err)
		_, _, err = r.ours.call("session/close", map[string]any{"sessionId": long})
		check(err)
		var first, load, held Samples
		for range b.rounds(5) {
			screen, took, mem := b.load(r, long, size/4)
			first, load, held = append(first, screen), append(load, took), append(held, mem)
		}
		_, _, err = r.ours.call("session/load", map[string]any{"sessionId": long, "cwd": r.cwd, "mcpServers": []any{}})
		check(err)
		b.grow("messages", size,
			measured{what: "a step: read of a small file", unit: "ms", ours: ours, peer: theirs, peerName: "the limit"},
			measured{what: "session/load, the first screen", unit: "ms", ours: first},
			measured{what: "session/load, all replayed", unit: "ms", ours: load},
			measured{what: "resident after loading", unit: "MB", ours: held},
			measured{what: "resident, at work", unit: "MB", ours: Samples{live.rss}},
		)
	}
}

// firstScreen is how many updates fill the panel of an editor: two turns with their calls.
const firstScreen = 50

// load opens a session in a process of its own: how long to the first screen and to the answer, and what the process holds a second later.
func (b *bench) load(r *rig, session string, atLeast int) (screen, took, held float64) {
	c := b.agent(r.env, b.bin, "acp")
	defer c.close()
	c.initialize()
	updates := 0
	var filled time.Time
	c.listen(func(_ []byte, at time.Time) {
		if updates++; updates == firstScreen {
			filled = at
		}
	})
	began := time.Now()
	_, at, err := c.call("session/load", map[string]any{"sessionId": session, "cwd": r.cwd, "mcpServers": []any{}})
	check(err)
	c.listen(nil)
	if updates < atLeast {
		failf("session/load replayed %d updates of at least %d", updates, atLeast)
	}
	time.Sleep(time.Second)
	m, err := memoryOf(c.cmd.Process.Pid)
	check(err)
	return ms(filled.Sub(began)), ms(at.Sub(began)), m.rss
}
