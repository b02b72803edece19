package main

import "time"

const howStart = `Spawn ` + "`pillion acp`" + `, send initialize, read its answer; the home folder has a configuration file. Memory one second
later, from smaps_rollup: what is resident, and what is this process's alone.`

func (b *bench) start() {
	env := b.home("start", map[string]any{"lsp": false})
	spawn := func(program string, args ...string) func() float64 {
		return func() float64 {
			c := b.agent(env, program, args...)
			defer c.close()
			return c.initialize()
		}
	}
	s := inTurns(b.rounds(60), spawn(b.bin, "acp"), spawn(b.limit))
	b.add(Row{What: "spawn → initialize answered", Unit: "ms", Ours: s[0], Beside: s[1], BesideName: "the limit", Target: Target{AtMost: 20}})

	var rss, private [2]Samples
	for range b.rounds(5) {
		for i, program := range [][]string{{b.bin, "acp"}, {b.limit}} {
			c := b.agent(env, program[0], program[1:]...)
			c.initialize()
			time.Sleep(time.Second)
			m, err := memoryOf(c.cmd.Process.Pid)
			c.close()
			check(err)
			rss[i], private[i] = append(rss[i], m.rss), append(private[i], m.private)
		}
	}
	b.add(Row{What: "idle, resident", Unit: "MB", Ours: rss[0], Beside: rss[1], BesideName: "the limit", Target: Target{AtMost: 20}})
	b.add(Row{What: "idle, private", Unit: "MB", Ours: private[0], Beside: private[1], BesideName: "the limit", Target: Target{AtMost: 20}})
}
