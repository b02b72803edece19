package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pillion-dev/pillion/agent/provider/wiretest"
)

const howLife = "One `pillion acp --share` lives through sessions drawn at random (the seed is fixed): a file is read and edited, a command leaves a process behind, a turn is cancelled in the middle of " +
	"an answer, the model refuses, an answer of 100 KB streams, a turn works in a draft, a second editor joins and is killed, gopls is killed under an edit, and a write finds the disk full (a tmpfs of 256 KB). Each session is then " +
	"closed or deleted. Every tenth session what the process holds is read from the kernel; private memory is that of the sidecar alone, processes are all below it. A curve that is flat has the exponent 0. Goroutines are " +
	"counted at the end in the trace of a SIGQUIT, beside a process that had one session."

// life is one sidecar that grows old.
type life struct {
	b         *bench
	m         *model
	env       []string
	cwd, full string // full is a project on a disk that is nearly full; "" where none can be mounted
	c         *client
	r         *rand.Rand
	n         int // sessions so far
}

// quitTime is how long a process may take to write its trace and die after SIGQUIT.
const quitTime = 10 * time.Second

func (b *bench) life() {
	l := &life{b: b, m: newModel(), cwd: b.project("life"), r: rand.New(rand.NewPCG(27, 5))}
	defer l.m.close()
	config := l.m.config()
	config["permission"] = map[string]any{"*": "allow", "edit": "ask"}
	config["sandbox"] = "off"
	delete(config, "lsp")
	l.env = b.home("life", config)
	l.write()
	if dir := b.project("life-full"); exec.CommandContext(b.ctx, "unshare", "--user", "--map-root-user", "--mount", "true").Run() == nil {
		l.full = dir
	}
	fresh := l.start()
	l.session()
	few := goroutines(fresh)

	l.c = l.start()
	sizes := []int{30, 100, 300, 1000}
	if b.scale < 1 {
		sizes = sizes[:3]
	}
	for _, size := range sizes {
		var memory, files, threads, processes Samples
		for l.n < size {
			l.session()
			if l.n%10 != 0 || l.n < size/2 { // the second half of a stretch is its figure
				continue
			}
			h := holds(l.c.cmd.Process.Pid)
			memory, files, threads, processes = append(memory, h.memory), append(files, h.files), append(threads, h.threads), append(processes, h.processes)
		}
		b.grow("sessions lived", size, measured{"private memory", "MB", memory, nil, ""}, measured{"open files", "count", files, nil, ""},
			measured{"threads", "count", threads, nil, ""}, measured{"processes below it", "count", processes, nil, ""})
	}
	began := time.Now()
	_, at, err := l.c.call("session/list", map[string]any{})
	check(err)
	b.add(Row{What: "session/list at the end of a long life", Unit: "ms", Ours: Samples{ms(at.Sub(began))}, Target: Target{AtMost: 200}})
	b.add(Row{What: "goroutines after all sessions are closed", Unit: "count", Ours: Samples{goroutines(l.c)}, Beside: Samples{few}, BesideName: "after one session"})
	b.add(Row{What: "processes left after its death", Unit: "count", Ours: Samples{float64(len(workingIn(b.dir)))}})
}

// write lays out the project that is worked in.
func (l *life) write() {
	l.b.write(filepath.Join(l.cwd, "go.mod"), "module example.com/life\n\ngo 1.24\n")
	l.b.write(filepath.Join(l.cwd, "a.go"), "package life\n\n// N is a number.\nconst N = 0\n")
	l.b.write(filepath.Join(l.cwd, "a.txt"), "n 0\n")
}

// start starts a sidecar that sees the full disk.
func (l *life) start() *client {
	args := []string{"acp", "--share"}
	if l.full == "" {
		l.c = l.b.agent(l.env, l.b.bin, args...)
	} else {
		script := `mount -t tmpfs -o size=256k none "$0" && exec "$@"`
		l.c = l.b.agent(l.env, "unshare", append([]string{"--user", "--map-root-user", "--mount", "sh", "-c", script, l.full, l.b.bin}, args...)...)
	}
	l.c.initialize()
	return l.c
}

// session is one session, from its opening to its end.
func (l *life) session() {
	cwd := l.cwd
	kind := l.r.IntN(9)
	if kind == 8 && l.full != "" {
		cwd = l.full
	}
	id := l.c.newSession(cwd)
	text := func(name string) string {
		data, err := os.ReadFile(filepath.Join(l.cwd, name))
		check(err)
		return strings.TrimSuffix(string(data), "\n")
	}
	edit := func(file, from, to string) []wiretest.Step {
		path := filepath.Join(l.cwd, file)
		return []wiretest.Step{calls("read", map[string]any{"filePath": path}), calls("edit", map[string]any{"filePath": path, "oldString": from, "newString": to}), says}
	}
	var steps []wiretest.Step
	cancelled := false
	switch kind {
	case 0:
		steps = edit("a.txt", text("a.txt"), fmt.Sprintf("n %d", l.n))
	case 1:
		steps = []wiretest.Step{calls("bash", map[string]any{"command": "sleep 600 >/dev/null 2>&1 & seq 20000", "description": "count"}), says}
	case 2:
		steps, cancelled = []wiretest.Step{{Text: "Let me think", Hang: true}}, true
	case 3:
		steps = []wiretest.Step{{Error: &wiretest.Error{Status: 400, Message: "no"}}}
	case 4:
		steps = []wiretest.Step{{Text: strings.Repeat("word ", 20_000), Chunk: 4000}}
	case 5:
		_, _, err := l.c.call("session/set_config_option", map[string]any{"sessionId": id, "configId": "review", "value": "draft"})
		check(err)
		steps = edit("a.txt", text("a.txt"), fmt.Sprintf("draft %d", l.n))
	case 6:
		steps = edit("a.txt", text("a.txt"), fmt.Sprintf("two %d", l.n))
		l.join(id)
	case 7:
		line := strings.Split(text("a.go"), "\n")[3]
		steps = edit("a.go", line, fmt.Sprintf("const N = %d", l.n))
		steps[1].Do = func(wiretest.Request) {
			if l.n%3 == 0 { // gopls needs a second to start, so it is not killed under each edit
				killServers(l.c.cmd.Process.Pid)
			}
		}
	case 8:
		steps = []wiretest.Step{calls("write", map[string]any{"filePath": "full.txt", "content": strings.Repeat("0123456789abcdef\n", 30_000)}), says}
	}
	l.m.Add(steps...)
	if cancelled {
		var once atomic.Bool
		l.c.listen(func(line []byte, _ time.Time) {
			if bytes.Contains(line, []byte("agent_message_chunk")) && once.CompareAndSwap(false, true) {
				l.c.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, id))
			}
		})
	}
	_, err := l.c.prompt(id, "go on")
	l.c.listen(nil)
	if err != nil && kind != 2 && kind != 3 {
		check(err)
	}
	l.m.Drop() // a refusal ends its turn before the script does
	l.m.take()
	method := "session/close"
	if l.r.IntN(4) == 0 {
		method = "session/delete"
	}
	_, _, err = l.c.call(method, map[string]any{"sessionId": id})
	check(err)
	l.n++
}

// join lets a second editor join the session and kills it, sometimes before it was answered.
func (l *life) join(id string) {
	second := l.b.agent(l.env, l.b.bin, "attach", id)
	if l.r.IntN(2) == 0 {
		_, _, _ = second.call("initialize", map[string]any{"protocolVersion": 1, "clientCapabilities": map[string]any{}})
	}
	check(second.kill())
	<-second.ended
	_ = second.cmd.Wait()
}

// killServers kills the language servers below a process.
func killServers(pid int) {
	for _, p := range serversBelow(pid) {
		_ = syscall.Kill(p, syscall.SIGKILL)
	}
}

// serversBelow are the ids of the language servers below a process.
func serversBelow(pid int) (out []int) {
	for _, p := range descendants(pid) {
		if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", p)); err == nil && strings.HasPrefix(string(name), "gopls") {
			out = append(out, p)
		}
	}
	return out
}

// descendants are the ids of all processes below one.
func descendants(pid int) (out []int) {
	for below := childrenOf(pid); len(below) > 0; below = below[1:] {
		out = append(out, below[0])
		below = append(below, childrenOf(below[0])...)
	}
	return out
}

// held is what a process holds at one time.
type held struct{ memory, files, threads, processes float64 }

func holds(pid int) held {
	m, err := memoryOf(pid)
	check(err)
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	check(err)
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	check(err)
	return held{m.private, float64(len(files)), float64(len(threads)), float64(len(descendants(pid)))}
}

// goroutines ends a process with SIGQUIT and counts the goroutines in its last words.
func goroutines(c *client) float64 {
	check(c.cmd.Process.Signal(syscall.SIGQUIT))
	select {
	case <-c.ended:
	case <-time.After(quitTime):
		failf("the process outlived SIGQUIT by %s", quitTime)
	}
	_ = c.cmd.Wait()
	n := bytes.Count(c.log.Bytes(), []byte("\ngoroutine "))
	if n == 0 {
		failf("SIGQUIT was answered without a trace: %s", c.log.String())
	}
	return float64(n)
}

// workingIn returns the processes whose working directory is in a folder.
func workingIn(dir string) (out []int) {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		var pid int
		if to, err := os.Readlink(link); err == nil && strings.HasPrefix(to, dir) {
			if _, err := fmt.Sscanf(link, "/proc/%d/cwd", &pid); err == nil {
				out = append(out, pid)
			}
		}
	}
	return out
}
