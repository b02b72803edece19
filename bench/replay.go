package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/pillion-dev/pillion/bench/replay"
)

const howReplay = `Every hunk between two versions of public modules becomes an edit: lines of the older version are quoted, with one to four
lines around them, and the newer lines are given. Then the quotation is damaged as models damage it (indentation, blanks, typography, escapes, a word
misremembered, lines left out), or the file is changed since it was quoted. Each case has one right text. Counted are **right / refused / wrong**: a refusal
costs a model one more call, a wrong text that is reported as a success costs a person's work. Beside it the cascade of OpenCode's edit, rendered from the
description of its behaviour (` + "`tools/replace/opencode`" + `), the rules of Codex's apply_patch, and plain exact matching.`

const afterReplay = "No wrong text is the goal. It costs refusals: what could be meant in two ways is refused with the lines as they are, so that the next attempt is exact."

// histories are modules in two versions, Go's and npm's: Go, JavaScript, TypeScript, Python, YAML, Markdown.
var histories = struct{ golang, npm [][3]string }{
	golang: [][3]string{
		{"github.com/spf13/cobra", "v1.7.0", "v1.8.1"}, {"github.com/gorilla/mux", "v1.7.4", "v1.8.1"}, {"go.uber.org/zap", "v1.24.0", "v1.27.0"},
		{"github.com/gin-gonic/gin", "v1.8.2", "v1.10.0"}, {"golang.org/x/net", "v0.20.0", "v0.30.0"}, {"github.com/sirupsen/logrus", "v1.6.0", "v1.9.3"},
	},
	npm: [][3]string{{"express", "4.17.3", "4.19.2"}, {"yaml", "2.2.2", "2.5.0"}, {"node-gyp", "9.0.0", "10.2.0"}, {"chalk", "4.1.2", "5.3.0"}, {"eslint", "8.30.0", "8.57.0"}, {"ajv", "8.6.0", "8.17.1"}},
}

const replayCases = 8000 // of all that the histories give, drawn with a fixed seed

func (b *bench) replay() {
	r := rand.New(rand.NewPCG(18, 2026))
	var cases []replay.Case
	add := func(before, after string) {
		more, err := replay.Between(r, before, after)
		check(err)
		cases = append(cases, more...)
	}
	for _, h := range histories.golang {
		add(b.goModule(h[0], h[1]), b.goModule(h[0], h[2]))
	}
	for _, h := range histories.npm {
		add(b.npmPackage(h[0], h[1]), b.npmPackage(h[0], h[2]))
	}
	r.Shuffle(len(cases), func(i, j int) { cases[i], cases[j] = cases[j], cases[i] })
	if most := max(500, int(replayCases*b.scale)); len(cases) > most {
		cases = cases[:most]
	}
	t := replay.Score(cases, replay.Peers)
	ours := t.Total(replay.Ours.Name)
	fmt.Print(t)
	b.table = t.String()
	share := func(n int) Samples { return Samples{100 * float64(n) / float64(len(cases))} }
	best, name := 0, ""
	for _, p := range replay.Peers[2:] {
		if n := t.Total(p.Name)[replay.Right]; n > best {
			best, name = n, p.Name
		}
	}
	b.add(Row{What: "right texts", Unit: "% of the cases", Ours: share(ours[replay.Right]), Beside: share(best), BesideName: name, Target: Target{AtLeast: 100 * float64(best) / float64(len(cases))},
		Note: fmt.Sprintf("%d cases, %d wrong", len(cases), ours[replay.Wrong])})
	if ours[replay.Wrong] > 0 {
		failf("%d wrong texts were written", ours[replay.Wrong])
	}
}

// goModule is the folder of a module in the module cache.
func (b *bench) goModule(path, version string) string {
	cmd := exec.CommandContext(b.ctx, "go", "mod", "download", "-json", path+"@"+version)
	cmd.Dir = b.dir
	out, err := cmd.Output()
	var got struct{ Dir, Error string }
	if json.Unmarshal(out, &got) != nil || err != nil || got.Dir == "" {
		failf("go mod download %s@%s: %v %s", path, version, err, got.Error)
	}
	return got.Dir
}

// npmPackage is the folder of an unpacked package.
func (b *bench) npmPackage(name, version string) string {
	dir := filepath.Join(b.dir, name+"-"+version)
	check(os.MkdirAll(dir, 0o755))
	cmd := exec.CommandContext(b.ctx, "npm", "pack", "--silent", name+"@"+version)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		failf("npm pack %s@%s: %v", name, version, err)
	}
	archive := strings.TrimSpace(string(out))
	if tar, err := exec.CommandContext(b.ctx, "tar", "-xzf", filepath.Join(dir, archive), "-C", dir).CombinedOutput(); err != nil {
		failf("tar: %v %s", err, tar)
	}
	return filepath.Join(dir, "package")
}
