package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

const howVSCode = "The panel as it ships in a headless Chromium (bench/vscode/panel.mjs): an answer of 20,000 deltas at 1,000 a second, and 5,000 entries scrolled through; a " +
	"frame counts by the longest task of the page's main thread in it, in processor time from Chromium's own trace, \"by the clock\" is the same with what else the machine does in it. " +
	"Then a real workbench (bench/vscode/host.mjs): activation as VS Code counts it, from the click to a panel that can be typed into, and what a session of 5,000 entries adds to the heap of a host that has an extension without code in our place. " +
	"Last what a person waits for in it (bench/vscode/review.mjs), by the clock: from the first piece of a model's answer to the frame that shows it; from the sidecar's question to the frame that shows the first Accept, and from the key that accepts to the file on the disk."

const howNvim = "bench/nvim/bench.lua in each Neovim there is, headless. A pause is the longest time between two ticks of a 1 ms timer while the work goes on: what a person " +
	"typing would feel; beside it the processor time of the worst stretch, which other work on the machine does not lengthen."

// script runs a program of bench's own and gives what it wrote into the file it was told of.
func (b *bench) script(into any, name string, args ...string) {
	out := filepath.Join(b.dir, "out.json")
	_ = os.Remove(out)
	cmd := exec.CommandContext(b.ctx, name, args...)
	cmd.Env = append(os.Environ(), "PILLION_BENCH_JSON="+out, "PILLION_BIN="+b.bin)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err := cmd.Run()
	if err == nil {
		var data []byte
		if data, err = os.ReadFile(out); err == nil {
			err = json.Unmarshal(data, into)
		}
	}
	if err != nil {
		text := said.Bytes()
		failf("%s %v: %w\n%s", name, args, err, text[max(0, len(text)-2000):])
	}
}

func (b *bench) vscode() {
	if _, err := os.Stat(".cache/vscode"); err != nil {
		b.missing = "there is no workbench; `scripts/setup-vscode.sh .cache/vscode` gets one."
		return
	}
	type frames struct{ Longest, WallLongest, Over16, Frames, Blank float64 }
	var panel struct {
		Open5000    float64
		Scroll      frames
		Stream20000 frames
		Chromium    string
	}
	var stream, wall, open, scroll, late, blank Samples
	for range 2 { // each draws thousands of frames
		b.script(&panel, "node", "bench/vscode/panel.mjs")
		stream, wall = append(stream, panel.Stream20000.Longest), append(wall, panel.Stream20000.WallLongest)
		open, scroll = append(open, panel.Open5000), append(scroll, panel.Scroll.Longest)
		late, blank = append(late, 100*panel.Scroll.Over16/panel.Scroll.Frames), append(blank, panel.Scroll.Blank)
	}
	b.add(Row{What: "20,000 deltas in the panel: longest frame", Unit: "ms", Ours: stream, Target: Target{AtMost: 50}, Note: "Chromium " + panel.Chromium})
	b.add(Row{What: "the same by the clock", Unit: "ms", Ours: wall})
	b.add(Row{What: "5,000 entries scrolled: longest frame", Unit: "ms", Ours: scroll})
	b.add(Row{What: "5,000 entries scrolled: frames of more than 16.7 ms", Unit: "%", Ours: late, Target: Target{AtMost: 1}})
	b.add(Row{What: "5,000 entries scrolled: frames that show an entry not drawn yet", Ours: blank})
	b.add(Row{What: "5,000 entries: snapshot to the last one drawn", Unit: "ms", Ours: open})

	entries := 5000
	if b.scale < 0.2 {
		entries = 500
	}
	var host struct {
		Activation, Panel   Samples
		Empty, Active, Full float64
	}
	b.script(&host, "node", "bench/vscode/host.mjs", strconv.Itoa(entries), strconv.Itoa(b.rounds(5)))
	b.add(Row{What: "activation of the extension", Unit: "ms", Ours: host.Activation, Target: Target{AtMost: 50}})
	b.add(Row{What: "click to a panel that can be typed into", Unit: "ms", Ours: host.Panel, Target: Target{AtMost: 1000}})
	b.add(Row{What: fmt.Sprintf("extension host's heap, %d entries", entries), Unit: "MB", Ours: Samples{host.Full}, Beside: Samples{host.Empty}, BesideName: "a host without us", Target: Target{Over: 15}})

	var review struct {
		First, Beyond, Visible, Written Samples
		Shift                           float64
	}
	b.script(&review, "node", "bench/vscode/review.mjs", strconv.Itoa(b.rounds(5)))
	b.add(Row{What: "first token: from the model's first piece to the frame that shows it", Unit: "ms", Ours: review.First, Target: Target{AtMost: 16}})
	b.add(Row{What: "a proposal visible after its check", Unit: "ms", Ours: review.Beyond, Target: Target{AtMost: 150}})
	b.add(Row{What: "10,000 lines, 3 hunks: the model's answer to visible", Unit: "ms", Ours: review.Visible, Target: Target{AtMost: 500}})
	b.add(Row{What: "10,000 lines, 3 hunks: decision to written", Unit: "ms", Ours: review.Written, Target: Target{AtMost: 200}})
	b.add(Row{What: "layout shift of the panel when the verdict arrives, score", Ours: Samples{review.Shift}})
}

func (b *bench) nvim() {
	tried := 0
	for _, program := range []string{"nvim", ".cache/nvim-0.10/nvim", ".cache/nvim-0.12/nvim"} {
		path, err := exec.LookPath(program)
		if err != nil {
			continue
		}
		if path, err = filepath.Abs(path); err != nil {
			continue
		}
		tried++
		type value struct {
			What, Unit string
			Value      float64
			Limit      float64
		}
		var all []value
		samples := map[string]Samples{}
		var version string
		for range b.rounds(5) {
			var got struct {
				Version string
				Values  []value
			}
			b.script(&got, path, "--headless", "-u", "NONE", "-i", "NONE", "-n", "--cmd", "set rtp^=extension/nvim", "-c", "luafile bench/nvim/bench.lua")
			all, version = got.Values, got.Version
			for _, v := range got.Values {
				samples[v.What] = append(samples[v.What], v.Value)
			}
		}
		for _, v := range all {
			b.add(Row{What: version + ": " + v.What, Unit: v.Unit, Ours: samples[v.What], Target: Target{AtMost: v.Limit}})
		}
	}
	if tried == 0 {
		b.missing = "there is no Neovim; `scripts/setup-nvim.sh .cache` gets three."
	}
}
