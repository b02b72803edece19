package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/agent/provider/wiretest"
)

const howRides = "An agent of another maker as Pillion's model, in a draft, in turns with the same agent driven by the same client without Pillion. A step is measured as in `step`. " +
	"What is added to a step is measured beside a process that was started for its turn too, as Pillion starts one for each; a process that runs on is faster, which is a row of its own. " +
	"Memory is what Pillion's own processes take beside the agent's (sidecar, the draft's worker, the sandbox's helper), private pages, a second after the first turn."

// ride is a peer behind Pillion: the agent's id in our configuration, and the variables of its environment that its row names.
type ride struct {
	id   string
	keys []string
	make func(*model) (peer, bool)
}

func (b *bench) rides() {
	m := newModel()
	defer m.close()
	cwd := b.project("project")
	check(exec.Command("git", "-C", cwd, "init", "-q").Run())
	for _, r := range []ride{
		{"codex", []string{"SCRIPTED_KEY"}, b.peerCodex},
		{"gemini", []string{"GEMINI_API_KEY"}, b.peerGemini},
		{"opencode", []string{"OPENCODE_CONFIG_CONTENT"}, b.peerOpenCode},
	} {
		direct, ok := r.make(m)
		if !strings.Contains(direct.name, b.chosen) {
			continue
		}
		if !ok {
			b.missing = "an agent is not installed; `scripts/setup-peers.sh` gets it."
			continue
		}
		through := direct
		through.name, through.command = "Pillion with "+direct.name, []string{b.bin, "acp"}
		through.env = b.behind(direct, r, cwd)
		d := &duel{b: b, m: m, cwd: cwd, side: [2]peer{through, direct}}
		reads := func(p peer, _ string, _ int) wiretest.Step { return p.read(d.file()) }
		ours, theirs := d.open(0), d.open(1)
		warm := d.steps([2]*client{ours, theirs}, reads)
		theirs.close()
		s := d.steps([2]*client{ours, nil}, reads)
		ours.close()
		b.add(Row{What: "a step through Pillion: read", Unit: "ms", Ours: s[0], Beside: s[1], BesideName: direct.name + " alone, started for the turn"})
		b.add(Row{What: "added to it, step by step: " + direct.name, Unit: "ms", Ours: differences(s[0], s[1]), Target: Target{AtMost: 2}})
		b.add(Row{What: "the same beside a process that runs on", Unit: "ms", Ours: warm[0], Beside: warm[1], BesideName: direct.name + " alone"})
		one := d.open(0)
		m.Add(through.read(d.file()), says)
		_, err := one.prompt(one.newSession(cwd), "read it")
		check(err)
		time.Sleep(time.Second)
		b.add(Row{What: "memory on top: " + direct.name, Unit: "MB", Ours: Samples{b.ownMemory(one.cmd.Process.Pid)}, Target: Target{AtMost: 10}})
		one.close()
	}
}

// differences are those of steps with the same place in two turns that ran one after the other. Both turns had the same load, so that the
// middle of the differences says more than the difference of two medians of a busy machine.
func differences(ours, beside Samples) (out Samples) {
	for i := range min(len(ours), len(beside)) {
		out = append(out, ours[i]-beside[i])
	}
	return out
}

// behind is the environment of Pillion with the agent as its model, in a folder that is trusted.
func (b *bench) behind(p peer, r ride, cwd string) []string {
	env := slices.Clone(p.env)
	home := ""
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, "HOME="); ok {
			home = v
		}
	}
	b.write(filepath.Join(home, ".config/pillion/pillion.jsonc"), fmt.Sprintf(`{"lsp": false, "model": "acp/%s", "agents": {%q: {"acp": ["%s"], "keys": ["%s"]}}, "permission": {"doom_loop": "allow"}}`,
		r.id, r.id, strings.Join(p.command, `", "`), strings.Join(r.keys, `", "`)))
	trust := exec.Command(b.bin, "trust", cwd)
	trust.Env = env
	out, err := trust.CombinedOutput()
	if err != nil {
		failf("pillion trust: %v %s", err, out)
	}
	return env
}

// ownMemory is the private memory of a process and those of its descendants that run the same program, in MB.
func (b *bench) ownMemory(pid int) float64 {
	sum := 0.0
	if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err == nil && exe == b.bin {
		if m, err := memoryOf(pid); err == nil {
			sum = m.private
		}
	}
	for _, child := range childrenOf(pid) {
		sum += b.ownMemory(child)
	}
	return sum
}
