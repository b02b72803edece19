package lspbridge

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/tools/change"
)

// A real server that was stopped because nobody needed it says the same of the next edit, whatever happens at its stop and its next start.
func TestVerdictAfterRest(t *testing.T) {
	for id, c := range map[string]struct {
		files         map[string]string
		edited, after string // a declaration that another file uses is taken away
	}{
		"gopls":      {map[string]string{"go.mod": "module x\n\ngo 1.24\n", "lib/lib.go": "package lib\n\nfunc Twice(n int) int { return 2 * n }\n", "main.go": "package main\n\nimport \"x/lib\"\n\nfunc main() { println(lib.Twice(2)) }\n"}, "lib/lib.go", "package lib\n\nfunc Double(n int) int { return 2 * n }\n"},
		"typescript": {map[string]string{"tsconfig.json": `{"compilerOptions":{"strict":true}}`, "lib.ts": "export function twice(n: number) { return 2 * n; }\n", "main.ts": "import { twice } from './lib';\nconsole.log(twice(2));\n"}, "lib.ts", "export function double(n: number) { return 2 * n; }\n"},
		"pyright":    {map[string]string{"pyproject.toml": "[tool.pyright]\n", "lib.py": "def twice(n: int) -> int:\n    return 2 * n\n", "main.py": "from lib import twice\n\nprint(twice(2))\n"}, "lib.py", "def double(n: int) -> int:\n    return 2 * n\n"},
	} {
		t.Run(id, func(t *testing.T) {
			m, root := project(t, id, c.files)
			m.o.Idle = time.Second // the least that the timer knows
			path := filepath.Join(root, filepath.FromSlash(c.edited))
			check := func() string {
				for {
					d := m.Check(longer(t), []Proposal{{Path: path, Text: c.after}})
					if d.Certainty == change.Pending && t.Context().Err() == nil {
						continue // it was stopped under this question more than once
					}
					return string(d.Certainty) + " " + d.Reason + "\n" + messages(d.Introduced)
				}
			}
			want := check()
			if want[:6] != "fresh " || len(want) < 20 {
				t.Fatal(want)
			}
			s := m.slotsFor(path)[0]
			// running is the process of the present run, which check has just used: it may be at its end already.
			running := func() *client {
				for {
					s.mu.Lock()
					c, next := s.cur, s.changed
					s.mu.Unlock()
					if c != nil {
						return c
					}
					s.start()
					<-next
				}
			}
			<-running().proc.exited
			if got := check(); got != want {
				t.Errorf("after rest:\n%s\nbefore:\n%s", got, want)
			}

			m.Close(context.Background())
			m = New(Options{Root: root, Bin: m.o.Bin, Trusted: true, Idle: -1})
			defer m.Close(context.Background())
			s = m.slotsFor(path)[0]
			// Killed while it is being stopped.
			c := running()
			check()
			stopped := make(chan struct{})
			go func() { s.stop(context.Background(), "idle"); close(stopped) }()
			c.proc.kill()
			<-stopped
			// Two questions at once, and a stop while they wait for the start.
			var got [2]string
			var wg sync.WaitGroup
			for i := range got {
				wg.Go(func() { got[i] = check() })
			}
			for s.busy() == "" && s.current() == nil {
				s.start()
			}
			s.stop(context.Background(), "idle")
			wg.Wait()
			if got[0] != want || got[1] != want {
				t.Errorf("after a kill and a stop:\n%s\n%s\nbefore:\n%s", got[0], got[1], want)
			}
		})
	}
}
