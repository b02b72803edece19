package permission

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// The order of the package comment, from the strongest to the weakest, holds for every request: a deny, MustAsk and managed rules that ask, rules that allow, a
// grant, Follow. What a single ruleset says of a single pattern is Ruleset.Judge's; the rest is computed here from the definitions.
func TestTheOrderOfWhatDecides(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	commands := []string{"git log", "git clean -f", "rm x", "ls", "make *", "a?"}
	wilds := []string{"*", "git *", "git clean *", "git clean -f", "rm *", "rm x", "l?", "make *", "a?"}
	pick := func(list []string) string { return list[r.IntN(len(list))] }
	some := func(list []string, most int) (out []string) {
		for range r.IntN(most + 1) {
			out = append(out, pick(list))
		}
		return out
	}
	ruleset := func() (out Ruleset) {
		for i := range r.IntN(5) {
			out = append(out, Rule{Permission: pick([]string{"bash", "*", "edit", "b*"}), Pattern: pick(wilds), Action: Action(pick([]string{"allow", "allow", "ask", "deny"})),
				Origin: fmt.Sprint("f:", i), Managed: r.IntN(6) == 0})
		}
		return out
	}
	seen := map[string]int{}
	for range 10_000 {
		sets := []Ruleset{ruleset(), ruleset()}
		store := &memoryGrants{}
		var remembered []Grant
		for range r.IntN(3) {
			g := Grant{Project: pick([]string{"/p", Everywhere, "/elsewhere"}), Permission: pick([]string{"bash", "edit", "*"}), Pattern: pick(wilds)}
			store.Add(t.Context(), g)
			remembered = append(remembered, g)
		}
		follow := r.IntN(2) == 0
		parent := NewGate(GateOptions{Rules: fixed(sets[1]), Grants: store, Project: "/p", Follow: func() bool { return follow }})
		gate := parent.Child(GateOptions{Rules: fixed(sets[0])}, "parent")
		q := Request{SessionID: "s", Permission: "bash", Patterns: some(commands, 3), Also: some(commands, 1), NoGrant: some(commands, 1), Exact: some(commands, 1),
			MustAsk: r.IntN(5) == 0, Followable: r.IntN(3) == 0}

		got := gate.Judge(t.Context(), q)
		denied, asked, granted, insisted, patterns := false, false, false, false, q.Patterns
		if len(patterns) == 0 {
			patterns = []string{"*"} // no pattern is the whole permission
		}
		for _, rules := range sets {
			for _, p := range patterns {
				a, _ := rules.Judge(q, p)
				denied = denied || a == Deny
				// A managed rule that asks: the last of its kind that speaks of the pattern.
				var floor Ruleset
				for _, rule := range rules {
					if rule.Managed {
						rule.Managed = false
						floor = append(floor, rule)
					}
				}
				a, rule := floor.Judge(q, p)
				insisted = insisted || rule != nil && a == Ask
			}
			// Another spelling is denied by what would not deny every pattern.
			var left Ruleset
			for _, rule := range rules {
				all := true
				for _, p := range patterns {
					a, _ := Ruleset{rule}.Judge(Request{Permission: q.Permission}, p)
					all = all && a == Deny
				}
				if !all || rule.Managed {
					left = append(left, rule)
				}
			}
			for _, p := range q.Also {
				a, _ := left.Judge(q, p)
				denied = denied || a == Deny
			}
		}
		for _, p := range patterns {
			allowed := true
			for _, rules := range sets {
				a, _ := rules.Judge(q, p)
				allowed = allowed && a == Allow
			}
			if allowed {
				continue
			}
			covered := slices.ContainsFunc(remembered, func(g Grant) bool {
				if slices.Contains(q.Exact, p) && (g.Pattern != p || strings.ContainsAny(p, "*?")) {
					return false
				}
				return g.Project != "/elsewhere" && (g.Permission == q.Permission || g.Permission == "*") && Match(g.Pattern, p)
			})
			if covered && !slices.Contains(q.NoGrant, p) {
				granted = true
			} else {
				asked = true
			}
		}
		want := Verdict{Action: Allow}
		switch {
		case denied:
			want.Action = Deny
		case q.MustAsk, insisted, asked && !(q.Followable && follow):
			want.Action = Ask
		case !asked:
			want.Granted = granted
		}
		if got.Action != want.Action || got.Granted != want.Granted {
			t.Fatalf("%s granted %t, want %s granted %t\nrequest %+v\nrules %+v\ngrants %+v\nfollow %t", got.Action, got.Granted, want.Action, want.Granted, q, sets, remembered, follow)
		}
		if got.Action == Deny && (got.Rule == nil || got.Rule.Action != Deny || !slices.Contains(append(patterns, q.Also...), got.Pattern)) {
			t.Fatalf("denied by %+v for %q", got.Rule, got.Pattern)
		}
		if got.Granted && (got.Rule == nil || got.Rule.Origin != "project" && got.Rule.Origin != "everywhere") {
			t.Fatalf("granted by %+v", got.Rule)
		}
		// A person is shown the rule that allowed: one of those that speak of the pattern.
		if got.Action == Allow && !asked && !granted {
			speaks := false
			for _, rules := range sets {
				_, rule := rules.Judge(q, got.Pattern)
				speaks = speaks || rule != nil && got.Rule != nil && *rule == *got.Rule
			}
			if !speaks {
				t.Fatalf("%q allowed by %+v\nrules %+v", got.Pattern, got.Rule, sets)
			}
		}
		seen[fmt.Sprint(want.Action, want.Granted)]++
	}
	for _, kind := range []string{"denyfalse", "askfalse", "allowfalse", "allowtrue"} {
		if seen[kind] < 100 {
			t.Errorf("only %d requests ended as %s: %v", seen[kind], kind, seen)
		}
	}
}

// Of another spelling of the same path, only the denies that were overridden for the path itself count no more: what allows it stays.
func TestAnotherSpellingKeepsWhatAllowsIt(t *testing.T) {
	rule := func(pattern string, a Action) Rule { return Rule{Permission: "edit", Pattern: pattern, Action: a} }
	managed := func(pattern string, a Action) Rule {
		return Rule{Permission: "edit", Pattern: pattern, Action: a, Managed: true}
	}
	q := Request{Permission: "edit", Patterns: []string{"docs/a.md"}, Also: []string{"/p/docs/a.md"}}
	for _, c := range []struct {
		name  string
		rules Ruleset
		want  Action
	}{
		{"the later deny was overridden, the earlier one by what allows everything", Ruleset{rule("/p/docs/*", Deny), rule("*", Allow), rule("*.md", Deny), rule("docs/*", Allow)}, Allow},
		{"a managed deny counts for every spelling, although a managed rule overrides it for one", Ruleset{rule("*", Allow), managed("*", Deny), managed("docs/*", Allow)}, Deny},
		{"the earlier deny speaks of this spelling last", Ruleset{rule("/p/docs/*", Deny), rule("*.md", Deny), rule("docs/*", Allow)}, Deny},
	} {
		if got := NewGate(GateOptions{Rules: fixed(c.rules)}).Would(t.Context(), q); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// Wildcards mean what the same pattern means as a regular expression.
func TestMatchAgreesWithRegularExpressions(t *testing.T) {
	t.Setenv("HOME", "/home/me")
	r := rand.New(rand.NewPCG(3, 4))
	matched := 0
	for range 20_000 {
		var pattern, text strings.Builder
		for range r.IntN(7) {
			pattern.WriteString([]string{"*", "?", "a", "b", "é", " ", "/", `\`, "*", " *", "~", "$HOME", "."}[r.IntN(13)])
		}
		for range r.IntN(7) {
			text.WriteString([]string{"a", "b", "é", " ", "/", `\`, "\n", "~", "."}[r.IntN(9)])
		}
		p, s := pattern.String(), text.String()
		if r.IntN(4) == 0 {
			s = "/home/me" + s
		}
		q := p
		for _, home := range []string{"~", "$HOME"} {
			if rest, ok := strings.CutPrefix(q, home); ok && (rest == "" || strings.ContainsRune(`/\`, rune(rest[0]))) {
				q = "/home/me" + rest
				break
			}
		}
		q, s = strings.ReplaceAll(q, `\`, "/"), strings.ReplaceAll(s, `\`, "/")
		tail := ""
		if short, ok := strings.CutSuffix(q, " *"); ok {
			q, tail = short, "( .*)?"
		}
		expression := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(q)) + tail
		want := regexp.MustCompile("(?s)^(?:" + expression + ")$").MatchString(s)
		if got := Match(p, text.String()); s == strings.ReplaceAll(text.String(), `\`, "/") && got != want {
			t.Fatalf("Match(%q, %q) = %t, and %s says %t", p, text.String(), got, expression, want)
		}
		if Match(p, s) != want {
			t.Fatalf("Match(%q, %q) = %t, and %s says %t", p, s, !want, expression, want)
		}
		if want {
			matched++
		}
	}
	if matched < 800 {
		t.Errorf("only %d pairs match", matched)
	}
}

// Judge's exceptions, each with the rule that the person is told.
func TestWhatARequestSaysAboutItself(t *testing.T) {
	rs := func(list ...Rule) Ruleset { return list }
	all := Rule{Permission: "*", Pattern: "*", Action: Allow, Origin: "mine:1"}
	ask := Rule{Permission: "bash", Pattern: "*", Action: Ask, Origin: "mine:2"}
	askGit := Rule{Permission: "bash", Pattern: "git *", Action: Ask, Origin: "mine:3"}
	quiet := Rule{Permission: ReadOnlyCommands, Pattern: "*", Action: Allow, Origin: "mine:4"}
	deny := Rule{Permission: "bash", Pattern: "*", Action: Deny, Origin: "mine:5"}
	for _, c := range []struct {
		name    string
		rules   Ruleset
		request Request
		want    Action
		origin  string
	}{
		{"a specific ask where no rule asks", rs(), Request{AskIf: AskIfSpecific}, Allow, ""},
		{"no ask where no rule asks", rs(), Request{AskIf: AskIfNone}, Allow, ""},
		{"any ask where no rule asks", rs(), Request{}, Ask, ""},
		{"read-only, and no rule for bash", rs(quiet), Request{ReadOnly: []string{"git log"}}, Allow, "mine:4"},
		{"another command is read-only", rs(quiet), Request{ReadOnly: []string{"git show"}}, Ask, ""},
		{"read-only, allowed anyway: the rule for bash is the reason", rs(quiet, all), Request{ReadOnly: []string{"git log"}}, Allow, "mine:1"},
		{"read-only, allowed by a rule for bash alone: it is the reason", rs(quiet, Rule{Permission: "bash", Pattern: "*", Action: Allow, Origin: "mine:7"}), Request{ReadOnly: []string{"git log"}}, Allow, "mine:7"},
		{"read-only, and a rule that names it", rs(askGit, quiet), Request{ReadOnly: []string{"git log"}}, Ask, "mine:3"},
		{"read-only, denied after the table", rs(quiet, deny), Request{ReadOnly: []string{"git log"}}, Deny, "mine:5"},
		{"read-only, denied before the table", rs(deny, quiet), Request{ReadOnly: []string{"git log"}}, Allow, "mine:4"},
		{"read-only, asked after the table", rs(quiet, ask), Request{ReadOnly: []string{"git log"}}, Allow, "mine:4"},
		{"named, by a wildcard", rs(all), Request{Named: true}, Ask, "mine:1"},
		{"named, by its name", rs(all, Rule{Permission: "bash", Pattern: "*", Action: Allow, Origin: "mine:6"}), Request{Named: true}, Allow, "mine:6"},
		{"added, by a default", rs(Rule{Permission: "*", Pattern: "*", Action: Allow, Origin: "default"}), Request{Added: true}, Ask, "default"},
		{"added, by a rule", rs(all), Request{Added: true}, Allow, "mine:1"},
	} {
		c.request.Permission = "bash"
		action, rule := c.rules.Judge(c.request, "git log")
		origin := ""
		if rule != nil {
			origin = rule.Origin
		}
		if action != c.want || origin != c.origin {
			t.Errorf("%s: %s by %q, want %s by %q", c.name, action, origin, c.want, c.origin)
		}
	}
}

// Only Pillion's own rules about reading ignore letter case: a person's rules, and those about anything else, are as they are written.
func TestOnlyOwnReadRulesIgnoreLetterCase(t *testing.T) {
	if ignoresCase {
		t.Skip("all names ignore letter case here")
	}
	for _, c := range []struct {
		rule Rule
		want Action
	}{
		{Rule{Permission: "read", Pattern: "*.env", Action: Deny, Origin: "default"}, Deny},
		{Rule{Permission: "read", Pattern: "*.env", Action: Deny, Origin: "mine"}, Ask},
		{Rule{Permission: "*", Pattern: "*.env", Action: Deny, Origin: "default"}, Ask},
	} {
		if got, _ := (Ruleset{c.rule}).Evaluate("read", "A.ENV"); got != c.want {
			t.Errorf("%+v: %s, want %s", c.rule, got, c.want)
		}
		if quiet := Unquestioned([]Ruleset{{{Permission: "*", Pattern: "*", Action: Allow}, c.rule}}, "read", "read"); quiet("A.ENV") != (c.want == Ask) {
			t.Errorf("%+v: let through %t", c.rule, c.want != Ask)
		}
	}
}

// A store that cannot be read grants nothing, and one that cannot be written to leaves the grant to the session.
func TestAStoreThatFails(t *testing.T) {
	user := &answers{reply: Reply{Kind: Always, Scope: ScopeProject}}
	g := NewGate(GateOptions{Asker: user, Grants: failingGrants{}, Project: "/p", Rules: fixed(rules(t, `{"bash":"ask"}`))})
	for range 2 {
		if _, err := g.Ask(t.Context(), bash("make", "make", "make", "make all")); err != nil {
			t.Fatal(err)
		}
	}
	if user.asked != 1 {
		t.Errorf("asked %d times, want once", user.asked)
	}
	if got := g.SessionGrants("s"); len(got) != 2 || got[0].Origin != "session" {
		t.Errorf("the session has %+v, want each pattern once", got)
	}
}

type failingGrants struct{}

func (failingGrants) Add(context.Context, Grant) (Grant, error) {
	return Grant{}, fmt.Errorf("the disk is full")
}
func (failingGrants) List(context.Context, string) ([]Grant, error) {
	return []Grant{{Project: "/p", Permission: "*", Pattern: "*"}}, fmt.Errorf("the disk is gone")
}
func (failingGrants) Revoke(context.Context, int64) error { return ErrNoGrant }

// What the model reads says who did it, and what to do next; the two cases without a person's words are no rejection by a person.
func TestWhatTheModelReads(t *testing.T) {
	none := NoUser("bash", "no editor is connected")
	for _, c := range []struct {
		err  error
		want string
	}{
		{none, "bash needs approval, but no user can answer (no editor is connected). Do not try it another way"},
		{&RejectedError{}, "The user rejected permission to use this specific tool call."},
		{&RejectedError{Message: "use trash"}, "The user rejected permission to use this specific tool call with the following feedback: use trash"},
		{&DeniedError{Permission: "bash", Pattern: "rm x", Rule: Rule{Permission: "b*", Pattern: "rm *", Action: Deny, Origin: "p.jsonc:3"}}, `A permission rule denies bash for rm x (rule b*: rm * = deny, from p.jsonc:3).`},
	} {
		if !strings.HasPrefix(c.err.Error(), c.want) {
			t.Errorf("got  %s\nwant %s", c.err, c.want)
		}
	}
	if !none.Unanswered {
		t.Error("nobody answered, and the error does not say so")
	}
	// A session without an editor, and one whose editor went away, give the model the same words.
	reply := Reply{Kind: Reject, Unanswered: true, Message: none.Message}
	g := NewGate(GateOptions{Asker: &answers{reply: reply}, Rules: fixed(rules(t, `{"bash":"ask"}`))})
	if _, err := g.Ask(t.Context(), bash("ls")); err == nil || err.Error() != none.Message {
		t.Errorf("got %v", err)
	}
}

// Insist raises a question where the rules allow, and its error ends the call before anything is judged.
func TestInsist(t *testing.T) {
	broken := fmt.Errorf("the hook failed")
	for _, c := range []struct {
		insists, must bool
		err           error
		asked         int
	}{{false, false, nil, 0}, {true, false, nil, 1}, {false, true, nil, 1}, {true, true, nil, 1}, {true, false, broken, 0}} {
		user := &answers{reply: Reply{Kind: Once}}
		g := NewGate(GateOptions{Asker: user, Rules: fixed(rules(t, `"allow"`)), Insist: func(context.Context, Request) (bool, error) { return c.insists, c.err }})
		q := bash("ls")
		q.MustAsk = c.must
		if _, err := g.Ask(t.Context(), q); err != c.err || user.asked != c.asked {
			t.Errorf("%+v: %v, asked %d times", c, err, user.asked)
		}
	}
}

// A gate without a store keeps in the session what was allowed for longer; one without a Follow switch asks.
func TestAGateOfTheLeastOptions(t *testing.T) {
	for _, scope := range []Scope{ScopeSession, ScopeProject, ScopeEverywhere} {
		user := &answers{reply: Reply{Kind: Always, Scope: scope}}
		g := NewGate(GateOptions{Asker: user, Rules: fixed(rules(t, `{"bash":"ask"}`))})
		for range 2 {
			q := bash("make", "make")
			q.Followable = true
			if _, err := g.Ask(t.Context(), q); err != nil {
				t.Fatal(err)
			}
		}
		if user.asked != 1 {
			t.Errorf("%q: asked %d times, want once", scope, user.asked)
		}
	}
}

// Grants are read once for a request, not for each of its patterns: the store is a database.
func TestGrantsAreReadOnceForARequest(t *testing.T) {
	store := &countedGrants{}
	g := NewGate(GateOptions{Grants: store, Rules: fixed(rules(t, `{"bash":"ask"}`))})
	q := Request{SessionID: "s", Permission: "bash", Patterns: []string{"make", "make all"}}
	if v := g.Judge(t.Context(), q); v.Action != Ask || store.read != 1 {
		t.Errorf("%s after %d reads", v.Action, store.read)
	}
	store.Add(t.Context(), Grant{Project: Everywhere, Permission: "bash", Pattern: "make*"})
	if v := g.Judge(t.Context(), q); v.Action != Allow || store.read != 2 {
		t.Errorf("%s after %d reads", v.Action, store.read)
	}
}

type countedGrants struct {
	memoryGrants
	read int
}

func (c *countedGrants) List(ctx context.Context, project string) ([]Grant, error) {
	c.read++
	return c.memoryGrants.List(ctx, project)
}

// The id under which a request was made stays; the session's end without a name ends nothing.
func TestTheIDOfARequestStays(t *testing.T) {
	p := &person{}
	g := NewGate(GateOptions{Asker: p, Rules: fixed(rules(t, `{"bash":"ask"}`))})
	q := bash("ls")
	q.ID = "mine"
	c := ask(g, q)
	for len(g.open("")) == 0 {
		runtime.Gosched() // until it has asked
	}
	g.EndSession("")
	p.answer("ls", Reply{Kind: Once})
	if e := <-c; e.err != nil || p.asked[0].ID != "mine" {
		t.Errorf("%+v, asked %+v", e, p.asked)
	}
}

// Grants of several levels of sub-agents count, from the top down only.
func TestGrantsReachEveryLevelBelow(t *testing.T) {
	g := NewGate(GateOptions{Asker: &answers{reply: Reply{Kind: Always}}, Rules: fixed(rules(t, `{"bash":"ask"}`))})
	if _, err := g.Ask(t.Context(), bash("make", "make")); err != nil {
		t.Fatal(err)
	}
	options := GateOptions{Rules: fixed(rules(t, `{"bash":"ask"}`))}
	child := g.Child(options, "s")
	grandchild := child.Child(options, "child")
	q := bash("make")
	q.SessionID = "grandchild"
	if v := grandchild.Judge(t.Context(), q); v.Action != Allow || v.Rule.Origin != "session" {
		t.Errorf("below: %+v", v)
	}
	other := bash("ls", "ls")
	other.SessionID = "child"
	if _, err := child.Ask(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if got := g.Would(t.Context(), bash("ls")); got != Ask {
		t.Errorf("above: %s", got)
	}
	q = bash("ls")
	q.SessionID = "grandchild"
	if got := grandchild.Would(t.Context(), q); got != Allow {
		t.Errorf("what the child was granted, below it: %s", got)
	}
}

// Every row of the tables protects, with its reason, in any letter case, and folders protect all below.
func TestEveryProtectedRow(t *testing.T) {
	check := func(path, reason string) {
		t.Helper()
		for _, spelled := range []string{path, strings.ToUpper(path)} {
			if got, ok := Protected(spelled, "/H/u", "/p"); !ok || got != reason {
				t.Errorf("%s: %q, %t, want %q", spelled, got, ok, reason)
			}
		}
	}
	free := func(path string) {
		t.Helper()
		if got, ok := Protected(path, "/H/u", "/p"); ok {
			t.Errorf("%s is protected: %s", path, got)
		}
	}
	for _, row := range protectedDirs {
		check("/p/sub/"+row.name, row.reason)
		check("/p/"+row.name+"/a/b", row.reason)
		free("/p/" + row.name + "x/a")
		free("/p/x" + row.name + "/a")
	}
	for name, reason := range protectedNames {
		check("/p/sub/"+name, reason)
		free("/p/" + name + "/below")
		free("/p/x" + name)
	}
	for _, row := range protectedTails {
		check("/p/sub/"+row.name, row.reason)
		free("/p/x" + row.name)
	}
	for name, reason := range protectedHome {
		check("/h/u/"+name, reason)
		free("/p/" + name)
	}
	for _, row := range protectedHomeDirs {
		check("/h/u/"+row.name, row.reason)
		check("/h/u/"+row.name+"/a", row.reason)
		free("/p/" + row.name + "/a")
	}
	for _, dir := range homeCaches {
		free("/h/u/" + dir)
		free("/h/u/" + dir + "/a")
		check("/h/u/"+dir+"x", "programs of this account take settings from it")
	}
	for _, path := range []string{"/etc", "/etc/hosts", "/private/etc/hosts"} {
		check(path, "it configures the whole system")
	}
	for _, tool := range []string{".prettierrc", "prettier.config", ".eslintrc", "eslint.config"} {
		for ext, runs := range map[string]bool{"js": true, "cjs": true, "mts": true, "json": false, "yaml": false} {
			if _, ok := Protected("/p/"+tool+"."+ext, "", ""); ok != runs {
				t.Errorf("%s.%s: %t", tool, ext, ok)
			}
		}
	}
	for _, path := range []string{"/etcetera/x", "/p/etc/x", "/private/etc2", "/H/user/.x"} {
		free(path)
	}
	// A home folder that is itself the worktree keeps its rules; one that is not known has none.
	if _, ok := Protected("/h/u/.unheard-of", "/h/u", "/h/u"); !ok {
		t.Error("a home folder under version control is not protected")
	}
	if _, ok := Protected("/h/u/.unheard-of", "/h/u", ""); !ok {
		t.Error("without a worktree a home folder is not protected")
	}
	if _, ok := Protected("/h/u/.unheard-of", "", ""); ok {
		t.Error("without a home folder nothing is in it")
	}
	if _, ok := Protected("/h/u/.w", "/h/u", "/h/u/.w"); ok {
		t.Error("a worktree's own folder in the home folder is protected")
	}
	if _, ok := Protected("/h/u/.w2/x", "/h/u", "/h/u/.w"); !ok {
		t.Error("a folder whose name begins like the worktree's is not protected")
	}
}

// A hint is for what is clearly meant: at most two slips away from an action, or a word for it.
func TestHintsForActions(t *testing.T) {
	for word, want := range map[string]string{
		"alow": "allow", "aloww": "allow", " Deny ": "deny", "dny": "deny", "dn": "deny", "asks": "ask", "confirm": "ask", "prompt": "ask", "yes": "allow", "block": "deny", "ALWAYS": "allow",
		"maybe": "", "xyz": "", "": "", "alxxx": "", "perhaps": "",
	} {
		got := strings.TrimSuffix(strings.TrimPrefix(meant(word), `; did you mean "`), `"?`)
		if got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}

// Lint speaks of names that are one slip from a known one, of rules of another action, and says where.
func TestLintIsSilentAboutWhatMayBeMeant(t *testing.T) {
	for _, c := range []struct{ name, config, want string }{
		{"known", `{"lsp":"ask","todo":"ask","bash":"ask"}`, ""},
		{"short names are MCP servers'", `{"lsb":"ask","tas":"ask"}`, `permission "tas" is not one of Pillion's; did you mean "task"?`},
		{"two slips", `{"bsah1":"ask"}`, ""},
		{"covered by the same action", `{"bash":{"git *":"ask","*":"ask"}}`, ""},
		{"covered under another name", `{"edit":"deny","bash":"allow"}`, ""},
		{"a later rule for less", `{"bash":{"*":"ask","git *":"allow"}}`, ""},
		{"covered twice, said once", `{"bash":{"git *":"allow","*":"ask"},"*":"deny"}`, "rule bash: \"git *\" = allow never applies: the later bash: \"*\" = ask wins; put the general rule first\nrule bash: \"*\" = ask never applies: the later *: \"*\" = deny wins; put the general rule first"},
	} {
		if got := strings.Join(Lint(rules(t, c.config)), "\n"); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
	got := Lint(Ruleset{{Permission: "bahs", Pattern: "*", Action: Ask, Origin: "p.jsonc:2"}})
	if len(got) != 1 || !strings.HasPrefix(got[0], "p.jsonc:2: ") {
		t.Errorf("%q", got)
	}
}

// The grants of a project are those of no other: a gate that has no project uses what counts everywhere, and a grant that was stored does not
// stay in the session when it is revoked.
func TestGrantsStayInTheirProject(t *testing.T) {
	store := &memoryGrants{}
	store.Add(t.Context(), Grant{Project: "/elsewhere", Permission: "bash", Pattern: "make"})
	if got := NewGate(GateOptions{Grants: store}).Would(t.Context(), bash("make")); got != Ask {
		t.Errorf("without a project: %s", got)
	}
	g := NewGate(GateOptions{Grants: store, Project: "/p", Asker: &answers{reply: Reply{Kind: Always, Scope: ScopeProject}}})
	if _, err := g.Ask(t.Context(), bash("ls x", "ls *")); err != nil {
		t.Fatal(err)
	}
	if got := g.SessionGrants("s"); len(got) != 0 {
		t.Errorf("in the session as well: %+v", got)
	}
	for _, c := range [][2]string{{"list", "ls"}, {"ls", "list"}} {
		if a, _ := (Ruleset{{Permission: c[0], Pattern: "*", Action: Deny}}).Evaluate(c[1], "x"); a != Deny {
			t.Errorf("a rule for %s does not speak of %s", c[0], c[1])
		}
	}
}
