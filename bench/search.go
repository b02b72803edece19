package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const howSearch = "A generated tree of 1,000 folders and 50,000 files of 0.5 to 8 KB, the rare word in ten of them, page cache warm. Ours through " +
	"`pillion tool call --jsonl`, the process running already: rules, the search, sorting by time, the answer. Beside it plain rg with the same flags " +
	"(--hidden --no-require-git --glob=!.git), its output to a file; `rg --files -g` for glob. Memory: the peak of the process over what it had before, on a file of 1 GB, " +
	"with the Go engine, since ripgrep would be another process."

// warmSearch says what the rows with an index mean.
const warmSearch = "**An index is kept of large projects**, where the system reports every change: of a list that is held equal to the disk, and of trigrams that say which files can match. " +
	"Each candidate is searched as it is, so no answer is stale; the rows without an index are what a search takes until there is one, and where it cannot be used. It is made by a process of the lowest priority; " +
	"the processor time of its row is that process's own."

func (b *bench) search() {
	cwd := b.project("tree")
	count := b.tree(cwd, 1000)
	withRG := b.toolCalls(b.home("rg", map[string]any{"lsp": false, "search_index": false}), cwd)
	defer withRG.close()
	withGo := b.toolCalls(b.home("go", map[string]any{"lsp": false, "ripgrep": "off", "search_index": false}), cwd)
	defer withGo.close()
	rg := func(args ...string) func() float64 { return b.ripgrep(cwd, args...) }
	tool := func(l *lines, name, pattern, want string) func() float64 {
		return func() float64 {
			out, took := l.call(name, map[string]any{"pattern": pattern})
			if strings.Count(out, want) < 10 {
				failf("%s %s found too little:\n%s", name, pattern, out)
			}
			return took
		}
	}
	rg("--count", "--regexp=rare_word_here", "./")() // from the disk into the page cache, on a slow day for minutes
	n := b.rounds(20)
	note := fmt.Sprintf("%d files", count)
	s := inTurns(n, tool(withRG, "grep", "rare_word_here", "rare_word_here"), rg("--line-number", "--with-filename", "--no-heading", "--regexp=rare_word_here", "./"), tool(withGo, "grep", "rare_word_here", "rare_word_here"))
	b.add(Row{What: "grep of a rare word", Unit: "ms", Ours: s[0], Beside: s[1], BesideName: "rg", Target: Target{Ratio: 1.10}, Note: note})
	b.add(Row{What: "the same, engine in Go", Unit: "ms", Ours: s[2], Beside: s[1], BesideName: "rg", Target: Target{Ratio: 2}})
	s = inTurns(n, tool(withRG, "glob", "**/rare*", "/rare"), rg("--files", "--glob=**/rare*"))
	b.add(Row{What: "glob of ten files", Unit: "ms", Ours: s[0], Beside: s[1], BesideName: "rg --files", Target: Target{Ratio: 1.10}})
	s = inTurns(n, tool(withRG, "glob", "**/*.go", ".go"), rg("--files", "--glob=**/*.go"), rg("--files", "--sortr=modified", "--glob=**/*.go"))
	b.add(Row{What: "glob of half of the files", Unit: "ms", Ours: s[0], Beside: s[1], BesideName: "rg --files", Target: Target{Ratio: 1.10}, Note: "ours sorted by time: 25,000 calls of stat"})
	b.add(Row{What: "the same", Unit: "ms", Ours: s[0], Beside: s[2], BesideName: "rg --files --sortr=modified"})
	s = inTurns(n, tool(withRG, "grep", "context", "context"), rg("--line-number", "--with-filename", "--no-heading", "--max-count=101", "--regexp=context", "./"), tool(withGo, "grep", "context", "context"))
	b.add(Row{What: "grep of a word in every file", Unit: "ms", Ours: s[0], Beside: s[1], BesideName: "rg", Note: "ours: the newest 100"})
	b.add(Row{What: "the same, engine in Go", Unit: "ms", Ours: s[2], Beside: s[1], BesideName: "rg"})

	b.indexed(tool)
	b.large()
}

// ripgrep runs rg in a folder, its output to a file.
func (b *bench) ripgrep(cwd string, args ...string) func() float64 {
	args = append([]string{"--no-config", "--color=never", "--hidden", "--no-require-git", "--glob=!.git"}, args...)
	return func() float64 {
		return timed(func() {
			cmd := exec.CommandContext(b.ctx, "rg", args...)
			cmd.Dir = cwd
			out, err := os.Create(filepath.Join(b.dir, "rg-out"))
			check(err)
			defer out.Close()
			cmd.Stdout = out
			check(cmd.Run())
		})
	}
}

// indexed measures searches by an index in 100,000 files, and what the index costs.
func (b *bench) indexed(tool func(l *lines, name, pattern, want string) func() float64) {
	cwd := b.project("tree-indexed")
	count := b.tree(cwd, 2000)
	note := fmt.Sprintf("%d files, by index", count)
	text := 0.0
	check(filepath.WalkDir(cwd, func(_ string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			info, err := d.Info()
			check(err)
			text += float64(info.Size())
		}
		return err
	}))

	// Making it, by the program that a session starts for it.
	env := b.home("index", map[string]any{"lsp": false})
	dir := filepath.Join(b.dir, "home-index", ".state", "pillion", "cache", "index")
	cmd := exec.CommandContext(b.ctx, b.bin, "__index", "whole", dir, cwd)
	cmd.Env = env
	check(cmd.Run())
	own := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	b.add(Row{What: "making an index: processor time", Unit: "s", Ours: Samples{own.Seconds()}, Target: Target{AtMost: 15}, Note: note})
	made, err := filepath.Glob(filepath.Join(dir, "*", "base.idx"))
	check(err)
	info, err := os.Stat(made[0])
	check(err)
	b.add(Row{What: "an index on disk", Unit: "% of the text", Ours: Samples{100 * float64(info.Size()) / text}, Target: Target{AtMost: 20}, Note: fmt.Sprintf("%.0f MB of text", text/1e6)})

	l := b.toolCalls(env, cwd)
	defer l.close()
	l.call("glob", map[string]any{"pattern": "*.none"})
	before, err := memoryOf(l.cmd.Process.Pid)
	check(err)
	rg := func(args ...string) func() float64 { return b.ripgrep(cwd, args...) }
	walked := inTurns(3, rg("--files", "--glob=**/*.go"))[0]
	// The work begins two seconds after the last search. A glob that is much quicker than a walk was answered by the index.
	for range 60 {
		time.Sleep(3 * time.Second)
		if _, took := l.call("glob", map[string]any{"pattern": "**/*.go"}); took < walked[0]/4 {
			break
		}
	}
	after, err := memoryOf(l.cmd.Process.Pid)
	check(err)
	b.add(Row{What: "memory of an index", Unit: "MB", Ours: Samples{max(0, after.rss-before.rss)}, Target: Target{AtMost: 20}, Note: note})
	n := b.rounds(20)
	s := inTurns(n, tool(l, "grep", "rare_word_here", "rare_word_here"), rg("--line-number", "--with-filename", "--no-heading", "--regexp=rare_word_here", "./"))
	b.add(Row{What: "grep of a rare word", Unit: "ms", Ours: s[0], Beside: s[1], BesideName: "rg", Target: Target{AtMost: 30}, Note: note})
	s = inTurns(n, tool(l, "grep", `rare_\w+_here$`, "rare_word_here"), rg("--line-number", "--with-filename", "--no-heading", `--regexp=rare_\w+_here$`, "./"))
	b.add(Row{What: "grep of a selective expression", Unit: "ms", Ours: s[0], Beside: s[1], BesideName: "rg", Target: Target{AtMost: 30}, Note: note})
	s = inTurns(n, tool(l, "grep", "context", "context"), rg("--line-number", "--with-filename", "--no-heading", "--max-count=101", "--regexp=context", "./"))
	b.add(Row{What: "grep of a word in every file", Unit: "ms", Ours: s[0], Beside: s[1], BesideName: "rg", Note: note + "; ours: the newest 100"})
	s = inTurns(n, tool(l, "glob", "**/*.go", ".go"), rg("--files", "--glob=**/*.go"))
	b.add(Row{What: "glob of half of the files", Unit: "ms", Ours: s[0], Beside: s[1], BesideName: "rg --files", Target: Target{AtMost: 10}, Note: note + ", newest first"})
}

// tree writes so many folders of 50 files and returns how many files.
func (b *bench) tree(root string, folders int) int {
	r := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("func return value index buffer context error package import string count server client")
	var text strings.Builder
	for text.Len() < 32<<10 {
		for range 8 {
			text.WriteString(words[r.IntN(len(words))] + " ")
		}
		text.WriteByte('\n')
	}
	body := text.String()
	if b.scale < 0.2 {
		folders /= 5
	}
	n := 0
	for d := range folders {
		for i := range 50 {
			from := r.IntN(20 << 10)
			t := body[from : from+500+r.IntN(7500)]
			name := fmt.Sprintf("f%d.%s", i, []string{"go", "txt"}[i%2])
			if n%(folders*5) == 7 {
				t += "\nrare_word_here\n"
				name = "rare" + name
			}
			b.write(filepath.Join(root, fmt.Sprintf("d%d/s%d/t%d", d%20, d/20%10, d), name), t)
			n++
		}
	}
	b.write(filepath.Join(root, ".gitignore"), "*.log\nnode_modules/\n/dist\n")
	return n
}

// large measures what a file of 1 GB costs in memory.
func (b *bench) large() {
	cwd := b.project("large")
	size := 1 << 30
	if b.scale < 1 {
		size = 1 << 27
	}
	path := filepath.Join(cwd, "large.txt")
	f, err := os.Create(path)
	check(err)
	block := goLines(10_000)
	for done := 0; done < size; done += len(block) {
		_, err := f.WriteString(block)
		check(err)
	}
	_, err = f.WriteString("rare_word_here\n")
	check(err)
	check(f.Close())
	for _, c := range []struct {
		tool  string
		input map[string]any
	}{
		{"read", map[string]any{"filePath": path, "offset": 1_000_000, "limit": 20}},
		{"grep", map[string]any{"pattern": "rare_word_here", "path": path}},
		{"edit", map[string]any{"filePath": path, "oldString": "rare_word_here", "newString": "x"}},
	} {
		l := b.toolCalls(b.home("go", map[string]any{"lsp": false, "ripgrep": "off"}), cwd)
		l.call("glob", map[string]any{"pattern": "*"})
		pid := l.cmd.Process.Pid
		before, err := memoryOf(pid)
		check(err)
		check(forgetPeak(pid))
		took := l.try(c.tool, c.input)
		after, err := memoryOf(pid)
		check(err)
		l.close()
		b.add(Row{What: fmt.Sprintf("%s of a file of %d MB: memory", c.tool, size>>20), Unit: "MB", Ours: Samples{max(0, after.peak-before.rss)}, Target: Target{AtMost: 64}, Note: took})
	}
}
