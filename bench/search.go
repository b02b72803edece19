package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const howSearch = "A generated tree of 1,000 folders and 50,000 files of 0.5 to 8 KB, the rare word in ten of them, page cache warm. Ours through " +
	"`pillion tool call --jsonl`, the process running already: rules, the search, sorting by time, the answer. Beside it plain rg with the same flags " +
	"(--hidden --no-require-git --glob=!.git), its output to a file; `rg --files -g` for glob. Memory: the peak of the process over what it had before, on a file of 1 GB, " +
	"with the Go engine, since ripgrep would be another process."

// warmSearch is the answer to "would an index kept fresh by watching be faster?".
const warmSearch = "**No index is kept.** A list of files, fed by fsnotify, saves the walk and nothing else: for glob that is what is left of a few milliseconds, ours being quicker " +
	"than rg's already; for grep it is the difference between `rg --files` and nothing, a sixth of what `rg` takes for a rare word. The rest is reading 50,000 files, which only an index of " +
	"their contents avoids: tens of megabytes for every project, filled before it is of use, and wrong as soon as one change is missed. fsnotify misses them where its queue overflows, on network " +
	"and container mounts, and beyond the kernel's number of watches (one a folder). To an agent a stale answer costs more than these milliseconds, so every search walks, at rg's speed, and is never stale."

func (b *bench) search() {
	cwd := b.project("tree")
	count := b.tree(cwd)
	withRG := b.toolCalls(b.home("rg", map[string]any{"lsp": false}), cwd)
	defer withRG.close()
	withGo := b.toolCalls(b.home("go", map[string]any{"lsp": false, "ripgrep": "off"}), cwd)
	defer withGo.close()
	rg := func(args ...string) func() float64 {
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

	b.large()
}

// tree writes the files and returns how many.
func (b *bench) tree(root string) int {
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
	folders := 1000
	if b.scale < 0.2 {
		folders = 200
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
