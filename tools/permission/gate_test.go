package permission

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// person answers from a script: what is asked waits until the test answers it by its first pattern.
type person struct {
	mu    sync.Mutex
	asked []Request
	wait  map[string]chan Reply
	deaf  bool // ignores its context
}

func (p *person) AskPermission(ctx context.Context, r Request) (Reply, error) {
	answer := p.channel(r.Patterns[0], &r)
	if p.deaf {
		return <-answer, nil
	}
	select {
	case reply := <-answer:
		return reply, nil
	case <-ctx.Done():
		return Reply{}, ctx.Err()
	}
}

func (p *person) channel(pattern string, r *Request) chan Reply {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r != nil {
		p.asked = append(p.asked, *r)
	}
	if p.wait == nil {
		p.wait = map[string]chan Reply{}
	}
	if p.wait[pattern] == nil {
		p.wait[pattern] = make(chan Reply, 1)
	}
	return p.wait[pattern]
}

func (p *person) answer(pattern string, r Reply) { p.channel(pattern, nil) <- r }

type end struct {
	reply Reply
	err   error
}

func ask(g *Gate, r Request) chan end {
	c := make(chan end, 1)
	go func() {
		reply, err := g.Ask(context.Background(), r)
		c <- end{reply, err}
	}()
	return c
}

func bash(pattern string, always ...string) Request {
	return Request{SessionID: "s", Permission: "bash", Patterns: []string{pattern}, Always: always}
}

func fixed(rs Ruleset) func() Ruleset { return func() Ruleset { return rs } }

func TestRulesAnswerWithoutThePerson(t *testing.T) {
	p := &person{}
	g := NewGate(GateOptions{Asker: p, Rules: fixed(rules(t, `{"bash":{"*":"allow","rm *":"deny"}}`))})
	if r, err := g.Ask(t.Context(), bash("ls")); err != nil || r.Asked || r.Kind != Once {
		t.Errorf("allowed: %+v, %v", r, err)
	}
	for name, r := range map[string]Request{
		"any pattern": {Permission: "bash", Patterns: []string{"ls", "rm x"}},
		"also":        {Permission: "bash", Patterns: []string{"/bin/rm x"}, Also: []string{"rm x"}},
		"must ask":    {Permission: "bash", Patterns: []string{"rm x"}, MustAsk: true},
	} {
		_, err := g.Ask(t.Context(), r)
		var denied *DeniedError
		if !errors.Is(err, ErrDenied) || !errors.As(err, &denied) || denied.Rule.Pattern != "rm *" || denied.Pattern != "rm x" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(p.asked) != 0 {
		t.Errorf("asked %v", p.asked)
	}
}

func TestOnceAsksAgain(t *testing.T) {
	p := &person{}
	g := NewGate(GateOptions{Asker: p})
	for range 2 {
		p.answer("make", Reply{Kind: Once})
		if r, err := g.Ask(t.Context(), bash("make", "make *")); err != nil || !r.Asked {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	if len(p.asked) != 2 || p.asked[0].ID == "" || p.asked[0].ID == p.asked[1].ID {
		t.Errorf("asked %+v", p.asked)
	}
}

func TestAlwaysCoversTheSessionOnly(t *testing.T) {
	p := &person{}
	g := NewGate(GateOptions{Asker: p})
	p.answer("make", Reply{Kind: Always})
	g.Ask(t.Context(), bash("make", "make *"))
	if r, err := g.Ask(t.Context(), bash("make test")); err != nil || r.Asked || !r.Granted {
		t.Errorf("same session: %+v, %v", r, err)
	}
	p.answer("make all", Reply{Kind: Once})
	other := bash("make all")
	other.SessionID = "other"
	if r, _ := g.Ask(t.Context(), other); !r.Asked {
		t.Error("another session was not asked")
	}
	g.EndSession("s")
	if len(g.SessionGrants("s")) != 0 {
		t.Error("grants outlive their session")
	}
}

// "Always" for the session is stored nowhere, also where grants could be stored; so is one without a scope.
func TestAlwaysForTheSessionIsNotStored(t *testing.T) {
	for _, scope := range []Scope{ScopeSession, ""} {
		p, grants := &person{}, &memoryGrants{}
		g := NewGate(GateOptions{Asker: p, Grants: grants, Project: "/p"})
		p.answer("make", Reply{Kind: Always, Scope: scope})
		g.Ask(t.Context(), bash("make", "make *"))
		if list, _ := grants.List(t.Context(), ""); len(list) != 0 {
			t.Errorf("scope %q: stored %+v", scope, list)
		}
		if got := g.SessionGrants("s"); len(got) != 1 {
			t.Errorf("scope %q: in the session %+v", scope, got)
		}
	}
}

// Without any rule a permission is asked, and a grant answers it.
func TestAGrantWithoutAnyRule(t *testing.T) {
	grants := &memoryGrants{}
	g := NewGate(GateOptions{Rules: func() Ruleset { return nil }, Grants: grants, Project: "/p"})
	if got := g.Judge(t.Context(), bash("make")); got.Action != Ask {
		t.Errorf("%+v", got)
	}
	grants.Add(t.Context(), Grant{Project: "/p", Permission: "bash", Pattern: "make"})
	if got := g.Judge(t.Context(), bash("make")); got.Action != Allow || !got.Granted {
		t.Errorf("with a grant: %+v", got)
	}
}

func TestAlwaysEverywhere(t *testing.T) {
	p, grants := &person{}, &memoryGrants{}
	g := NewGate(GateOptions{Asker: p, Grants: grants, Project: "/p"})
	p.answer("make", Reply{Kind: Always, Scope: ScopeEverywhere})
	g.Ask(t.Context(), bash("make", "make *"))
	elsewhere := NewGate(GateOptions{Grants: grants, Project: "/q"})
	if r, err := elsewhere.Ask(t.Context(), bash("make test")); err != nil || r.Asked {
		t.Errorf("in another project: %+v, %v", r, err)
	}
	list, _ := grants.List(t.Context(), Everywhere)
	if len(list) != 1 {
		t.Fatalf("%+v", list)
	}
	if err := grants.Revoke(t.Context(), list[0].ID); err != nil {
		t.Fatal(err)
	}
	if _, err := elsewhere.Ask(t.Context(), bash("make test")); !errors.Is(err, ErrRejected) {
		t.Errorf("a revoked grant still counts: %v", err)
	}
}

func TestAlwaysForTheProject(t *testing.T) {
	p, grants := &person{}, &memoryGrants{}
	g := NewGate(GateOptions{Asker: p, Grants: grants, Project: "/p"})
	p.answer("make", Reply{Kind: Always, Scope: ScopeProject})
	g.Ask(t.Context(), bash("make", "make *"))

	list, _ := grants.List(t.Context(), "/p")
	if len(list) != 1 || list[0].Pattern != "make *" || list[0].Permission != "bash" {
		t.Fatalf("grants %+v", list)
	}
	later := NewGate(GateOptions{Asker: p, Grants: grants, Project: "/p"})
	if r, err := later.Ask(t.Context(), Request{SessionID: "new", Permission: "bash", Patterns: []string{"make test"}}); err != nil || r.Asked {
		t.Errorf("after a restart: %+v, %v", r, err)
	}
	elsewhere := NewGate(GateOptions{Grants: grants, Project: "/q"})
	if _, err := elsewhere.Ask(t.Context(), bash("make")); !errors.Is(err, ErrRejected) {
		t.Errorf("another project: %v", err)
	}
	if err := grants.Revoke(t.Context(), list[0].ID); err != nil {
		t.Fatal(err)
	}
	p.answer("make x", Reply{Kind: Once})
	if r, _ := later.Ask(t.Context(), bash("make x")); !r.Asked {
		t.Error("a revoked grant still counts")
	}
	if err := grants.Revoke(t.Context(), 99); !errors.Is(err, ErrNoGrant) {
		t.Errorf("unknown id: %v", err)
	}
}

func TestAlwaysNeverBeatsDeny(t *testing.T) {
	p := &person{}
	g := NewGate(GateOptions{Asker: p, Rules: fixed(rules(t, `{"edit":{"*":"ask","secret/*":"deny"}}`))})
	p.answer("e.txt", Reply{Kind: Always})
	if _, err := g.Ask(t.Context(), Request{SessionID: "s", Permission: "edit", Patterns: []string{"e.txt"}, Always: []string{"*"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Ask(t.Context(), Request{SessionID: "s", Permission: "edit", Patterns: []string{"secret/k"}}); !errors.Is(err, ErrDenied) {
		t.Errorf("secret/k: %v", err)
	}
}

func TestGrantsLeaveWhatMustBeAsked(t *testing.T) {
	p := &person{}
	g := NewGate(GateOptions{Asker: p})
	p.answer("rm x", Reply{Kind: Always})
	g.Ask(t.Context(), bash("rm x", "*"))
	for name, r := range map[string]Request{
		"wrapper":  {SessionID: "s", Permission: "bash", Patterns: []string{"sudo rm y"}, NoGrant: []string{"sudo rm y"}},
		"must ask": {SessionID: "s", Permission: "bash", Patterns: []string{"rm z"}, MustAsk: true},
	} {
		p.answer(r.Patterns[0], Reply{Kind: Once})
		if reply, err := g.Ask(t.Context(), r); err != nil || !reply.Asked {
			t.Errorf("%s: %+v, %v", name, reply, err)
		}
	}
}

func TestAlwaysSettlesOtherQuestionsItCovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &person{}
		g := NewGate(GateOptions{Asker: p})
		first := ask(g, bash("go test a", "go test *"))
		covered := ask(g, bash("go test b"))
		open := ask(g, bash("rm x"))
		must := bash("go test c")
		must.MustAsk = true
		still := ask(g, must)
		synctest.Wait()
		p.answer("go test a", Reply{Kind: Always})
		synctest.Wait()
		if e := <-first; e.err != nil || !e.reply.Asked {
			t.Errorf("first: %+v", e)
		}
		if e := <-covered; e.err != nil || e.reply.Asked {
			t.Errorf("covered: %+v", e)
		}
		select {
		case e := <-open:
			t.Errorf("rm x was settled: %+v", e)
		case e := <-still:
			t.Errorf("MustAsk was settled: %+v", e)
		default:
		}
		p.answer("rm x", Reply{Kind: Reject, Message: "use trash"})
		var no *RejectedError
		if e := <-open; !errors.As(e.err, &no) || no.Message != "use trash" {
			t.Errorf("rejected: %+v", e)
		}
		if e := <-still; !errors.Is(e.err, ErrRejected) {
			t.Errorf("the session's other question outlived a no: %+v", e)
		}
	})
}

// A "no" is not the answer to what is asked after it, however fast. The sessions are many so that they get in each
// other's way just then.
func TestAQuestionAfterANoIsAsked(t *testing.T) {
	g := NewGate(GateOptions{Rules: fixed(rules(t, `{"bash":"ask"}`)), Asker: askerFunc(func(_ context.Context, r Request) (Reply, error) {
		return Reply{Kind: Reject, Message: r.Patterns[0]}, nil
	})})
	var wg sync.WaitGroup
	for session := range 16 {
		wg.Go(func() {
			for n := range 400 {
				what := fmt.Sprint("ls ", n)
				_, err := g.Ask(t.Context(), Request{SessionID: fmt.Sprint(session), Permission: "bash", Patterns: []string{what}})
				var no *RejectedError
				if !errors.As(err, &no) || no.Message != what {
					t.Errorf("%s was answered %v", what, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

type askerFunc func(context.Context, Request) (Reply, error)

func (f askerFunc) AskPermission(ctx context.Context, r Request) (Reply, error) { return f(ctx, r) }

func TestRejectLeavesOtherSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &person{}
		g := NewGate(GateOptions{Asker: p})
		mine := ask(g, bash("a"))
		theirs := Request{SessionID: "other", Permission: "bash", Patterns: []string{"b"}}
		other := ask(g, theirs)
		synctest.Wait()
		p.answer("a", Reply{Kind: Reject})
		<-mine
		synctest.Wait()
		select {
		case e := <-other:
			t.Errorf("%+v", e)
		default:
		}
		p.answer("b", Reply{Kind: Once})
		if e := <-other; e.err != nil {
			t.Error(e.err)
		}
	})
}

func TestCancelEndsAQuestionAtOnceEvenWhenThePersonIsDeaf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &person{deaf: true}
		var ended *Outcome
		g := NewGate(GateOptions{Asker: p, Notify: func(_ Request, o *Outcome) { ended = o }})
		ctx, cancel := context.WithCancel(context.Background())
		c := make(chan error, 1)
		go func() {
			_, err := g.Ask(ctx, bash("a", "a"))
			c <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-c; !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		synctest.Wait()
		if ended == nil || !errors.Is(ended.Err, context.Canceled) {
			t.Errorf("notified %+v", ended)
		}
		p.answer("a", Reply{Kind: Always}) // too late: remembers nothing
		synctest.Wait()
		if got := g.SessionGrants("s"); len(got) != 0 {
			t.Errorf("a late answer granted %v", got)
		}
		if _, err := g.Ask(ctx, bash("b")); !errors.Is(err, context.Canceled) {
			t.Errorf("a dead turn asked: %v", err)
		}
	})
}

func TestChildHearsTheParentsGrants(t *testing.T) {
	p := &person{}
	g := NewGate(GateOptions{Asker: p})
	p.answer("make", Reply{Kind: Always})
	g.Ask(t.Context(), bash("make", "make *"))
	child := g.Child(GateOptions{Rules: fixed(Default())}, "s")
	sub := bash("make test")
	sub.SessionID = "sub"
	if r, err := child.Ask(t.Context(), sub); err != nil || r.Asked {
		t.Errorf("%+v, %v", r, err)
	}
	strict := g.Child(GateOptions{Rules: fixed(rules(t, `"deny"`))}, "s")
	if _, err := strict.Ask(t.Context(), sub); !errors.Is(err, ErrDenied) {
		t.Errorf("%v", err)
	}
}

func TestAChildStaysWithinItsParentsRules(t *testing.T) {
	p := &person{}
	parent := rules(t, `{"*":"allow","edit":"deny","bash":"ask"}`)
	g := NewGate(GateOptions{Asker: p, Rules: fixed(parent)})
	child := g.Child(GateOptions{Rules: fixed(rules(t, `"allow"`))}, "s")
	grandchild := child.Child(GateOptions{Rules: fixed(rules(t, `"allow"`))}, "sub")
	for _, gate := range []*Gate{child, grandchild} {
		if _, err := gate.Ask(t.Context(), Request{SessionID: "x", Permission: "edit", Patterns: []string{"a"}}); !errors.Is(err, ErrDenied) {
			t.Errorf("edit: %v", err)
		}
		if got := gate.Would(t.Context(), bash("make")); got != Ask {
			t.Errorf("bash: %s", got)
		}
		if got := gate.Would(t.Context(), Request{Permission: "read", Patterns: []string{"a"}}); got != Allow {
			t.Errorf("read: %s", got)
		}
	}
}

func TestNobodyThereIsANo(t *testing.T) {
	if _, err := NewGate(GateOptions{}).Ask(t.Context(), bash("make")); !errors.Is(err, ErrRejected) {
		t.Errorf("%v", err)
	}
}

func TestAlwaysWithoutAnOfferIsOnce(t *testing.T) {
	p := &person{}
	g := NewGate(GateOptions{Asker: p})
	p.answer("sudo x", Reply{Kind: Always})
	if r, err := g.Ask(t.Context(), bash("sudo x")); err != nil || !r.Asked {
		t.Errorf("%+v, %v", r, err)
	}
	if got := g.SessionGrants("s"); len(got) != 0 {
		t.Errorf("remembered %v", got)
	}
}

// answers is an Asker that gives one answer to everything.
type answers struct {
	reply Reply
	err   error
	asked int
}

func (a *answers) AskPermission(context.Context, Request) (Reply, error) {
	a.asked++
	return a.reply, a.err
}

func TestAPluginsAdvice(t *testing.T) {
	for name, c := range map[string]struct {
		advice   Action
		must     bool
		asked    int  // how often the user is asked
		rejected bool // although the user would allow it
	}{
		"deny stops it":                            {Deny, false, 0, true},
		"deny stops what must be asked":            {Deny, true, 0, true},
		"allow answers for the user":               {Allow, false, 0, false},
		"allow does not answer what must be asked": {Allow, true, 1, false},
		"no advice":                                {Ask, false, 1, false},
		"an empty advice":                          {"", false, 1, false},
	} {
		user := &answers{reply: Reply{Kind: Once}}
		g := NewGate(GateOptions{Asker: user, Rules: fixed(rules(t, `{"bash":"ask"}`)), Advise: func(context.Context, Request) Action { return c.advice }})
		r := bash("ls")
		r.MustAsk = c.must
		_, err := g.Ask(t.Context(), r)
		if user.asked != c.asked || errors.Is(err, ErrRejected) != c.rejected {
			t.Errorf("%s: asked %d times, %v", name, user.asked, err)
		}
	}
}

func TestAdviceNeverReachesWhatTheRulesDeny(t *testing.T) {
	g := NewGate(GateOptions{Asker: &answers{reply: Reply{Kind: Once}}, Rules: fixed(rules(t, `{"bash":"deny"}`)), Advise: func(context.Context, Request) Action { return Allow }})
	if _, err := g.Ask(t.Context(), bash("ls")); !errors.Is(err, ErrDenied) {
		t.Errorf("got %v", err)
	}
}

func TestAChildMayHaveItsOwnAskerAndNotify(t *testing.T) {
	parent, own := &answers{reply: Reply{Kind: Once}}, &answers{reply: Reply{Kind: Once}}
	var heard, heardOwn []bool // of each notification, whether it has the outcome
	note := func(to *[]bool) func(Request, *Outcome) {
		return func(_ Request, o *Outcome) { *to = append(*to, o != nil) }
	}
	g := NewGate(GateOptions{Asker: parent, Rules: fixed(rules(t, `{"bash":"ask"}`)), Notify: note(&heard)})
	for _, c := range []struct {
		options GateOptions
		asker   *answers
		heard   *[]bool
	}{
		{GateOptions{Rules: fixed(rules(t, `{"bash":"ask"}`))}, parent, &heard},
		{GateOptions{Rules: fixed(rules(t, `{"bash":"ask"}`)), Asker: own, Notify: note(&heardOwn)}, own, &heardOwn},
	} {
		before := c.asker.asked
		if _, err := g.Child(c.options, "s").Ask(t.Context(), bash("ls")); err != nil {
			t.Fatal(err)
		}
		if c.asker.asked != before+1 {
			t.Error("the wrong asker was asked")
		}
		if got := fmt.Sprint(*c.heard); got != "[false true]" {
			t.Errorf("notified %s, want the question and then its end", got)
		}
	}
}

func TestAnAskerThatFailsEndsTheQuestion(t *testing.T) {
	broken := errors.New("the editor is gone")
	g := NewGate(GateOptions{Asker: &answers{err: broken}, Rules: fixed(rules(t, `{"bash":"ask"}`))})
	if _, err := g.Ask(t.Context(), bash("ls")); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if len(g.open("")) != 0 {
		t.Error("the question is still open")
	}
}

func TestAnUnknownAnswerIsANo(t *testing.T) {
	g := NewGate(GateOptions{Asker: &answers{reply: Reply{Kind: "perhaps"}}, Rules: fixed(rules(t, `{"bash":"ask"}`))})
	if _, err := g.Ask(t.Context(), bash("ls")); !errors.Is(err, ErrRejected) {
		t.Errorf("got %v", err)
	}
}

func TestTheEndOfASessionEndsItsQuestionsAndGrantsOnly(t *testing.T) {
	p := &person{}
	g := NewGate(GateOptions{Asker: p, Rules: fixed(rules(t, `{"bash":"ask"}`))})
	mine, other := bash("mine"), bash("other")
	mine.SessionID, other.SessionID = "mine", "other"
	granted := bash("granted", "granted *")
	granted.SessionID = "mine"
	first := ask(g, granted)
	p.answer("granted", Reply{Kind: Always, Scope: ScopeSession})
	if e := <-first; e.err != nil || len(g.SessionGrants("mine")) != 1 {
		t.Fatal(e.err, g.SessionGrants("mine"))
	}
	a, b := ask(g, mine), ask(g, other)
	for len(g.open("")) < 2 {
		runtime.Gosched() // until both have asked
	}
	g.EndSession("mine")
	if e := <-a; !errors.Is(e.err, context.Canceled) {
		t.Errorf("mine: %v", e.err)
	}
	if len(g.SessionGrants("mine")) != 0 {
		t.Error("the grants of an ended session are kept")
	}
	p.answer("other", Reply{Kind: Once})
	if e := <-b; e.err != nil {
		t.Errorf("other: %v", e.err)
	}
}

// Follow lets changes through that can be undone, while it is on and for nothing else.
func TestFollow(t *testing.T) {
	on := true
	rules := func() Ruleset { return append(Default(), Rule{Permission: "bash", Pattern: "*", Action: Deny}) }
	g := NewGate(GateOptions{Rules: rules, Follow: func() bool { return on }})
	edit := Request{Permission: "edit", Patterns: []string{"a.go"}, Followable: true}
	judge := func(r Request) Action { return g.Judge(t.Context(), r).Action }
	if got := judge(edit); got != Allow {
		t.Errorf("a followable edit: %s", got)
	}
	must, other, denied := edit, edit, edit
	must.MustAsk, other.Followable, denied.Permission = true, false, "bash"
	if got := judge(must); got != Ask {
		t.Errorf("an edit that must be asked about: %s", got)
	}
	if got := judge(other); got != Ask {
		t.Errorf("an edit that is not followable: %s", got)
	}
	if got := judge(denied); got != Deny {
		t.Errorf("a denied command: %s", got)
	}
	on = false
	if got := judge(edit); got != Ask {
		t.Errorf("with Follow off: %s", got)
	}
}

func TestScopeOfAGrant(t *testing.T) {
	if got := (Grant{Project: Everywhere}).Scope(); got != string(ScopeEverywhere) {
		t.Errorf("everywhere: %s", got)
	}
	if got := (Grant{Project: "/p"}).Scope(); got != string(ScopeProject) {
		t.Errorf("a project: %s", got)
	}
}

// The person decides by this text, so it names what "always" leaves out.
func TestRemembersNamesItsLimits(t *testing.T) {
	r := Request{Always: []string{"git log *", "make *"}, Limits: map[string]string{"git log *": "--output"}}
	if got := r.Remembers(); got != "git log without --output, make *" {
		t.Errorf("%q", got)
	}
}

// A deny that a later rule overrides for the pattern does not come back for another spelling of it; one that says more about the other
// spelling than about the pattern does.
func TestAnOverriddenDenyDeniesNoOtherSpelling(t *testing.T) {
	for _, x := range []struct {
		name, rules string
		patterns    []string
		also        []string
		want        Action
	}{
		{"a folder out of everything", `{"edit":{"*":"deny","docs/**":"allow"}}`, []string{"docs/a.md"}, []string{"/p/docs/a.md"}, Allow},
		{"outside of the folder", `{"edit":{"*":"deny","docs/**":"allow"}}`, []string{"src/a.go"}, []string{"/p/src/a.go"}, Deny},
		{"an absolute deny", `{"edit":{"/p/docs/**":"deny","*":"deny","docs/**":"allow"}}`, []string{"docs/a.md"}, []string{"/p/docs/a.md"}, Deny},
		{"a later deny", `{"edit":{"docs/**":"allow","/p/*":"deny"}}`, []string{"docs/a.md"}, []string{"/p/docs/a.md"}, Deny},
		{"a link that leads elsewhere", `{"edit":{"*":"deny","docs/**":"allow"}}`, []string{"docs/a.md", "src/a.go"}, []string{"/p/docs/a.md", "/p/src/a.go"}, Deny},
		{"two patterns, one deny for one of them", `{"edit":{"docs/*":"deny","docs/a*":"allow","b":"allow"}}`, []string{"docs/a.md", "b"}, []string{"docs/x"}, Deny},
		{"as it was typed", `{"edit":{"*":"deny","git diff *":"allow"}}`, []string{"git diff x"}, []string{"/usr/bin/git diff x"}, Allow},
	} {
		t.Run(x.name, func(t *testing.T) {
			g := NewGate(GateOptions{Asker: &person{}, Rules: fixed(rules(t, x.rules))})
			if v := g.Judge(t.Context(), Request{Permission: "edit", Patterns: x.patterns, Also: x.also}); v.Action != x.want {
				t.Errorf("%s by %+v, want %s", v.Action, v.Rule, x.want)
			}
		})
	}
}

// A managed rule that asks wants a person: nothing that a person can set, start or install answers in their place.
func TestOnlyAPersonAnswersAManagedAsk(t *testing.T) {
	floor := Rule{Permission: "bash", Pattern: "*", Action: Ask, Origin: "/etc/pillion/pillion.jsonc:1:1", Managed: true}
	edits := Rule{Permission: "edit", Pattern: "*", Action: Ask, Origin: "/etc/pillion/pillion.jsonc:2:1", Managed: true}
	own := rules(t, `{"*":"allow","bash_readonly":"allow"}`)
	asked := rules(t, `{"bash":{"*":"allow","make":"ask"},"edit":"allow"}`)
	edit := func(change func(*Request)) Request {
		r := Request{SessionID: "s", Permission: "edit", Patterns: []string{"a.go"}, Always: []string{"*"}}
		change(&r)
		return r
	}
	granted := bash("make")
	granted.SessionID = "granted"
	for name, c := range map[string]struct {
		rules Ruleset
		o     GateOptions
		r     Request
	}{
		"own rules":                        {rules: own, r: bash("make", "make *")},
		"the person's own ask":             {rules: asked, r: granted},
		"follow":                           {rules: own, r: edit(func(r *Request) { r.Followable = true }), o: GateOptions{Follow: func() bool { return true }}},
		"a plugin or hook":                 {rules: own, r: bash("make"), o: GateOptions{Advise: func(context.Context, Request) Action { return Allow }}},
		"the sandbox":                      {rules: own, r: Request{SessionID: "s", Permission: "bash", Patterns: []string{"make"}, AskIf: AskIfSpecific}},
		"a file of a command":              {rules: own, r: edit(func(r *Request) { r.AskIf = AskIfSpecific })},
		"another pattern that asks before": {rules: asked, r: Request{SessionID: "granted", Permission: "bash", Patterns: []string{"make", "touch x"}}, o: GateOptions{Advise: func(context.Context, Request) Action { return Allow }}},
		"what is asked anyway":             {rules: own, r: edit(func(r *Request) { r.MustAsk = true })},
	} {
		p := &person{}
		c.o.Asker, c.o.Rules = p, fixed(append(slices.Clone(c.rules), floor, edits))
		g := NewGate(c.o)
		g.state.grants["granted"] = Ruleset{{Permission: "bash", Pattern: "*", Action: Allow, Origin: "session"}}
		done := ask(g, c.r)
		p.answer(c.r.Patterns[0], Reply{Kind: Once})
		if e := <-done; e.err != nil || !e.reply.Asked {
			t.Errorf("%s: no person was asked: %+v", name, e)
		} else if r := p.asked[0]; r.Managed == "" || r.Always != nil {
			t.Errorf("%s: asked as if a person could answer once for all: %+v", name, r)
		}
	}
	// What the person has just approved as a command is not asked again, commands known to change nothing are as elsewhere, and a
	// later managed rule counts.
	for name, r := range map[string]Request{
		"a file of a command that was approved": edit(func(r *Request) { r.AskIf = AskIfNone }),
		"a command that only reads":             {Permission: "bash", Patterns: []string{"ls"}, ReadOnly: []string{"ls"}},
		"a managed allow":                       bash("go test ./..."),
	} {
		set := append(slices.Clone(own), floor, edits, Rule{Permission: "bash", Pattern: "go test *", Action: Allow, Managed: true})
		if e := <-ask(NewGate(GateOptions{Asker: &person{}, Rules: fixed(set)}), r); e.err != nil || e.reply.Asked {
			t.Errorf("%s: %+v", name, e)
		}
	}
}
