package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/permission"
)

// A missing server is worth a word to the model; that prose has none is not.
func TestProblemTextOfUncheckedFiles(t *testing.T) {
	set := change.New("c", []change.File{{Path: "/p/a.txt", Kind: change.Edit, Old: "a", New: "b"}})
	for _, c := range []struct {
		delta lspbridge.Delta
		want  string
	}{
		{lspbridge.Delta{Verdict: change.Verdict{Certainty: change.Unavailable, Unserved: true, Reason: "no language server for .txt"}}, ""},
		{lspbridge.Delta{Verdict: change.Verdict{Certainty: change.Unavailable, Reason: "pyright-langserver not found"}}, "\n\nNot checked by a language server (pyright-langserver not found)."},
		{lspbridge.Delta{Verdict: change.Verdict{Certainty: change.Fresh}}, ""},
	} {
		if got := problemText(&c.delta, set); got != c.want {
			t.Errorf("%+v: %q, want %q", c.delta, got, c.want)
		}
	}
}

// startingBridge has no answer the first times it is asked.
type startingBridge struct {
	fakeBridge
	asked *int
}

func (b startingBridge) Check(context.Context, []lspbridge.Proposal) lspbridge.Delta {
	if *b.asked++; *b.asked < 4 {
		return lspbridge.Delta{Verdict: change.Verdict{Certainty: change.Pending, Reason: fmt.Sprintf("it has stopped %d times and is being started again", (*b.asked+1)/2)}}
	}
	return lspbridge.Delta{Verdict: change.Verdict{Certainty: change.Fresh, Fixed: make([]change.Problem, 1)}}
}

// "Not yet" is not the last word while the question is open: the servers are asked again, and the card says what has
// changed, each thing once.
func TestNotYetIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked int
		b := newBench(t, func(r permission.Request) (permission.Reply, error) {
			if d := r.Change.Verdict; d == nil || d.Certainty != change.Pending || d.Reason == "" {
				t.Errorf("asked with %+v", d)
			}
			time.Sleep(time.Minute)
			return yes(r)
		})
		b.env.Bridge = startingBridge{asked: &asked}
		if _, err := b.call(Write(b.env), `{"filePath":"a","content":"x\n"}`); err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, u := range b.updates {
			if d := u.Change.Verdict; d != nil && u.ChangeState == "proposed" {
				said = append(said, fmt.Sprint(d.Certainty, " ", d.Reason, len(d.Fixed)))
			}
		}
		want := "[pending it has stopped 1 times and is being started again0 pending it has stopped 2 times and is being started again0 fresh 1]"
		if got := fmt.Sprint(said); got != want || asked != 4 {
			t.Errorf("asked %d times, said\n%s, want\n%s", asked, got, want)
		}
	})
}

// Where nobody sees the card change, the question comes with the final verdict; where the verdict decides, an edit that a
// rule allows is asked as well.
func TestTheVerdictIsAwaitedWhereItDecides(t *testing.T) {
	for mode, asks := range map[VerdictMode]bool{VerdictAwaited: false, VerdictDecides: true} {
		synctest.Test(t, func(t *testing.T) {
			var asked int
			var got *change.Verdict
			b := newBench(t, func(r permission.Request) (permission.Reply, error) {
				got = r.Change.Verdict
				if r.MustAsk != asks || r.MustAsk && (len(r.Always) > 0 || r.Why != "") {
					t.Errorf("mode %d: must ask %v, always %v, why %q", mode, r.MustAsk, r.Always, r.Why)
				}
				return yes(r)
			})
			b.env.Bridge, b.env.Verdict = startingBridge{asked: &asked}, mode
			if _, err := b.call(Write(b.env), `{"filePath":"a","content":"x\n"}`); err != nil {
				t.Fatal(err)
			}
			if got == nil || got.Certainty != change.Fresh || len(got.Fixed) != 1 {
				t.Errorf("mode %d: asked with %+v", mode, got)
			}
		})
	}
}

// A server that never answers does not hold the question for ever.
func TestAnAwaitedVerdictHasAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got *change.Verdict
		b := newBench(t, func(r permission.Request) (permission.Reply, error) {
			got = r.Change.Verdict
			return yes(r)
		})
		b.env.Bridge, b.env.Verdict = busyBridge{}, VerdictDecides
		began := time.Now()
		if _, err := b.call(Write(b.env), `{"filePath":"a","content":"x\n"}`); err != nil {
			t.Fatal(err)
		}
		if got == nil || got.Certainty != change.Pending || got.Reason != "a-server is still busy: loading the workspace" {
			t.Errorf("asked with %+v", got)
		}
		if took := time.Since(began); took < checkFinal || took > checkFinal+checkLonger {
			t.Errorf("after %v", took)
		}
	})
}

// lateBridge answers after a time.
type lateBridge struct {
	fakeBridge
	after time.Duration
}

func (b lateBridge) Check(ctx context.Context, _ []lspbridge.Proposal) lspbridge.Delta {
	select {
	case <-time.After(b.after):
	case <-ctx.Done():
	}
	return lspbridge.Delta{Verdict: change.Verdict{Certainty: change.Fresh}}
}

// patientApplier is a client that draws a request once.
type patientApplier struct{ Applier }

func (patientApplier) VerdictWait() time.Duration { return 10 * time.Second }

// A client that draws a request once is asked with the verdict where that takes some seconds. Where it takes longer the
// card still hears of it, and a client that follows the card is asked at once.
func TestARequestWaitsForItsVerdictAsLongAsItsEditorNeeds(t *testing.T) {
	for _, c := range []struct {
		patient bool
		after   time.Duration
		asked   time.Duration
		with    change.Certainty
	}{
		{true, 5 * time.Second, 5 * time.Second, change.Fresh},
		{true, 15 * time.Second, 10 * time.Second, change.Pending},
		{false, 5 * time.Second, checkBudget, change.Pending},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			var with change.Certainty
			var asked time.Duration
			b := newBench(t, func(r permission.Request) (permission.Reply, error) {
				with, asked = r.Change.Verdict.Certainty, time.Since(began)
				time.Sleep(time.Minute) // the person reads
				return yes(r)
			})
			b.env.Bridge = lateBridge{after: c.after}
			if c.patient {
				b.env.Applier = patientApplier{applierFunc(func(context.Context, *change.Set) error { b.put("a", "x\n"); return nil })}
			}
			if _, err := b.call(Write(b.env), `{"filePath":"a","content":"x\n"}`); err != nil {
				t.Fatal(err)
			}
			if with != c.with || asked != c.asked {
				t.Errorf("after %v: asked with %q after %v, want %q after %v", c.after, with, asked, c.with, c.asked)
			}
			late := false
			for _, u := range b.updates {
				late = late || u.ChangeState == "proposed" && u.Change.Verdict != nil && u.Change.Verdict.Certainty == change.Fresh
			}
			if !late {
				t.Error("the card never showed the verdict")
			}
		})
	}
}

// busyBridge never knows, but says what it waits for.
type busyBridge struct{ fakeBridge }

func (busyBridge) Check(context.Context, []lspbridge.Proposal) lspbridge.Delta {
	time.Sleep(time.Millisecond) // a server is slower than parsing
	return lspbridge.Delta{Verdict: change.Verdict{Certainty: change.Pending, Reason: "not yet"}}
}

func (busyBridge) Busy([]lspbridge.Proposal) string {
	return "a-server is still busy: loading the workspace"
}

// While a server loads, the card has what parsing alone tells: an error before any server is asked, and never as more than "pending".
func TestAPendingVerdictSaysWhatParsingTells(t *testing.T) {
	const introduced = "parsing alone finds a syntax error that this change introduces in a.go (at or before line 3)"
	for _, c := range []struct{ name, path, old, new, want string }{
		{"an error", "a.go", "package a\n\nfunc f() {\n}\n", "package a\n\nfunc f( {\n}\n", "not yet; " + introduced},
		{"none", "a.go", "package a\n", "package b\n", "not yet; parsing alone finds no syntax error"},
		{"a new file with an error", "new.go", "", "package a\n\nfunc f( {\n}\n", "not yet; parsing alone finds a syntax error that this change introduces in new.go (at or before line 3)"},
		{"it had the error before", "a.go", "package a\n\nfunc f( {\n}\n", "package b\n\nfunc f( {\n}\n", "not yet"},
		{"no grammar", "a.words", "one\n", "func f( {\n", "not yet"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked *change.Verdict
				b := newBench(t, func(r permission.Request) (permission.Reply, error) {
					asked = r.Change.Verdict
					return yes(r)
				})
				if c.old != "" {
					b.put(c.path, c.old)
					b.know(c.path)
				}
				b.env.Bridge = busyBridge{}
				args, err := json.Marshal(map[string]string{"filePath": c.path, "content": c.new})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := b.call(Write(b.env), string(args)); err != nil {
					t.Fatal(err)
				}
				if asked == nil || asked.Certainty != change.Pending || asked.Reason != c.want {
					t.Errorf("asked with %+v", asked)
				}
				i := slices.IndexFunc(b.updates, func(u tools.Update) bool { return u.Change != nil && u.Change.Verdict != nil })
				if first := b.updates[i].Change.Verdict.Reason; c.name == "an error" && first != "a-server is still busy: loading the workspace; "+introduced {
					t.Errorf("the first verdict on the card was %q", first)
				}
			})
		})
	}
}

// loadingBridge has its answer after ten seconds, and says meanwhile what it does.
type loadingBridge struct {
	lateBridge
	doing string
}

func (b loadingBridge) Busy([]lspbridge.Proposal) string { return b.doing }

// The first answer of a server that loads takes long, so the card says within a tenth of a second what parsing tells. One that only checks
// has mostly answered by the end of the budget, and the card does not change twice for it.
func TestTheCardSaysEarlyThatAServerLoads(t *testing.T) {
	for doing, want := range map[string]string{
		"gopls is starting": "[60ms gopls is starting; parsing alone finds no syntax error 1.5s gopls is starting; parsing alone finds no syntax error 10s ]",
		"":                  "[1.5s language servers are still checking; parsing alone finds no syntax error 10s ]",
	} {
		synctest.Test(t, func(t *testing.T) {
			set := change.New("c", []change.File{{Path: "/p/a.go", Kind: change.Edit, Old: "package a\n", New: "package b\n"}})
			began := time.Now()
			said := make(chan string, 10)
			show := func(s *change.Set) { said <- fmt.Sprint(time.Since(began), " ", s.Verdict.Reason) }
			c := checker{Bridge: loadingBridge{lateBridge{after: 10 * time.Second}, doing}, broken: changes{}.brokenFiles(proposal{}), rel: func(p string) string { return p }}
			_, stop := c.check(t.Context(), set, show)
			time.Sleep(time.Minute)
			stop()
			close(said)
			var all []string
			for s := range said {
				all = append(all, s)
			}
			if got := fmt.Sprint(all); got != want {
				t.Errorf("%q: the card said\n%s, want\n%s", doing, got, want)
			}
		})
	}
}

// While a server loads, types alone give the first word: it is marked as that, the verdict stays pending, and the servers' answer replaces it. A
// server that answers at once, or that only checks, needs no such word.
func TestTypesAloneTellWhileAServerLoads(t *testing.T) {
	t.Setenv("GOENV", "off")
	t.Setenv("GOFLAGS", "")
	root := t.TempDir()
	path := filepath.Join(root, "a", "a.go")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{filepath.Join(root, "go.mod"): "module m\n", path: "package a\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const parsing = "gopls is starting; parsing alone finds no syntax error"
	for name, c := range map[string]struct {
		text, doing string
		after       time.Duration // of the servers' answer
		stop        time.Duration // of the question
		want        string
	}{
		"errors":    {"package a\n\nvar x, y = m, n\n", "gopls is starting", 10 * time.Second, time.Minute, "[60ms " + parsing + " 1s gopls is starting; types alone find 2 errors that this change introduces in package a: a/a.go:3: undefined: m, and 1 more 1.5s gopls is starting; types alone find 2 errors that this change introduces in package a: a/a.go:3: undefined: m, and 1 more 10s fresh: ]"},
		"none":      {"package a\n\nvar x = 1\n", "gopls is starting", 10 * time.Second, time.Minute, "[60ms " + parsing + " 1s gopls is starting; types alone find no error in package a; nothing else is checked yet 1.5s gopls is starting; types alone find no error in package a; nothing else is checked yet 10s fresh: ]"},
		"unknown":   {"package a\n\nimport \"example.com/missing\"\n\nvar x = missing.X\n", "gopls is starting", 10 * time.Second, time.Minute, "[60ms " + parsing + " 1.5s " + parsing + " 10s fresh: ]"},
		"soon":      {"package a\n\nvar x = m\n", "gopls is starting", 900 * time.Millisecond, time.Minute, "[60ms " + parsing + " 900ms fresh: ]"},
		"it checks": {"package a\n\nvar x = m\n", "", 3 * time.Second, time.Minute, "[1.5s language servers are still checking; parsing alone finds no syntax error 3s fresh: ]"},
		"stopped":   {"package a\n\nvar x = m\n", "gopls is starting", 10 * time.Second, 900 * time.Millisecond, "[60ms " + parsing + "]"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				set := change.New("c", []change.File{{Path: path, Kind: change.Edit, Old: "package a\n", New: c.text}})
				began := time.Now()
				said := make(chan string, 10)
				show := func(s *change.Set) {
					if v := s.Verdict; v.Certainty == change.Fresh {
						said <- fmt.Sprint(time.Since(began), " fresh: ", v.Reason)
					} else if v.Certainty == change.Pending && len(v.Introduced) == 0 {
						said <- fmt.Sprint(time.Since(began), " ", v.Reason)
					} else {
						t.Errorf("shown as %+v", v)
					}
				}
				b := checker{Bridge: loadingBridge{lateBridge{after: c.after}, c.doing}, broken: changes{}.brokenFiles(proposal{}), rel: func(p string) string { r, _ := filepath.Rel(root, p); return r },
					present: func(string) (string, bool) { return "", false }}
				ctx, cancel := context.WithTimeout(t.Context(), c.stop)
				defer cancel()
				_, stop := b.check(ctx, set, show)
				time.Sleep(time.Minute)
				stop()
				close(said)
				var all []string
				for s := range said {
					all = append(all, s)
				}
				if got := fmt.Sprint(all); got != c.want {
					t.Errorf("the card said\n%s, want\n%s", got, c.want)
				}
			})
		})
	}
}
