package main

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pillion-dev/pillion/sidecar/config"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/custom"
	"github.com/pillion-dev/pillion/tools/mcp"
	"github.com/pillion-dev/pillion/tools/permission"
)

const howExtend = "A custom tool in TypeScript, from nothing running to the tool being known (bundling, Node, zod, the file), beside Node starting and ending; " +
	"then calls of it, arguments checked. Calls of an MCP server's tool (`pillion mcp`, reading a small file) through tools/mcp beside the SDK's client alone, each with a server of its own. " +
	"Configuration: one file, 100 agents and 100 commands."

func (b *bench) extend() {
	dir := b.project("extend")
	b.write(filepath.Join(dir, "tools", "n.ts"), `import { tool } from "@opencode-ai/plugin"
export default tool({ description: "d", args: { n: tool.schema.number() }, async execute({ n }) { return String(n) } })`)
	cache := filepath.Join(b.dir, "cache")
	open := func() (*custom.Host, tools.Tool) {
		h := custom.New(custom.Options{Dirs: []string{dir}, Directory: dir, Worktree: dir, CacheDir: cache})
		all := h.Tools(b.ctx)
		if len(all) != 1 {
			panic(fmt.Sprint("custom tools: ", len(all)))
		}
		return h, all[0]
	}
	s := inTurns(b.rounds(20), func() float64 {
		began := time.Now()
		h, _ := open()
		took := ms(time.Since(began))
		h.Close()
		return took
	}, func() float64 {
		return timed(func() { check(exec.CommandContext(b.ctx, "node", "-e", "0").Run()) })
	})
	b.add(Row{What: "JavaScript host and first tool", Unit: "ms", Ours: s[0], Beside: s[1], BesideName: "node -e 0", Target: Target{AtMost: 150}})

	h, tool := open()
	defer h.Close()
	s = inTurns(b.rounds(300), b.call(tool, `{"n":5}`))
	b.add(Row{What: "call of a custom tool", Unit: "ms", Ours: s[0], Target: Target{AtMost: 5}})

	b.write(filepath.Join(dir, "a.txt"), "one\n")
	lend := []string{b.bin, "mcp", "--tools", "read", "--cwd", dir, "--approve", "all"}
	set := mcp.New(mcp.Options{Root: dir, Servers: []mcp.Server{{Name: "self", Command: lend}}})
	defer set.Close(b.ctx)
	set.Start()
	set.Ready(b.ctx, time.Minute)
	theirs := set.Tools(b.ctx, "s")
	if len(theirs) != 1 {
		panic(fmt.Sprint("MCP tools: ", len(theirs)))
	}
	client, err := sdk.NewClient(&sdk.Implementation{Name: "raw", Version: "1"}, nil).Connect(b.ctx, &sdk.CommandTransport{Command: exec.CommandContext(b.ctx, lend[0], lend[1:]...)}, nil)
	check(err)
	defer client.Close()
	s = inTurns(b.rounds(300), b.call(theirs[0], `{"filePath":"a.txt"}`), func() float64 {
		return timed(func() {
			r, err := client.CallTool(b.ctx, &sdk.CallToolParams{Name: "read", Arguments: json.RawMessage(`{"filePath":"a.txt"}`)})
			check(err)
			if r.IsError {
				panic("read failed")
			}
		})
	})
	b.add(Row{What: "call of an MCP tool", Unit: "ms", Ours: s[0], Beside: s[1], BesideName: "the SDK alone", Target: Target{Over: 3}})

	user := filepath.Join(b.dir, "user")
	b.write(filepath.Join(user, "pillion.jsonc"), `{"model": "a/b"}`)
	for i := range 100 {
		text := fmt.Sprintf("---\ndescription: number %d\n---\n\nDo the work of number %d.\n", i, i)
		b.write(filepath.Join(user, "agents", fmt.Sprintf("a%d.md", i)), text)
		b.write(filepath.Join(user, "commands", fmt.Sprintf("c%d.md", i)), text)
	}
	s = inTurns(b.rounds(40), func() float64 {
		return timed(func() {
			c, problems := config.Load(config.Sources{Cwd: dir, Root: dir, UserDir: user, Env: func(string) string { return "" }})
			if len(problems) > 0 || len(c.Agent) < 100 || len(c.Command) < 100 {
				panic(fmt.Sprint(len(c.Agent), len(c.Command), problems))
			}
		})
	})
	b.add(Row{What: "configuration of 201 files", Unit: "ms", Ours: s[0], Target: Target{AtMost: 50}})
}

// call is a call of a tool, without a person.
func (b *bench) call(t tools.Tool, input string) func() float64 {
	gate := permission.NewGate(permission.GateOptions{Rules: func() permission.Ruleset {
		return permission.Ruleset{{Permission: t.ID, Pattern: "*", Action: permission.Allow}}
	}})
	return func() float64 {
		return timed(func() {
			_, err := tools.Invoke(b.ctx, t, json.RawMessage(input), &tools.Call{SessionID: "s", CallID: "c", Tool: t.ID, Host: tools.Host{Gate: gate}}, tools.CapOptions{})
			check(err)
		})
	}
}
