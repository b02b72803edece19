package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/agent/provider/wiretest"
	"github.com/pillion-dev/pillion/agent/store"
)

const howSessions = `20 sessions of one process prompted at once; each reads a file and edits it with permission. CPU is that of the process's
threads by the kernel's schedstat. In the round before the same is done one session after the other: the ratio of the two. Loading: a fresh process, session/load of a session of three turns with a read each, from the
request to its answer, the store opened on the way. Listing: the same session's head 5,000 times under other ids, the first page of session/list in a running process.`

func (b *bench) sessions() {
	r := b.rig()
	defer r.close()
	const many = 20
	var cpu [3]Samples
	round := 0
	turns := func(i int, c *client, together bool) func() float64 {
		return func() float64 {
			round++
			ids := make([]string, many)
			for k := range ids {
				path := filepath.Join(r.cwd, fmt.Sprintf("r%d-%02d.txt", round, k))
				b.write(path, "one\ntwo\n")
				ids[k] = c.newSession(r.cwd)
				when := marker(round, k)
				read, edit := calls("read", map[string]any{"filePath": path}), calls("edit", map[string]any{"filePath": path, "oldString": "two", "newString": "three"})
				for _, s := range []wiretest.Step{read, edit, says} {
					s.When = when
					r.m.Add(s)
				}
			}
			pid := c.cmd.Process.Pid
			before, err := cpuOf(pid)
			check(err)
			began := time.Now()
			var wg sync.WaitGroup
			errs := make([]error, many)
			for k, id := range ids {
				wg.Go(func() { _, errs[k] = c.prompt(id, marker(round, k)) })
				if !together {
					wg.Wait()
				}
			}
			wg.Wait()
			took := ms(time.Since(began))
			for _, err := range errs {
				check(err)
			}
			after, err := cpuOf(pid)
			check(err)
			cpu[i] = append(cpu[i], ms(after-before))
			return took
		}
	}
	s := inTurns(b.rounds(15), turns(0, r.ours, true), turns(1, r.limit, true), turns(2, r.ours, false))
	var ratio Samples
	for k := range cpu[0] {
		if k > 0 { // the first warms up
			ratio = append(ratio, cpu[0][k]/cpu[2][k])
		}
	}
	b.add(Row{What: "20 sessions at once: CPU of one after the other", Unit: "×", Ours: ratio, Target: Target{AtMost: 1.5}})
	b.add(Row{What: "20 sessions, read and edit: own CPU", Unit: "ms", Ours: cpu[0][1:], Beside: cpu[1][1:], BesideName: "the limit", Target: Target{AtMost: 100}})
	b.add(Row{What: "20 sessions, read and edit: wall", Unit: "ms", Ours: s[0], Beside: s[1], BesideName: "the limit"})

	path := filepath.Join(r.cwd, "load.txt")
	b.write(path, "one\n")
	id := r.ours.newSession(r.cwd)
	for range 3 {
		r.m.Add(calls("read", map[string]any{"filePath": path}), says)
		_, err := r.ours.prompt(id, "read it")
		check(err)
	}
	r.ours.close()
	var load Samples
	for range b.rounds(30) {
		c := b.agent(b.home("rig", r.m.config()), b.bin, "acp")
		c.initialize()
		updates := 0
		c.listen(func([]byte, time.Time) { updates++ })
		began := time.Now()
		_, at, err := c.call("session/load", map[string]any{"sessionId": id, "cwd": r.cwd, "mcpServers": []any{}})
		check(err)
		c.listen(nil)
		c.close()
		if updates < 9 {
			failf("session/load replayed %d updates", updates)
		}
		load = append(load, ms(at.Sub(began)))
	}
	b.add(Row{What: "session/load of a short session", Unit: "ms", Ours: load, Target: Target{AtMost: 30}})
	b.list(r.env, id, r.cwd)
}

// list measures a page of a list of many sessions. env is the home in which the session id is.
func (b *bench) list(env []string, id, cwd string) {
	const many = 5_000
	var state string
	for _, v := range env {
		if dir, ok := strings.CutPrefix(v, "XDG_STATE_HOME="); ok {
			state = dir
		}
	}
	st := store.New(filepath.Join(state, "pillion", "pillion.db"))
	head, err := st.Session(b.ctx, id)
	check(err)
	for i := range many {
		// Prompting them would take longer than everything else here.
		one := head
		one.ID, one.Updated = fmt.Sprintf("ses_bench%05d", i), head.Updated.Add(time.Duration(-i)*time.Second)
		st.PutSession(one)
	}
	check(st.Sync(b.ctx))
	check(st.Close())
	c := b.agent(env, b.bin, "acp")
	defer c.close()
	c.initialize()
	var page, folder Samples
	for range b.rounds(30) {
		for into, params := range map[*Samples]map[string]any{&page: {}, &folder: {"cwd": cwd}} {
			began := time.Now()
			raw, at, err := c.call("session/list", params)
			check(err)
			var got struct {
				Sessions   []struct{}
				NextCursor string
			}
			check(json.Unmarshal(raw, &got))
			if len(got.Sessions) == 0 || got.NextCursor == "" {
				failf("session/list answered %d sessions and no cursor", len(got.Sessions))
			}
			*into = append(*into, ms(at.Sub(began)))
		}
	}
	b.add(Row{What: "session/list of 5,000 sessions", Unit: "ms", Ours: page, Target: Target{AtMost: 20}})
	b.add(Row{What: "the same of one folder", Unit: "ms", Ours: folder, Target: Target{AtMost: 20}})
}

func marker(round, k int) string { return fmt.Sprintf("prompt-%d-%02d-end", round, k) }
