package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/agent/provider/wiretest"
)

const howRides = "An agent of another maker as Pillion's model, in a draft. What riding adds to a step is measured inside one run, without the agent's own time: a program between Pillion and " +
	"the agent (`bench/tap`) writes down when each line passes. *Held in a step* is the time from each request of the agent to Pillion's answer (a permission, a file), plus the time from the " +
	"agent's word that the call has ended to the editor's. The client answers at once. A read has nothing but the second; before an edit the agents ask for a permission, and Pillion records what the call has changed in the draft. A request that Pillion does not offer is not counted: OpenCode sends each edit of a draft " +
	"as `fs/write_text_file` all the same, and does not wait for the answer (`writeProposedEdit` of 1.18.33), as it writes the file itself. *Own processor time* is that of Pillion's own processes (sidecar, the draft's worker, the sandbox's helper) from the end of " +
	"the first step to the end of the last. A step beside the same agent without Pillion, started for its turn, is measured as in `step`; it shows what the draft and the sandbox cost the agent, within the noise of " +
	"two runs. Memory is what Pillion's own processes take beside the agent's two seconds after the first turn, when the draft's worker has ended: " +
	"the pages that only they have and that their end would free (Private_Dirty in smaps_rollup). Pages of the program file, which the page cache keeps, are a row of their own without a promise: " +
	"how many of them are mapped depends on the size of the page cache's folios, 2 to 13 MB of the same program in two copies. " +
	"An agent that writes only through its client (`\"edits\": \"client\"`) waits for the whole of Pillion's edit instead of writing by itself: the check, the question, the client's answer, the write with fsync; of the four only Gemini CLI can."

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
	tap := filepath.Join(b.dir, "tap")
	out, err := exec.CommandContext(b.ctx, "go", "build", "-o", tap, "./bench/tap").CombinedOutput()
	if err != nil {
		failf("building bench/tap: %v %s", err, out)
	}
	for i, r := range []ride{
		{"codex", []string{"SCRIPTED_KEY"}, b.peerCodex2},
		{"codex", []string{"SCRIPTED_KEY"}, b.peerCodex},
		{"gemini", []string{"GEMINI_API_KEY"}, b.peerGemini},
		{"opencode", []string{"OPENCODE_CONFIG_CONTENT"}, b.peerOpenCode},
		{"claude", []string{"ANTHROPIC_API_KEY"}, b.peerClaude},
	} {
		direct, ok := r.make(m)
		if !strings.Contains(direct.name, b.chosen) {
			continue
		}
		if !ok {
			b.missing = "an agent is not installed; `scripts/setup-peers.sh` gets it."
			continue
		}
		log := filepath.Join(b.dir, fmt.Sprintf("tap-%d", i), "log")
		b.write(log, "")
		tapped := direct
		tapped.command = append([]string{tap, log}, direct.command...)
		through := direct
		through.name, through.command = "Pillion with "+direct.name, []string{b.bin, "acp"}
		through.env = b.behind(tapped, r, cwd, filepath.Dir(log), "")
		d := &duel{b: b, m: m, cwd: cwd, side: [2]peer{through, direct}}
		ours := d.open(0)
		d.held(ours, log) // warm
		var reads, edits, processor Samples
		for range b.rounds(10) {
			r, e, p := d.held(ours, log)
			reads, edits, processor = append(reads, r...), append(edits, e...), append(processor, p)
		}
		b.add(Row{What: "held in a step, a read: " + direct.name, Unit: "ms", Ours: reads, Target: Target{AtMost: 2}})
		b.add(Row{What: "held in a step, an edit with its permission: " + direct.name, Unit: "ms", Ours: edits, Target: Target{AtMost: 2}})
		b.add(Row{What: "own processor time of a step: " + direct.name, Unit: "ms", Ours: processor})
		s := d.steps([2]*client{ours, nil}, func(p peer, _ string, _ int) wiretest.Step { return p.read(d.file()) })
		ours.close()
		b.add(Row{What: "a step through Pillion: read", Unit: "ms", Ours: s[0], Beside: s[1], BesideName: direct.name + " alone, started for the turn"})
		if r.id == "gemini" {
			through.env = b.behind(tapped, r, cwd, filepath.Dir(log), `, "edits": "client"`)
			d.side[0] = through
			beside := d.open(0)
			d.held(beside, log)
			edits = nil
			for range b.rounds(10) {
				_, e, _ := d.held(beside, log)
				edits = append(edits, e...)
			}
			beside.close()
			b.add(Row{What: "an edit through its client, without a draft: " + direct.name, Unit: "ms", Ours: edits, Target: Target{AtMost: 5}})
			through.env = b.behind(tapped, r, cwd, filepath.Dir(log), "")
			d.side[0] = through
		}
		var memory, mapped Samples
		for range b.rounds(6) {
			one := d.open(0)
			m.Add(through.read(d.file()), says)
			_, err := one.prompt(one.newSession(cwd), "read it")
			check(err)
			// Memory of working is given back 700 ms after a turn; on a busy machine that takes a moment.
			time.Sleep(2 * time.Second)
			own, with := b.ownMemory(one.cmd.Process.Pid)
			memory, mapped = append(memory, own), append(mapped, with)
			one.close()
		}
		b.add(Row{What: "memory on top: " + direct.name, Unit: "MB", Ours: memory, Target: Target{AtMost: 10}})
		b.add(Row{What: "the same with the mapped pages of its program file: " + direct.name, Unit: "MB", Ours: mapped})
	}
}

// held runs a turn of reads and edits through Pillion, and returns for each read and each edit how long Pillion kept the agent and the editor
// waiting, and the processor time of its own processes for one step.
func (d *duel) held(c *client, log string) (reads, edits Samples, processor float64) {
	const each = 10
	check(os.Truncate(log, 0))
	path := d.file()
	d.m.Add(d.side[0].read(path))
	for range each {
		d.m.Add(d.side[0].read(d.file()))
	}
	for k := range each {
		d.m.Add(d.side[0].edit(path, fmt.Sprintf("line %d", k), fmt.Sprintf("line %d", k+1)))
	}
	d.m.Add(says)
	var mu sync.Mutex
	var ends []int64
	seen := map[string]bool{}
	var first, last time.Duration
	c.listen(func(line []byte, at time.Time) {
		id, ended := callEnd(line)
		if !ended {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if seen[id] {
			return
		}
		seen[id] = true
		ends = append(ends, at.UnixNano())
		if len(ends) == 1 {
			first = d.b.ownTime(c.cmd.Process.Pid)
		}
		if len(ends) == 2*each {
			last = d.b.ownTime(c.cmd.Process.Pid)
		}
	})
	_, err := c.prompt(c.newSession(d.cwd), "do it")
	check(err)
	c.listen(nil)
	if left := d.m.Left(); left > 0 {
		d.m.Drop()
		failf("%s left %d steps", d.side[0].name, left)
	}
	text, err := os.ReadFile(path)
	check(err)
	if want := fmt.Sprintf("line %d\n", each); string(text) != want {
		failf("%s left %q, not %q", d.side[0].name, text, want)
	}
	mu.Lock()
	defer mu.Unlock()
	waits := heldIn(readTap(log), ends)
	if len(waits) < 2*each {
		failf("%s: %d steps in the tap's log and %d at the editor, want %d", d.side[0].name, len(waits), len(ends), 2*each)
	}
	n := len(waits) - each
	return waits[:n], waits[n:], ms(last-first) / (2*each - 1)
}

// callEnd reports whether a session/update says that a tool call has ended, and of which.
func callEnd(line []byte) (id string, ended bool) {
	var u struct {
		Params struct {
			Update struct{ ToolCallID, Status string }
		}
	}
	if json.Unmarshal(line, &u) != nil {
		return "", false
	}
	at := u.Params.Update
	return at.ToolCallID, at.ToolCallID != "" && (at.Status == "completed" || at.Status == "failed")
}

// passed is a line of a tap's log.
type passed struct {
	at   int64 // nanoseconds since 1970
	from bool  // from the agent
	line []byte
}

// readTap reads a tap's log.
func readTap(path string) (out []passed) {
	b, err := os.ReadFile(path)
	check(err)
	for line := range bytes.Lines(b) {
		at, rest, _ := bytes.Cut(line, []byte(" "))
		mark, rest, _ := bytes.Cut(rest, []byte(" "))
		n, err := strconv.ParseInt(string(at), 10, 64)
		check(err)
		out = append(out, passed{n, string(mark) == ">", rest})
	}
	return out
}

// heldIn returns for each call that an agent has ended, in milliseconds, how long its requests since the call before waited for their answers, plus
// the time until the editor learned of the end. ends are the times at which the editor learned of one. Requests that the client did not offer do
// not count.
func heldIn(log []passed, ends []int64) (out Samples) {
	asked := map[string]int64{}
	unoffered := map[string]bool{} // methods, as of the last initialize
	seen := map[string]bool{}
	var waited int64
	for _, p := range log {
		var m message
		if json.Unmarshal(p.line, &m) != nil {
			continue
		}
		id := string(m.ID)
		if !p.from && m.Method == "initialize" {
			var q struct {
				Params struct {
					ClientCapabilities struct {
						Fs struct{ ReadTextFile, WriteTextFile bool }
					}
				}
			}
			check(json.Unmarshal(p.line, &q))
			fs := q.Params.ClientCapabilities.Fs
			unoffered = map[string]bool{"fs/read_text_file": !fs.ReadTextFile, "fs/write_text_file": !fs.WriteTextFile}
		}
		if p.from && m.Method != "" && id != "" && !unoffered[m.Method] {
			asked[id] = p.at
		}
		if at, ok := asked[id]; !p.from && m.Method == "" && ok {
			waited += p.at - at
			delete(asked, id)
		}
		if call, ended := callEnd(p.line); p.from && ended && !seen[call] {
			seen[call] = true
			for len(ends) > 0 && ends[0] < p.at {
				ends = ends[1:]
			}
			if len(ends) == 0 {
				return out
			}
			out = append(out, float64(waited+ends[0]-p.at)/1e6)
			ends, waited = ends[1:], 0
		}
	}
	return out
}

// behind is the environment of Pillion with the agent as its model, in a folder that is trusted. more are members of the agent's row, as JSON.
func (b *bench) behind(p peer, r ride, cwd, writable, more string) []string {
	env := slices.Clone(p.env)
	home := ""
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, "HOME="); ok {
			home = v
		}
	}
	b.write(filepath.Join(home, ".config/pillion/pillion.jsonc"), fmt.Sprintf(`{"lsp": false, "model": "acp/%s", "agents": {%q: {"acp": ["%s"], "keys": ["%s"], "folders": [%q]%s}}, "permission": {"doom_loop": "allow"}}`,
		r.id, r.id, strings.Join(p.command, `", "`), strings.Join(r.keys, `", "`), writable, more))
	trust := exec.Command(b.bin, "trust", cwd)
	trust.Env = env
	out, err := trust.CombinedOutput()
	if err != nil {
		failf("pillion trust: %v %s", err, out)
	}
	return env
}

// own calls f with a process and those of its descendants that run Pillion.
func (b *bench) own(pid int, f func(pid int)) {
	if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err == nil && exe == b.bin {
		f(pid)
	}
	for _, child := range childrenOf(pid) {
		b.own(child, f)
	}
}

// ownMemory is the memory of Pillion's processes in MB that their end would free, and the same with the pages of the program file that only
// they have mapped.
func (b *bench) ownMemory(pid int) (own, mapped float64) {
	b.own(pid, func(pid int) {
		if m, err := memoryOf(pid); err == nil {
			own, mapped = own+m.dirty, mapped+m.private
		}
	})
	return own, mapped
}

// ownTime is the processor time of Pillion's processes.
func (b *bench) ownTime(pid int) (sum time.Duration) {
	b.own(pid, func(pid int) {
		if d, err := cpuOf(pid); err == nil {
			sum += d
		}
	})
	return sum
}
