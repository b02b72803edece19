package lspbridge

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var soak = flag.Int("soak", 200, "edits of TestGoplsSoak")

// Random edits, alternately proposed, written and typed: each answer names its own version's mistakes, and from time to
// time a freshly started server is asked the same.
func TestGoplsSoak(t *testing.T) {
	m, root := goProject(t)
	paths := []string{filepath.Join(root, "main.go"), filepath.Join(root, "lib.go"), filepath.Join(root, "sub", "sub.go")}
	bases := []string{goMain, goLib, "package sub\n\nfunc F() int { return \"x\" }\n"}
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(*soak)*time.Second)
	defer cancel()
	rnd := rand.New(rand.NewPCG(1, uint64(*soak)))
	for i := range *soak {
		n := rnd.IntN(len(paths))
		text, mark := bases[n], ""
		switch rnd.IntN(4) {
		case 0: // clean of our mistakes
		case 1:
			mark = fmt.Sprintf("soak%dx", i)
			text += "\nvar _ = " + mark + "\n"
		case 2:
			mark = fmt.Sprintf("soak%dx", i)
			text = strings.Replace(text, "\n\n", "\n\nvar _ int = "+mark+"\n\n", 1)
			if n == 0 {
				text = bases[0] + "\nfunc _() { " + mark + "() }\n"
			}
		case 3: // a name the others use goes away, and comes back with the next edit
			text = strings.Replace(text, "Add(", fmt.Sprintf("Add%d(", i), 1)
		}
		var items []Diagnostic
		var state State
		var reason string
		switch rnd.IntN(3) {
		case 0:
			d := m.Check(ctx, []Proposal{{Path: paths[n], Text: text}})
			state, reason, items = d.State, d.Reason, d.Files[0].Items
		case 1:
			write(t, paths[n], text)
			d := m.Changed(ctx, []Proposal{{Path: paths[n], Text: text}})
			state, reason, items = d.State, d.Reason, d.Files[0].Items
		default:
			write(t, paths[n], text)
			r := m.Diagnostics(ctx, paths[n])
			state, reason, items = r.State, r.Reason, r.Items
		}
		said := messages(items)
		if state != Fresh || strings.Count(said, "soak") != min(len(mark), 1) || !strings.Contains(said, mark) {
			t.Fatalf("edit %d of %s: %s %q: %q, want %q", i, filepath.Base(paths[n]), state, reason, said, mark)
		}
		if every := max(50, *soak/20); i%every == every-1 {
			fresh := New(Options{Root: root, NoWatch: true, Idle: -1})
			for _, p := range paths {
				a, b := m.Diagnostics(ctx, p), fresh.Diagnostics(ctx, p)
				if a.State != Fresh || b.State != Fresh || messages(a.Items) != messages(b.Items) {
					t.Errorf("after %d edits %s is %s %q, a fresh server says %s %q", i+1, filepath.Base(p), a.State, messages(a.Items), b.State, messages(b.Items))
				}
			}
			fresh.Close(ctx)
			t.Logf("%d edits", i+1)
		}
	}
}
