package main

import (
	"fmt"
	"path/filepath"
	"time"
)

const howStart = `Spawn ` + "`pillion acp`" + `, send initialize, read its answer; the home folder has a configuration file. Memory one second
later, from smaps_rollup: *private* is what the process has alone and what its end would free; *resident* counts the pages of its program
file as well, which the page cache holds anyhow. After start-up Pillion hands those back once (madvise, sidecar/memory_linux.go), so
the resident figure of a process that has only been connected to is flattering; it grows again as code is used.`

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

	// How far a connection is taken before its memory is looked at. What a person has before them is the last.
	nothing := func(*rig) {}
	open := func(r *rig) {
		r.ours.newSession(r.cwd)
		r.limit.newSession(r.cwd)
	}
	worked := func(r *rig) {
		path := filepath.Join(r.cwd, "a.go")
		b.write(path, "package x\n\nvar v = 0\n")
		for _, c := range []*client{r.ours, r.limit} {
			session := c.newSession(r.cwd)
			for i := range 10 {
				r.m.Add(calls("read", map[string]any{"filePath": path}),
					calls("edit", map[string]any{"filePath": path, "oldString": fmt.Sprintf("var v = %d", i%2), "newString": fmt.Sprintf("var v = %d", (i+1)%2)}), says)
				_, err := c.prompt(session, "edit it")
				check(err)
			}
		}
	}
	for _, state := range []struct {
		name string
		take func(*rig)
	}{{"connected", nothing}, {"a session open", open}, {"after ten turns, each with a read and an edit", worked}} {
		var rss, private [2]Samples
		for range b.rounds(5) {
			r := b.rig()
			state.take(r)
			time.Sleep(time.Second)
			for i, c := range []*client{r.ours, r.limit} {
				m, err := memoryOf(c.cmd.Process.Pid)
				check(err)
				rss[i], private[i] = append(rss[i], m.rss), append(private[i], m.private)
			}
			r.close()
		}
		b.add(Row{What: "idle, " + state.name + ": private", Unit: "MB", Ours: private[0], Beside: private[1], BesideName: "the limit", Target: Target{AtMost: 20}})
		b.add(Row{What: "idle, " + state.name + ": resident", Unit: "MB", Ours: rss[0], Beside: rss[1], BesideName: "the limit"})
	}
}
