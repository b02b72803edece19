package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const howEdit = "`edit` through `pillion tool call --jsonl --no-lsp --approve all` on a file of 10,000 lines (430 KB): from the line's last byte to " +
	`the answer's: exact match, change set, rules, diff, journal, write with fsync. Beside it what the disk takes: read, replace,
write to a temporary file, fsync, rename, in the same file system.`

// goLines is source text of n lines; every line is its own.
func goLines(n int) string {
	var s strings.Builder
	for i := range n {
		switch i % 5 {
		case 0:
			fmt.Fprintf(&s, "func number%d(value int) int {\n", i)
		case 1:
			fmt.Fprintf(&s, "\tif value > %d { // a comment of some length\n", i)
		case 2:
			fmt.Fprintf(&s, "\t\treturn value * %d\n", i)
		case 3:
			s.WriteString("\t}\n")
		case 4:
			fmt.Fprintf(&s, "\treturn helper(value, %d, \"text\") }\n", i)
		}
	}
	return s.String()
}

func (b *bench) edit() {
	cwd := b.project("project")
	env := b.home("edit", map[string]any{"lsp": false})
	path, limit := filepath.Join(cwd, "big.go"), filepath.Join(cwd, "limit.go")
	text := goLines(10_000)
	b.write(path, text)
	b.write(limit, text)
	l := b.toolCalls(env, cwd)
	defer l.close()
	l.call("read", map[string]any{"filePath": path, "limit": 5})
	flip := [2]string{"return value * 5002\n", "return value * 5002 // changed\n"}
	i := 0
	s := inTurns(b.rounds(60), func() float64 {
		i++
		_, took := l.call("edit", map[string]any{"filePath": path, "oldString": flip[(i+1)%2], "newString": flip[i%2]})
		return took
	}, func() float64 {
		return timed(func() {
			text, err := os.ReadFile(limit)
			check(err)
			check(writeSynced(limit, bytes.Replace(text, []byte("* 5002"), []byte("* 5002 "), 1)))
		})
	})
	b.add(Row{What: "edit on 10,000 lines", Unit: "ms", Ours: s[0], Beside: s[1], BesideName: "read, write, fsync, rename", Target: Target{AtMost: 10}})

	b.write(path, text) // as it was, however many rounds there were
	l.call("read", map[string]any{"filePath": path, "limit": 5})
	multi := make([]map[string]any, 10)
	j := 0
	var all Samples
	for range b.rounds(20) {
		for k := range multi {
			line := fmt.Sprintf("return value * %d", 1002+500*k)
			old, now := line+"\n", line+" // c\n"
			if j%2 == 1 {
				old, now = now, old
			}
			multi[k] = map[string]any{"oldString": old, "newString": now}
		}
		j++
		_, took := l.call("multiedit", map[string]any{"filePath": path, "edits": multi})
		all = append(all, took)
	}
	b.add(Row{What: "multiedit of ten passages of it", Unit: "ms", Ours: all})
}

func writeSynced(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".bench-*")
	if err != nil {
		return err
	}
	if _, err := f.Write(text); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
