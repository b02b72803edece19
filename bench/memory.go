package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

const howMemory = "The Go module " + largeModule + " in an editor: a minimal client starts gopls, opens `rest/request.go` and changes it three times. Beside it Pillion works there: the agent edits the same file in three turns, and each change is approved when its verdict is final. Memory is what processes have alone (Private in smaps_rollup), of the editor's gopls, of Pillion, and of all that they have started. *At work* is two seconds after the last turn; *at rest* is when Pillion has stopped its gopls because nobody needed it (`lsp_idle_timeout`, ten minutes by default, here ten seconds). *The next verdict* is the first one after that, its gopls' start included. Both gopls have one cache on disk, as a person's have."

// serverMemory measures what the language server of an editor and that of Pillion take on a large module.
func (b *bench) serverMemory() {
	c := goCorpus(largeModule)
	dir, err := corpusDir(c)
	check(err)
	fetched, _, err := fetchOnce(b.ctx, c, dir)
	check(err)
	root := b.project("module") // a copy, which is edited
	check(copySources(fetched, root, nil))
	var gopls language
	for _, l := range languages() {
		if l.id == "gopls" {
			gopls = l
		}
	}
	gopls.file = "rest/request.go"
	path := filepath.Join(root, filepath.FromSlash(gopls.file))
	base, err := os.ReadFile(path)
	check(err)

	cache := filepath.Join(b.dir, "gopls")
	check(os.Setenv("GOPLSCACHE", cache))
	defer os.Unsetenv("GOPLSCACHE")
	editor := b.rawServer(gopls, root, string(base))
	defer editor.close()
	for i := range 3 {
		check(editor.change(mistakeIn(gopls, i)))
		check(editor.until(func() bool { return len(editor.tokens) == 0 && strings.Contains(editor.pushed, name(i)) }, "the diagnosis"))
	}
	time.Sleep(2 * time.Second)
	alone := Samples{treeMemory(editor.cmd.Process.Pid)}

	m := newModel()
	defer m.close()
	config := m.config()
	delete(config, "lsp")
	config["lsp_idle_timeout"] = 10_000
	env := append(b.home("memory", config), "GOPLSCACHE="+cache)
	for _, name := range []string{"GOPATH", "GOMODCACHE", "GOCACHE"} {
		value, err := exec.CommandContext(b.ctx, "go", "env", name).Output()
		check(err)
		env = append(env, name+"="+strings.TrimSpace(string(value)))
	}
	p := b.agent(env, b.bin, "acp")
	defer p.close()
	p.initialize()
	session := p.newSession(root)
	final := make(chan struct{}, 100) // final verdicts that were shown, as text: this client announces nothing
	verdict := regexp.MustCompile(`introduces [0-9]`)
	p.listen(func(line []byte, _ time.Time) {
		if verdict.Match(line) {
			final <- struct{}{}
		}
	})
	p.beforeAnswering(func(params json.RawMessage) {
		if !verdict.Match(params) {
			<-final
		}
	})
	// turn edits the file once and returns how long the turn took.
	turn := func(i int) float64 {
		for len(final) > 0 {
			<-final
		}
		const at = "type Request struct {\n"
		m.Add(calls("read", map[string]any{"filePath": path, "limit": 10}), calls("edit", map[string]any{"filePath": path, "oldString": at, "newString": at + fmt.Sprintf("\tadded%d int\n", i)}), says)
		began := time.Now()
		_, err := p.prompt(session, "edit it")
		check(err)
		return ms(time.Since(began))
	}
	for i := range 3 {
		turn(i)
	}
	time.Sleep(2 * time.Second)
	both := func() Samples {
		return Samples{treeMemory(editor.cmd.Process.Pid) + treeMemory(p.cmd.Process.Pid)}
	}
	const beside = "the editor's gopls alone"
	b.add(Row{What: "the editor's gopls and Pillion at work", Unit: "MB", Ours: both(), Beside: alone, BesideName: beside, Target: Target{Ratio: 1.15}})
	for limit := time.Now().Add(3 * time.Minute); len(serversBelow(p.cmd.Process.Pid)) > 0; time.Sleep(time.Second) {
		if time.Now().After(limit) {
			failf("gopls was not stopped")
		}
	}
	b.add(Row{What: "the editor's gopls and Pillion at rest", Unit: "MB", Ours: both(), Beside: alone, BesideName: beside, Target: Target{Ratio: 1.15}})
	b.add(Row{What: "the next verdict, with its turn", Unit: "ms", Ours: Samples{turn(3)}, Beside: Samples{turn(4)}, BesideName: "while gopls runs"})
}

// mistakeIn is the last line of a file with a numbered mistake.
func mistakeIn(l language, i int) string { return fmt.Sprintf(l.error, name(i)) + "\n" }

// treeMemory is what a process and all that it has started have alone, in MB.
func treeMemory(pid int) (sum float64) {
	own, err := memoryOf(pid)
	check(err)
	sum = own.private
	for _, n := range descendants(pid) {
		if m, err := memoryOf(n); err == nil { // else it has ended
			sum += m.private
		}
	}
	return sum
}
