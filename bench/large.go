package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/builtin"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/files"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/symbol"
)

// largeModule is a module of one author with more Go than most people work on at a time.
const largeModule = "k8s.io/client-go@v0.31.0"

const howLarge = "The Go module " + largeModule + ": a mistake is put at the end of `rest/request.go`, and a function of `rest/config.go` is renamed that another package uses. *Parsing alone* is what a person reads while the server still loads. *The package's word* is what types alone tell of the changed package beside the pending verdict, which is not the servers' verdict and does not count as one: the time is from the edit to the first card that names the mistake, the second included that Pillion waits for gopls first. *gopls' verdict* is the final one, measured in the same question. *Cold*: gopls has just been started and its cache is empty; *warm cache*: it has just been started again; *running*: it has loaded the module. The start of the server is included, and a verdict that does not name the mistake ends the measurement. Beside it stands gopls alone: a minimal client starts it, opens the file, changes it, and waits for the end of the diagnosis that names the mistake. Each client has a cache of its own."

// largeVerdict measures the verdict on a large module, beside gopls alone.
func (b *bench) largeVerdict() {
	c := goCorpus(largeModule)
	dir, err := corpusDir(c)
	check(err)
	root, _, err := fetchOnce(b.ctx, c, dir)
	check(err)
	root, err = filepath.EvalSymlinks(root)
	check(err)
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		check(err)
		return string(text)
	}
	lines, sources, longest, size := 0, 0, "", 0
	check(filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || filepath.Ext(path) != ".go" {
			return err
		}
		text, err := os.ReadFile(path)
		lines, sources = lines+strings.Count(string(text), "\n"), sources+1
		if len(text) > size {
			longest, size = path, len(text)
		}
		return err
	}))
	var gopls language
	for _, l := range languages() {
		if l.id == "gopls" {
			gopls = l
		}
	}
	gopls.file = "rest/request.go"
	path, base := filepath.Join(root, filepath.FromSlash(gopls.file)), read(gopls.file)
	mistake := func(i int) string { return fmt.Sprintf(gopls.error, name(i)) + "\n" }

	text, err := os.ReadFile(longest)
	check(err)
	n := 0
	var parsed Samples
	for range b.rounds(30) {
		n++
		began := time.Now()
		said := symbol.Syntax([]symbol.Revision{{Path: path, Name: gopls.file, Old: base, New: base + fmt.Sprintf("func (%s {\n", name(n))}})
		parsed = append(parsed, ms(time.Since(began)))
		if !strings.Contains(said, "a syntax error") {
			failf("parsing says %q", said)
		}
	}
	b.add(Row{What: fmt.Sprintf("%d lines in %d files: parsing alone", lines, sources), Unit: "ms", Ours: parsed, Target: Target{AtMost: 100}, Note: gopls.file})
	parsed = nil
	for range b.rounds(10) {
		n++
		began := time.Now()
		symbol.Syntax([]symbol.Revision{{Path: longest, Name: filepath.Base(longest), Old: string(text), New: string(text) + fmt.Sprintf("func %s() {}\n", name(n))}})
		parsed = append(parsed, ms(time.Since(began)))
	}
	b.add(Row{What: "parsing alone, the longest file", Unit: "ms", Ours: parsed, Target: Target{AtMost: 100}, Note: fmt.Sprintf("%s, %d kB", filepath.Base(longest), size>>10)})

	// cache makes the servers that are started next use a folder of their own.
	cache := func(name string) { check(os.Setenv("GOPLSCACHE", filepath.Join(b.dir, name))) }
	defer os.Unsetenv("GOPLSCACHE")
	verdict := func(m *lspbridge.Manager, p lspbridge.Proposal, want string) float64 {
		ctx, cancel := context.WithTimeout(b.ctx, 10*time.Minute)
		defer cancel()
		began := time.Now()
		for {
			d := m.Check(ctx, []lspbridge.Proposal{p})
			if d.Certainty == change.Pending && ctx.Err() == nil {
				continue
			}
			if d.Certainty != change.Fresh {
				failf("%s: %s %s", largeModule, d.Certainty, d.Reason)
			}
			for _, problem := range d.Introduced {
				if strings.Contains(problem.Message, want) {
					return ms(time.Since(began))
				}
			}
			failf("%s: the verdict does not name %s", largeModule, want)
		}
	}
	started := func(use func(m *lspbridge.Manager)) {
		cache("ours")
		m := lspbridge.New(lspbridge.Options{Root: root, Bin: gopls.bins(), NoWatch: true, Idle: -1})
		defer m.Close(context.WithoutCancel(b.ctx))
		use(m)
	}
	// ours is an edit as the agent makes it: when its card first named the mistake, and when it had the final verdict.
	ours := func() (word, final float64) {
		n++
		const at = "type Request struct {"
		input, err := json.Marshal(map[string]string{"filePath": path, "oldString": at, "newString": mistake(n) + at})
		check(err)
		started(func(m *lspbridge.Manager) {
			ctx, cancel := context.WithTimeout(b.ctx, 10*time.Minute)
			defer cancel()
			began, told := time.Now(), make(chan string, 1)
			call := &tools.Call{SessionID: "s", CallID: "c", Host: tools.Host{Gate: untilTold(told)}, OnMetadata: func(u tools.Update) {
				if u.Change == nil || u.Change.Verdict == nil {
					return
				}
				v := u.Change.Verdict
				if word == 0 && v.Certainty == change.Pending && strings.Contains(v.Reason, name(n)) {
					word = ms(time.Since(began))
				}
				if final == 0 && v.Certainty != change.Pending {
					final = ms(time.Since(began))
					told <- fmt.Sprintf("%s %s %v", v.Certainty, v.Reason, v.Introduced)
				}
			}}
			env := builtin.Env{Cwd: root, Root: root, Tracker: &files.Tracker{}, Locks: &files.Locks{}, Bridge: m}
			_, err := tools.Invoke(ctx, builtin.Edit(env), input, call, tools.CapOptions{})
			if said := fmt.Sprint(err); word == 0 || final == 0 || !strings.Contains(said, "fresh") || !strings.Contains(said, name(n)) {
				failf("%s: the package's word after %v ms, the verdict after %v ms: %s", largeModule, word, final, said)
			}
		})
		return word, final
	}
	alone := func() float64 {
		n++
		cache("raw")
		began := time.Now()
		s := b.rawServer(gopls, root, base)
		defer s.close()
		check(s.change(mistake(n)))
		check(s.until(func() bool { return len(s.tokens) == 0 && strings.Contains(s.pushed, name(n)) }, "the diagnosis"))
		return ms(time.Since(began))
	}
	const beside = "gopls alone"
	for _, state := range []struct {
		name   string
		rounds int
	}{{"cold", 1}, {"warm cache", b.rounds(3)}} {
		var words, got, raw Samples
		for range state.rounds {
			word, final := ours()
			words, got, raw = append(words, word), append(got, final), append(raw, alone())
		}
		b.add(Row{What: "to the package's word, " + state.name, Unit: "ms", Ours: words, Target: Target{AtMost: 15_000}, Note: "types alone, while gopls loads"})
		b.add(Row{What: "to gopls' verdict, " + state.name, Unit: "ms", Ours: got, Beside: raw, BesideName: beside})
	}
	started(func(m *lspbridge.Manager) {
		n++
		verdict(m, lspbridge.Proposal{Path: path, Text: base + mistake(n)}, name(n))
		cache("raw")
		s := b.rawServer(gopls, root, base)
		defer s.close()
		check(s.change(mistake(n)))
		check(s.until(func() bool { return len(s.tokens) == 0 && strings.Contains(s.pushed, name(n)) }, "the diagnosis"))
		turns := inTurns(b.rounds(10), func() float64 {
			n++
			return verdict(m, lspbridge.Proposal{Path: path, Text: base + mistake(n)}, name(n))
		}, func() float64 {
			n++
			began := time.Now()
			check(s.change(mistake(n)))
			check(s.ended(n))
			return ms(time.Since(began))
		})
		b.add(Row{What: "to gopls' verdict, running", Unit: "ms", Ours: turns[0], Beside: turns[1], BesideName: beside})
		at := filepath.Join(root, "rest", "config.go")
		config := read("rest/config.go")
		var used Samples
		for range b.rounds(5) {
			n++
			used = append(used, verdict(m, lspbridge.Proposal{Path: at, Text: strings.Replace(config, "func InClusterConfig(", fmt.Sprintf("func InClusterConfig%d(", n), 1)}, "undefined: restclient.InClusterConfig"))
		}
		b.add(Row{What: "to gopls' verdict, running, a declaration that another package uses", Unit: "ms", Ours: used, Target: Target{AtMost: 15_000}})
	})
}

// untilTold is a gate whose person reads until the final verdict is on the card, and then rejects the change with it.
type untilTold chan string

func (u untilTold) Ask(ctx context.Context, _ permission.Request) (permission.Reply, error) {
	select {
	case said := <-u:
		return permission.Reply{}, fmt.Errorf("%w: %s", permission.ErrRejected, said)
	case <-ctx.Done():
		return permission.Reply{}, ctx.Err()
	}
}
