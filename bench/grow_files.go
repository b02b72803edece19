package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const howGrowFiles = "Generated trees of files of 1 KB, 50 a folder, page cache warm, the rare word and the rare name in ten of them. grep and glob through " +
	"`pillion tool call --jsonl` beside rg with the same flags; a new session, and what `@` offers after the first letters, over ACP; what the process holds afterwards. " +
	"The exponent is the slope through the medians where both axes are logarithmic: 0 does not grow, 1 is proportional."

func (b *bench) growFiles() {
	for _, size := range b.sizes(1_000, 10_000, 100_000) {
		cwd := b.project(fmt.Sprint("files", size))
		b.flat(cwd, size)
		l := b.toolCalls(b.home("files", map[string]any{"lsp": false}), cwd)
		rg := func(args ...string) func() float64 { return b.ripgrep(cwd, args...) }
		found := func(tool, pattern string) func() float64 {
			return func() float64 {
				out, took := l.call(tool, map[string]any{"pattern": pattern})
				if strings.Count(out, "rare") < 10 {
					failf("%s of %s in %d files found too little:\n%s", tool, pattern, size, out)
				}
				return took
			}
		}
		n := b.rounds(max(6, 30_000/size*2))
		n = min(n, 20)
		rg("--count", "--regexp=rare_word", "./")() // into the page cache
		s := inTurns(n, found("grep", "rare_word"), rg("--line-number", "--with-filename", "--no-heading", "--regexp=rare_word", "./"))
		g := inTurns(n, found("glob", "**/rare*"), rg("--files", "--glob=**/rare*"))
		l.close()

		m := newModel()
		c := b.agent(b.home("files-acp", m.config()), b.bin, "acp")
		c.initialize()
		var first, mention Samples
		session := ""
		for range n {
			first = append(first, timed(func() { session = c.newSession(cwd) }))
		}
		b.mention(c, session, "rar") // lists the files
		for range n {
			mention = append(mention, b.mention(c, session, "rar"))
		}
		mem, err := memoryOf(c.cmd.Process.Pid)
		check(err)
		c.close()
		m.close()
		check(os.RemoveAll(cwd))
		b.grow("files", size,
			measured{what: "grep of a rare word", unit: "ms", ours: s[0], peer: s[1], peerName: "rg"},
			measured{what: "glob of ten files", unit: "ms", ours: g[0], peer: g[1], peerName: "rg --files"},
			measured{what: "a new session", unit: "ms", ours: first},
			measured{what: "what @ offers", unit: "ms", ours: mention},
			measured{what: "resident afterwards", unit: "MB", ours: Samples{mem.rss}},
		)
	}
}

// mention asks what @ offers.
func (b *bench) mention(c *client, session, query string) float64 {
	began := time.Now()
	raw, at, err := c.call("_pillion/file/search", map[string]any{"sessionId": session, "query": query, "kinds": []string{"file"}, "limit": 20})
	check(err)
	var r struct{ Matches []json.RawMessage }
	check(json.Unmarshal(raw, &r))
	if len(r.Matches) < 10 {
		failf("@%s offers %d files", query, len(r.Matches))
	}
	return ms(at.Sub(began))
}

// flat writes a tree of small files, ten of them rare.
func (b *bench) flat(root string, files int) {
	line := "some words of a source file, as they stand everywhere (%d)\n"
	for i := range files {
		if i%50 == 0 {
			check(os.MkdirAll(filepath.Join(root, fmt.Sprintf("d%d", i/50%40), fmt.Sprintf("p%d", i/50)), 0o755))
		}
		name, text := fmt.Sprintf("f%d.go", i), strings.Repeat(fmt.Sprintf(line, i), 17)
		if i%(files/10) == 0 {
			name, text = "rare"+name, text+"rare_word\n"
		}
		check(os.WriteFile(filepath.Join(root, fmt.Sprintf("d%d", i/50%40), fmt.Sprintf("p%d", i/50), name), []byte(text), 0o644))
	}
}

// sizes are those that a short run has time for.
func (b *bench) sizes(all ...int) []int {
	if b.scale < 0.2 {
		return all[:min(2, len(all))]
	}
	return all
}
