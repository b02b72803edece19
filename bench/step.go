package main

import (
	"fmt"
	"maps"
	"path/filepath"
)

const howStep = `From the last bytes of the model's answer leaving the scripted server to the next request having arrived there whole,
over local HTTP in the OpenAI chat format, language servers off. Events are stored before the step goes on; an edit asks the
editor, which answers at once, and is written with fsync. The limit agent does the same with nothing in between.`

// rig is a scripted model and both agents on it.
type rig struct {
	m           *model
	env         []string // of our processes
	cwd         string
	ours, limit *client
}

func (b *bench) rig() *rig { return b.rigWith(nil) }

// rigWith is a rig whose configuration says something more.
func (b *bench) rigWith(more map[string]any) *rig {
	m := newModel()
	config := m.config()
	maps.Copy(config, more)
	env := b.home("rig", config)
	r := &rig{m: m, env: env, cwd: b.project("project"), ours: b.agent(env, b.bin, "acp"), limit: b.agent(append(env, "LIMIT_URL="+m.url), b.limit)}
	r.ours.initialize()
	r.limit.initialize()
	return r
}

func (r *rig) close() {
	r.ours.close()
	r.limit.close()
	r.m.close()
}

func (b *bench) step() {
	r := b.rig()
	defer r.close()
	const inTurn = 10 // steps measured in one turn
	file := func(i int) string { return filepath.Join(r.cwd, fmt.Sprintf("f%d.txt", i%50)) }
	for i := range 50 {
		b.write(file(i), fmt.Sprintf("file %d\n", i))
	}
	at := 0
	reads := func(c *client, session string) Samples {
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
	edits := func(c *client, session string) Samples {
		path := filepath.Join(r.cwd, fmt.Sprintf("edit%d.go", at))
		at++
		b.write(path, "package x\n\nvar v = 0\n")
		r.m.Add(calls("read", map[string]any{"filePath": path}))
		for i := range inTurn {
			r.m.Add(calls("edit", map[string]any{"filePath": path, "oldString": fmt.Sprintf("var v = %d", i), "newString": fmt.Sprintf("var v = %d", i+1)}))
		}
		r.m.Add(says)
		r.m.take()
		before := c.asked
		_, err := c.prompt(session, "edit it")
		check(err)
		if c.asked-before != inTurn {
			failf("%d edits asked %d times", inTurn, c.asked-before)
		}
		return gaps(r.m.take())[1:] // the first is the read
	}
	measure := func(rounds int, ours, limit func() string, turn func(*client, string) Samples) (Samples, Samples) {
		var a, z Samples
		for range rounds {
			a = append(a, turn(r.ours, ours())...)
			z = append(z, turn(r.limit, limit())...)
		}
		return a, z
	}
	fresh := func(c *client) func() string { return func() string { return c.newSession(r.cwd) } }
	same := func(id string) func() string { return func() string { return id } }
	n := b.rounds(20)

	reads(r.ours, r.ours.newSession(r.cwd)) // warm
	a, z := measure(n, fresh(r.ours), fresh(r.limit), reads)
	b.add(Row{What: "read of a small file", Unit: "ms", Ours: a, Beside: z, BesideName: "the limit", Target: Target{AtMost: 1}})
	a, z = measure(n, fresh(r.ours), fresh(r.limit), edits)
	b.add(Row{What: "edit with a permission round trip", Unit: "ms", Ours: a, Beside: z, BesideName: "the limit", Target: Target{AtMost: 5}})

	long, longLimit := r.ours.newSession(r.cwd), r.limit.newSession(r.cwd)
	for range 250 {
		r.m.Add(says, says)
		_, err := r.ours.prompt(long, "go on")
		check(err)
		_, err = r.limit.prompt(longLimit, "go on")
		check(err)
	}
	n = b.rounds(10)
	a, z = measure(n, same(long), same(longLimit), reads)
	b.add(Row{What: "read after 500 messages", Unit: "ms", Ours: a, Beside: z, BesideName: "the limit", Target: Target{AtMost: 1}})
	a, z = measure(n, same(long), same(longLimit), edits)
	b.add(Row{What: "edit after 500 messages", Unit: "ms", Ours: a, Beside: z, BesideName: "the limit", Target: Target{AtMost: 5}})
}
