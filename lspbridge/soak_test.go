package lspbridge

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/tools/change"
)

var (
	soakEdits = flag.Int("soak", 150, "edits of TestGoplsSoak; make soak-lsp makes 10,000")
	soakFresh = flag.Int("soak-fresh", 50, "every how many edits TestGoplsSoak asks a freshly started server as well; 1 is every one")
	soakSeed  = flag.Uint64("soak-seed", 1, "of TestGoplsSoak's random edits")
)

// soakFiles are what a file of the project may look like. MARK stands for the number of the edit.
var soakFiles = map[string][]string{
	"main.go": {
		goMain,
		goMain + "\nvar _ = undefinedMARK\n",
		strings.Replace(goMain, "undefinedThing()", "Extra()", 1),
		"package main\n\n// 日本語 𝄞\nfunc main() { _, _ = \"𝄞é\", undefinedMARK; Add(1, 2) }\n",
		strings.TrimSuffix(goMain, "}\n"),
		strings.Replace(goMain, "Add(1, 2)", "AddMARK(1, 2)", 1),
	},
	"lib.go": {
		goLib,
		goLib + "\nvar x int = \"MARK\"\n",
		strings.Replace(goLib, "func Add(", "func AddMARK(", 1),
		strings.Replace(goLib, "a, b int", "a, b, c int", 1),
		"",
	},
	"sub/sub.go":   {"package sub\n\nfunc F() int { return \"x\" }\n", "package sub\n\nfunc F() int { return 1 }\n", "package sub\n\nfunc F() string { return undefinedMARK }\n"},
	"extra.go":     {"", "package main\n\nfunc Extra() {}\n", "package main\n\nfunc Extra(MARK int) {}\n"}, // "" is no such file
	"user/user.go": {"package user\n\nimport \"x/sub\"\n\nvar N int = sub.F()\n", "package user\n\nimport \"x/sub\"\n\nvar S string = sub.F() + undefinedMARK\n"},
}

var marks = regexp.MustCompile(`m\d{6}m`)

// answer is what is said of a file, with the numbers of the edits left out.
func answer(items []change.Problem) string {
	var out []string
	for _, d := range items {
		out = append(out, fmt.Sprintf("%d:%d-%d:%d %d %s %s", d.Line, d.Column, d.EndLine, d.EndColumn, d.Severity.Number(), d.Code, marks.ReplaceAllString(d.Message, "MARK")))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// Random edits: proposed, written, typed and not saved, written by another program, files created and deleted. Each
// answer is of its own texts: it names no other edit's numbers, and says what a server says that has just been started on
// the same texts.
func TestGoplsSoak(t *testing.T) {
	m, root := project(t, "gopls", map[string]string{"go.mod": "module x\n\ngo 1.24\n"})
	names := slices.Sorted(maps.Keys(soakFiles))
	now := map[string]string{} // as the person sees them; "" is no such file
	var mu sync.Mutex
	buffers := map[string]string{}
	for _, f := range names {
		if now[f] = soakFiles[f][0]; now[f] != "" {
			write(t, filepath.Join(root, f), now[f])
		}
	}
	m.o.Buffer = func(path string) (string, bool) {
		mu.Lock()
		defer mu.Unlock()
		text, ok := buffers[path]
		return text, ok
	}
	m.o.Unsaved = func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Collect(maps.Keys(buffers))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(*soakEdits+100)*2*time.Second)
	defer cancel()
	fresh := &freshAnswers{t: t, known: map[string]string{}}
	rnd := rand.New(rand.NewPCG(*soakSeed, 0))
	began, compared, ops := time.Now(), 0, map[string]int{}
	var recent []string
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the last edits:\n%s", strings.Join(recent[max(0, len(recent)-30):], "\n"))
		}
	})
	for i := range *soakEdits {
		f := names[rnd.IntN(len(names))]
		mark := fmt.Sprintf("m%06dm", i)
		text := strings.ReplaceAll(soakFiles[f][rnd.IntN(len(soakFiles[f]))], "MARK", mark)
		if text == "" && f != "extra.go" {
			text = "package main\n"
		}
		path, ask := filepath.Join(root, f), f
		op := []string{"proposed", "written", "typed", "another program's"}[rnd.IntN(4)]
		edit := []Proposal{{Path: path, Text: text, Delete: text == ""}}
		if text == "" && (op == "typed" || now[f] == "") {
			continue
		}
		ops[op]++
		recent = append(recent, fmt.Sprintf("%d %s %s: %.40q", i, op, f, text))
		seen := maps.Clone(now)
		seen[f] = text
		put := func() {
			mu.Lock()
			delete(buffers, path)
			mu.Unlock()
			if text == "" {
				_ = os.Remove(path)
			} else {
				write(t, path, text)
			}
			now = seen
		}
		var r FileReport
		switch op {
		case "proposed", "written":
			said := m.Check
			if op == "written" {
				put()
				said = m.Changed
			}
			d := said(ctx, edit)
			r = d.Files[0]
			if text == "" { // a deletion is asked about in the file that may miss it
				ask = "main.go"
				r = m.Diagnostics(ctx, filepath.Join(root, ask))
				if op == "proposed" {
					seen = now // and that is over
				}
			}
		case "typed":
			mu.Lock()
			buffers[path] = text
			mu.Unlock()
			now = seen
			r = m.Diagnostics(ctx, path)
		default:
			put()
			m.Flush(ctx)
			if text == "" || rnd.IntN(2) == 0 {
				ask = "main.go"
			}
			r = m.Diagnostics(ctx, filepath.Join(root, ask))
		}
		if r.Certainty != change.Fresh {
			t.Fatalf("edit %d, %s %s: %s %q", i, op, f, r.Certainty, r.Reason)
		}
		for _, n := range marks.FindAllString(messages(r.Items), -1) {
			there := false
			for _, s := range seen {
				there = there || strings.Contains(s, n)
			}
			if !there {
				t.Fatalf("edit %d, %s %s: %s is told of in %q, but stands nowhere", i, op, f, n, messages(r.Items))
			}
		}
		if i%*soakFresh == *soakFresh-1 || *soakFresh == 1 {
			compared++
			if want, got := fresh.of(ctx, seen, ask), answer(r.Items); got != want {
				t.Fatalf("edit %d, %s %s: %s is said to be\n%s\na server started now says\n%s", i, op, f, ask, got, want)
			}
		}
		if i%1000 == 999 {
			t.Logf("%d edits after %v: %v, %d compared, %d fresh servers", i+1, time.Since(began).Round(time.Second), ops, compared, fresh.started)
		}
	}
	t.Logf("%d edits in %v: %v; %d answers compared with those of %d freshly started servers", *soakEdits, time.Since(began).Round(time.Second), ops, compared, fresh.started)
}

// freshAnswers asks servers that were started for nothing else. The same texts, numbers apart, are asked about once.
type freshAnswers struct {
	t       *testing.T
	known   map[string]string
	started int
}

func (a *freshAnswers) of(ctx context.Context, texts map[string]string, ask string) string {
	var key strings.Builder
	for _, f := range slices.Sorted(maps.Keys(texts)) {
		key.WriteString(f + "\x00" + marks.ReplaceAllString(texts[f], "MARK") + "\x00")
	}
	// Two edits with numbers of their own are not two edits with the same one.
	var numbers []string
	for _, f := range slices.Sorted(maps.Keys(texts)) {
		for _, n := range marks.FindAllString(texts[f], -1) {
			if !slices.Contains(numbers, n) {
				numbers = append(numbers, n)
			}
			fmt.Fprint(&key, slices.Index(numbers, n), " ")
		}
	}
	if got, ok := a.known[key.String()+ask]; ok {
		return got
	}
	root, err := filepath.EvalSymlinks(a.t.TempDir())
	if err != nil {
		a.t.Fatal(err)
	}
	defer os.RemoveAll(root)
	write(a.t, filepath.Join(root, "go.mod"), "module x\n\ngo 1.24\n")
	for f, text := range texts {
		if text != "" {
			write(a.t, filepath.Join(root, f), text)
		}
	}
	m := New(Options{Root: root, NoWatch: true, Idle: -1})
	defer m.Close(ctx)
	a.started++
	for f, text := range texts {
		if text != "" {
			r := m.Diagnostics(ctx, filepath.Join(root, f))
			if r.Certainty != change.Fresh {
				a.t.Fatalf("a fresh server says of %s: %s %q", f, r.Certainty, r.Reason)
			}
			a.known[key.String()+f] = answer(r.Items)
		}
	}
	return a.known[key.String()+ask]
}
