package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/agent/provider/wiretest"
)

// gauge is what a process holds.
type gauge struct{ rss, files, threads int }

func measure(t *testing.T, pid int) gauge {
	t.Helper()
	status := read(t, fmt.Sprintf("/proc/%d/status", pid))
	number := func(name string) int {
		_, rest, _ := strings.Cut(status, "\n"+name+":")
		n, _ := strconv.Atoi(strings.Fields(rest)[0])
		return n
	}
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	return gauge{number("VmRSS"), len(open), number("Threads")}
}

// One sidecar lives through sessions at random: reading, editing, running, being refused, cancelled, cut off, closed,
// deleted, and its editor's nonsense. What it holds does not grow with them, and nothing that it started is left. Seconds in
// `go test`, PILLION_SOAK=30m in `make faults`.
func TestSoak(t *testing.T) {
	span, limit := 6*time.Second, 40
	if s := os.Getenv("PILLION_SOAK"); s != "" {
		d, err := time.ParseDuration(s)
		if err != nil {
			t.Fatal(err)
		}
		span, limit = d, 1<<30
	} else if testing.Short() {
		limit = 12
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 11))
	home := atHome(t)
	cwd := filepath.Join(home, "project")
	srv := wiretest.New(t)
	put(t, filepath.Join(home, "config/pillion/pillion.jsonc"), fmt.Sprintf(`{"permission": {"*": "allow", "edit": "ask"}, "sandbox": "off", "lsp": false, "model": "mine/m", "provider": {"mine": {"baseURL": %q, "models": ["m"]}}}`, srv.OpenAIURL()))
	put(t, filepath.Join(cwd, "a.txt"), "one\ntwo\nthree\n")
	p := acpProcess(t)
	p.request("initialize", `{"protocolVersion":1,"clientCapabilities":{}}`)
	word := fmt.Sprintf("6%08d", seed%1e8) // seconds that nobody else sleeps

	one := func(n int) {
		s, _ := p.request("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, cwd))["sessionId"].(string)
		call := func(name, input string) wiretest.Step {
			return wiretest.Step{Calls: []wiretest.Call{{Name: name, Input: json.RawMessage(input)}}}
		}
		hangs := false
		steps := []wiretest.Step{call("read", fmt.Sprintf(`{"filePath":%q}`, filepath.Join(cwd, "a.txt")))}
		switch r.IntN(6) {
		case 0:
			steps = append(steps, call("edit", fmt.Sprintf(`{"filePath":%q,"oldString":"two","newString":"two"}`, filepath.Join(cwd, "a.txt"))), wiretest.Step{Text: "Nothing to do."})
		case 1:
			steps = append(steps, call("write", fmt.Sprintf(`{"filePath":%q,"content":"text %d\n"}`, filepath.Join(cwd, fmt.Sprintf("f%d", n%7)), n)), wiretest.Step{Text: "Written."})
		case 2:
			steps = append(steps, call("bash", fmt.Sprintf(`{"command":"sleep %s >/dev/null 2>&1 & seq 20000","description":"count"}`, word)), wiretest.Step{Text: "Counted."})
		case 3:
			steps, hangs = append(steps, wiretest.Step{Text: "Let me think", Hang: true}), true
		case 4:
			steps = append(steps, wiretest.Step{Error: &wiretest.Error{Status: 400, Message: "no"}})
		case 5:
			steps = append(steps, wiretest.Step{Text: strings.Repeat("word ", 20000), Chunk: 4000})
		}
		srv.Add(steps...)
		turn := fmt.Sprintf("turn%d", n)
		p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"session/prompt","params":{"sessionId":%q,"prompt":[{"type":"text","text":"go"}]}}`, turn, s))
		for {
			m, line := p.receive()
			if m["id"] == turn {
				break
			}
			if m["method"] == "session/request_permission" {
				var q struct{ ID json.RawMessage }
				_ = json.Unmarshal([]byte(line), &q)
				p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":%q}}}`, q.ID, []string{"once", "reject"}[r.IntN(2)]))
			}
			if hangs && strings.Contains(line, "agent_message_chunk") {
				p.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, s))
				hangs = false
			}
		}
		srv.Drop() // a no ends its turn before the script does
		p.request([]string{"session/close", "session/delete"}[r.IntN(2)], fmt.Sprintf(`{"sessionId":%q}`, s))
		p.mu.Lock()
		p.said.Reset()
		p.mu.Unlock()
	}

	n := 0
	for ; n < 8; n++ { // caches fill
		one(n)
	}
	base := measure(t, p.cmd.Process.Pid)
	most := base
	for begun := time.Now(); time.Since(begun) < span && n < 8+limit; n++ {
		one(n)
		g := measure(t, p.cmd.Process.Pid)
		most = gauge{max(most.rss, g.rss), max(most.files, g.files), max(most.threads, g.threads)}
	}
	last := measure(t, p.cmd.Process.Pid)
	t.Logf("%d sessions: %+v at first, %+v at last, at most %+v", n, base, last, most)
	if last.files > base.files+8 || last.threads > base.threads+16 || last.rss > base.rss+64<<10 {
		t.Errorf("it grows: %+v after 8 sessions, %+v after %d", base, last, n)
	}
	if left := carrying(word); len(left) > 0 {
		t.Errorf("closed sessions left %q", left)
	}
	p.end()
	if left := carrying(word); len(left) > 0 {
		t.Errorf("the end left %q", left)
	}
}
