package quickfix

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/agent/provider"
)

// project answers the model's calls like the tools would, and remembers them.
type project struct {
	t      *testing.T
	answer func(name string, in map[string]any) (text string, failed bool)
	calls  []string
	steps  int // the turn's limit of steps: the last one is offered no tools; 0: none
}

// converse plays a prompt through Stream, step by step, until the model stops calling. It returns all it said.
func (p *project) converse(prompt string) string {
	p.t.Helper()
	req := &provider.Request{Model: Model, Tools: []provider.ToolSpec{{Name: "lsp"}, {Name: "glob"}, {Name: "read"}},
		Messages: []provider.Message{{Role: provider.RoleUser, Parts: []provider.Part{{Type: provider.PartText, Text: prompt}}}}}
	var said strings.Builder
	for step := range 100 {
		if step+1 == p.steps {
			req.Tools = nil
		}
		answer := provider.Message{Role: provider.RoleAssistant}
		results := provider.Message{Role: provider.RoleTool}
		var stop provider.StopReason
		err := Provider{}.Stream(context.Background(), req, func(e provider.Event) error {
			switch e.Type {
			case provider.EventText:
				said.WriteString(e.Text)
			case provider.EventToolEnd:
				var in map[string]any
				if err := json.Unmarshal([]byte(e.Text), &in); err != nil {
					return err
				}
				p.calls = append(p.calls, fmt.Sprint(e.Name, " ", in["operation"], " ", in["apply"]))
				text, failed := p.answer(e.Name, in)
				answer.Parts = append(answer.Parts, provider.Part{Type: provider.PartToolCall, CallID: e.CallID, Name: e.Name, Input: json.RawMessage(e.Text)})
				results.Parts = append(results.Parts, answered(e.CallID, e.Name, text, failed))
			case provider.EventStop:
				stop = e.Stop
			}
			return nil
		})
		if err != nil {
			p.t.Fatal(err)
		}
		if stop != provider.StopTools {
			return said.String()
		}
		req.Messages = append(req.Messages, answer, results)
	}
	p.t.Fatal("the model never stopped calling")
	return ""
}

// broken is a project with errors that vanish when their action is applied.
type broken struct {
	errors  []string          // lines of the diagnostics
	actions map[string]string // error's place → lines of codeActions
	cures   map[string]string // action id → text of the error that it takes away
	refuse  map[string]string // action id → words of the refusal
	imports string            // the line of codeActions for organising imports
}

func (b *broken) answer(_ string, in map[string]any) (string, bool) {
	switch in["operation"] {
	case "diagnostics":
		if len(b.errors) == 0 {
			return "No problems.", false
		}
		return fmt.Sprintf("%d errors in 1 file.\n\n%s", len(b.errors), strings.Join(b.errors, "\n")), false
	case "codeActions":
		id, _ := in["apply"].(string)
		if in["kind"] == "source.organizeImports" && b.imports != "" {
			return b.imports, false
		}
		if id == "" {
			if list := b.actions[fmt.Sprint(in["filePath"], ":", in["line"], ":", in["character"])]; list != "" {
				return list, false
			}
			return "No code actions are offered there.", false
		}
		if why := b.refuse[id]; why != "" {
			return why, true
		}
		var left []string
		for _, e := range b.errors {
			if b.cures[id] == "" || !strings.Contains(e, b.cures[id]) {
				left = append(left, e)
			}
		}
		b.errors = left
		return "Applied.", false
	}
	return "unexpected", true
}

func TestFixTakesTheQuickFixThatCuresAndSaysWhatIsLeft(t *testing.T) {
	b := &broken{
		errors:  []string{`ERROR a.go:3:5 declared and not used: x [compiler UnusedVar]`, `ERROR a.go:9:2 cannot use "s" as int [compiler]`},
		actions: map[string]string{"a.go:3:5": "a1  Worse idea [quickfix]  fixes 1, introduces 3\na2  Remove variable x [quickfix] (preferred)  fixes 1, introduces 0\na3  Extract [refactor.extract]"},
		cures:   map[string]string{"a2": "not used: x"},
	}
	p := &project{t: t, answer: b.answer}
	said := p.converse("fix all errors")
	for _, want := range []string{"Found 2 errors in 1 file.", "Fixed 1 of 2 errors; 1 left.", `a.go:9:2 cannot use "s" as int — the language server offers no quick fix`} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not in:\n%s", want, said)
		}
	}
	for _, c := range p.calls {
		if strings.Contains(c, "a1") || strings.Contains(c, "a3") {
			t.Errorf("it applied %s", c)
		}
	}
}

func TestFixOrganisesImportsOnceAFile(t *testing.T) {
	b := &broken{errors: []string{`ERROR a.go:1:1 "os" imported and not used [compiler UnusedImport]`, `ERROR a.go:5:1 undefined: strings [compiler UndeclaredName]`}}
	b.imports, b.cures = "a1  Organize Imports [source.organizeImports]", map[string]string{"a1": "[compiler U"}
	p := &project{t: t, answer: b.answer}
	if said := p.converse("fix errors"); !strings.Contains(said, "Done: 2 errors fixed, none left.") {
		t.Error(said)
	}
}

// Organised imports are a step like any other: where they fix nothing they are undone, or the project would keep lines that no fix changed.
func TestImportsThatFixNothingAreUndone(t *testing.T) {
	b := &broken{errors: []string{`ERROR a.go:5:1 undefined: strings [compiler UndeclaredName]`}, imports: "a1  Organize Imports [source.organizeImports]"}
	undone := 0
	p := &project{t: t, answer: func(name string, in map[string]any) (string, bool) {
		if in["undo"] == "a1" {
			undone++
		}
		return b.answer(name, in)
	}}
	if said := p.converse("fix errors"); undone != 1 || !strings.Contains(said, "its quick fixes did not fix it") {
		t.Errorf("undone %d times:\n%s", undone, said)
	}
}

// At the turn's last step no tools are offered. The model then says how far it came, and not that the tool is switched off.
func TestTheStepLimitIsNamed(t *testing.T) {
	for steps := 2; steps < 6; steps++ {
		b := &broken{
			errors:  []string{`ERROR a.go:3:5 undefined: x [compiler]`, `ERROR a.go:9:2 cannot use "s" as int [compiler]`},
			actions: map[string]string{"a.go:3:5": "a2  Change x to y [quickfix]  fixes 1, introduces 0"},
			cures:   map[string]string{"a2": "undefined: x"},
		}
		p := &project{t: t, answer: b.answer, steps: steps}
		said := p.converse("fix all errors")
		if strings.Contains(said, "switched off") || strings.Contains(said, "larger model") || !strings.Contains(said, "all the steps of this turn") {
			t.Errorf("after %d steps:\n%s", steps, said)
		}
		// The steps are: problems, actions, apply, problems again.
		want := "Fixed none of 2 errors so far."
		if steps == 5 {
			want = "Fixed 1 of 2 errors; 1 left."
		}
		if !strings.Contains(said, want) {
			t.Errorf("after %d steps %q is not in:\n%s", steps, want, said)
		}
	}
}

// The files of a folder come from the metadata of the search, where a path is a path whatever is in its name.
func TestFilesAreNotReadFromProse(t *testing.T) {
	var asked []any
	p := &project{t: t, answer: func(name string, in map[string]any) (string, bool) {
		if name == "glob" {
			return "/w/b.go\nC:\\w\\a.go\n\n(Results are truncated: showing first 100 results. Consider using a more specific path or pattern.)", false
		}
		asked = append(asked, in["filePath"])
		return "Applied.", false
	}}
	said := p.converse("format")
	if fmt.Sprint(asked) != `[/w/b.go C:\w\a.go]` && fmt.Sprint(asked) != `[C:\w\a.go /w/b.go]` || !strings.Contains(said, "There are more files than the 2") {
		t.Errorf("%v\n%s", asked, said)
	}
}

func TestFixNeverRepeatsWhatDidNotCure(t *testing.T) {
	b := &broken{errors: []string{`ERROR a.go:3:5 stubborn [compiler]`}, actions: map[string]string{"a.go:3:5": "a1  Try this [quickfix]"}}
	p := &project{t: t, answer: b.answer}
	said := p.converse("fix")
	n := 0
	for _, c := range p.calls {
		if strings.Contains(c, "a1") {
			n++
		}
	}
	if n != 1 || !strings.Contains(said, "its quick fixes did not fix it") {
		t.Errorf("applied %d times:\n%s", n, said)
	}
}

// A step that does not lower the number of errors is taken back at once, and never tried again.
func TestFixTakesBackWhatDoesNotHelp(t *testing.T) {
	one := []string{`ERROR a.go:3:5 stubborn [compiler]`}
	b := &broken{errors: one, actions: map[string]string{"a.go:3:5": "a1  Try this [quickfix]"}}
	undone := 0
	p := &project{t: t, answer: func(name string, in map[string]any) (string, bool) {
		switch {
		case in["undo"] == "a1":
			undone++
			b.errors = one
			return "Applied.", false
		case in["apply"] == "a1":
			b.errors = []string{one[0], `ERROR a.go:4:1 worse [compiler]`}
			return "Applied.", false
		}
		return b.answer(name, in)
	}}
	said := p.converse("fix")
	if undone != 1 || len(b.errors) != 1 || !strings.Contains(said, "I could fix none of the 1 error") {
		t.Errorf("undone %d times, %q left:\n%s", undone, b.errors, said)
	}
}

// gopls reports only the first syntax error of a file. A step that mends it uncovers the next one and is kept, if that is further down; the
// next action is tried where the first one only moves the error up, or to the next line, where it is the same mistake.
func TestSyntaxErrorsAreMendedOneAfterTheOther(t *testing.T) {
	for _, moved := range []int{4, 10} {
		mendsSyntax(t, moved)
	}
}

// mendsSyntax has one syntax error after the other in a file; the first action for the first of them moves it to a line.
func mendsSyntax(t *testing.T, moved int) {
	t.Helper()
	b := &broken{errors: []string{"ERROR a.go:9:2 expected '}' [syntax]"}}
	var applied []any
	p := &project{t: t, answer: func(_ string, in map[string]any) (string, bool) {
		one := func(line int) { b.errors = []string{fmt.Sprintf("ERROR a.go:%d:2 expected '}' [syntax]", line)} }
		switch {
		case in["apply"] == "a1": // the parser now stops elsewhere
			one(moved)
		case in["undo"] == "a1":
			one(9)
		case in["apply"] == "a2":
			one(20)
		case in["apply"] == "a3":
			b.errors = nil
		case in["operation"] == "codeActions" && in["line"] == 9.0:
			return "a1  Insert } [quickfix]  fixes 1, introduces 0\na2  Insert , [quickfix]  fixes 1, introduces 0", false
		case in["operation"] == "codeActions":
			return "a3  Insert ) [quickfix]  fixes 1, introduces 0", false
		default:
			return b.answer("lsp", in)
		}
		if in["apply"] != nil {
			applied = append(applied, in["apply"])
		}
		return "Applied.", false
	}}
	if said := p.converse("fix"); fmt.Sprint(applied) != "[a1 a2 a3]" || !strings.Contains(said, "none left") {
		t.Errorf("%v\n%s", applied, said)
	}
}

// A bracket at a wrong place removes the syntax error and gives others. Where more are left in the file than it had, its steps are taken back
// at the end, in reverse order; a step in another file stays, and so does a bracket behind which fixes were found for all.
func TestABracketThatLeavesMoreErrorsIsTakenBack(t *testing.T) {
	for _, mendable := range []bool{false, true} {
		texts := map[string][]string{"a.go": {"ERROR a.go:9:2 expected '}' [syntax]"}, "b.go": {"ERROR b.go:3:1 undefined: y [compiler]"}}
		behind := []string{"ERROR a.go:3:2 undefined: x [compiler]", "ERROR a.go:5:2 undefined: z [compiler]", "ERROR a.go:6:2 missing return [compiler]"}
		start := slices.Clone(texts["a.go"])
		var log []string
		p := &project{t: t, answer: func(_ string, in map[string]any) (string, bool) {
			apply, _ := in["apply"].(string)
			undo, _ := in["undo"].(string)
			switch {
			case in["operation"] == "diagnostics":
				b := &broken{errors: slices.Concat(texts["a.go"], texts["b.go"])}
				return b.answer("lsp", in)
			case undo == "a1":
				texts["a.go"] = start
			case undo == "a5":
				texts["a.go"] = behind
			case apply == "a1":
				texts["a.go"] = behind
			case apply == "a2":
				texts["b.go"] = nil
			case apply != "": // the fixes of what was behind
				texts["a.go"] = slices.DeleteFunc(slices.Clone(texts["a.go"]), func(e string) bool {
					return apply == "a5" && strings.Contains(e, " x ") || apply == "a6" && strings.Contains(e, " z ") || apply == "a7" && strings.Contains(e, "return")
				})
			default:
				return map[string]string{"a.go 9": "a1  Insert } [quickfix]  fixes 1, introduces 0", "b.go 3": "a2  Change y to z [quickfix]  fixes 1, introduces 0",
					"a.go 3": "a5  Change x to y [quickfix]  fixes 1, introduces 0",
					"a.go 5": map[bool]string{true: "a6  Change z to y [quickfix]  fixes 1, introduces 0"}[mendable],
					"a.go 6": map[bool]string{true: "a7  Return [quickfix]  fixes 1, introduces 0"}[mendable]}[fmt.Sprint(in["filePath"], " ", in["line"])], false
			}
			log = append(log, apply+undo)
			return "Applied.", false
		}}
		said := p.converse("fix all errors")
		want, words := "[a1 a5 a2 a5 a1]", []string{"Fixed 1 of 2 errors; 1 left.", `expected '}' — "Insert }" left 2 errors in its file, so I took it back`}
		if mendable {
			want, words = "[a1 a5 a6 a7 a2]", []string{"Done: 2 errors fixed, none left."}
		}
		if fmt.Sprint(log) != want {
			t.Errorf("%v, want %s\n%s", log, want, said)
		}
		for _, w := range words {
			if !strings.Contains(said, w) {
				t.Errorf("%q is not in\n%s", w, said)
			}
		}
	}
}

// The kind of an action decides whether it repairs, whatever characters are in it.
func TestRefactoringsAreNoQuickFixes(t *testing.T) {
	b := &broken{errors: []string{`ERROR a.go:3:5 stubborn [compiler]`}, actions: map[string]string{"a.go:3:5": "a1  Extract all [refactor.extract.variable-all]"}}
	p := &project{t: t, answer: b.answer}
	p.converse("fix")
	for _, c := range p.calls {
		if strings.Contains(c, "a1") {
			t.Errorf("it applied %s", c)
		}
	}
}

func TestRootCausesAndRealFixesComeFirst(t *testing.T) {
	f := &fixer{why: map[string]string{}, tried: map[string]bool{}}
	all := []action{
		{ID: "stub", Title: "a", Kind: "quickfix", Preferred: true, Effect: &effect{Errors: -9, Stub: true}},
		{ID: "silent", Title: "f", Kind: "quickfix", Preferred: true, Effect: &effect{Errors: -1, Discards: true}},
		{ID: "one", Title: "b", Kind: "quickfix", Effect: &effect{Errors: -1}},
		{ID: "unknown", Title: "c", Kind: "quickfix"},
		{ID: "root", Title: "d", Kind: "quickfix", Effect: &effect{Errors: -5}},
		{ID: "none", Title: "e", Kind: "quickfix", Effect: &effect{Fixes: 3}},
	}
	var got []string
	for range all {
		a, ok := f.choose(problem{}, all)
		if !ok {
			break
		}
		got = append(got, a.ID)
		f.tried[problem{}.key()+"\x00"+a.Title] = true
	}
	if strings.Join(got, " ") != "root one silent unknown stub" {
		t.Errorf("%v", got)
	}
	p, _ := f.next([]problem{{Path: "a", Source: "compiler"}, {Path: "b", Source: "syntax"}})
	if p.Path != "b" {
		t.Errorf("a syntax error hides others, and %s comes first", p.Path)
	}
}

func TestFixFindsTheTwinOfAnErrorOnItsLine(t *testing.T) {
	b := &broken{errors: []string{"ERROR a.go:26:2 no new variables [compiler]", "WARNING a.go:26:4 no new variables [nonewvars default]"},
		actions: map[string]string{"a.go:26:4": "a1  Change ':=' to '=' [quickfix]  fixes 2, introduces 0"}, cures: map[string]string{"a1": "no new variables"}}
	p := &project{t: t, answer: b.answer}
	if said := p.converse("fix"); !strings.Contains(said, "Done: 1 error fixed") {
		t.Error(said)
	}
}

func TestARefusalIsHeardAndNotAskedAgain(t *testing.T) {
	for words, want := range map[string]string{
		"The user looked at this change and rejected all of it; nothing was written.":                                     `you did not accept "Remove variable x"`,
		"edit needs approval, but no user can answer (this run has no terminal, or --approve none was given). Do not try": "no user could approve it",
	} {
		b := &broken{errors: []string{"ERROR a.go:3:5 declared and not used: x [compiler]"}, actions: map[string]string{"a.go:3:5": "a1  Remove variable x [quickfix]"}, refuse: map[string]string{"a1": words}}
		p := &project{t: t, answer: b.answer}
		if said := p.converse("fix"); !strings.Contains(said, want) || strings.Contains(said, "choose a larger model") {
			t.Errorf("want %q in:\n%s", want, said)
		}
	}
}

func TestRenameFindsTheDeclarationAndAsksWhenThereAreTwo(t *testing.T) {
	symbols := "function longest in report  report/report.go:24:6"
	p := &project{t: t, answer: func(_ string, in map[string]any) (string, bool) {
		if in["operation"] == "workspaceSymbol" {
			return symbols, false
		}
		return "Applied.", fmt.Sprint(in["filePath"], in["line"], in["character"], in["newName"]) != "report/report.go24 6widest"
	}}
	if said := p.converse("rename longest to widest"); said != "Renamed longest to widest." {
		t.Error(said)
	}
	symbols += "\nvariable longest in shop  shop/a.go:3:1\nfunction longestOf in shop  shop/a.go:9:1"
	if said := p.converse("rename longest to widest"); !strings.Contains(said, "declared in 2 places") {
		t.Error(said)
	}
	if said := p.converse("rename longest to widest in shop/a.go"); !strings.Contains(said, "could not be renamed") {
		t.Error(said) // it went for shop/a.go:3:1, which this project refuses
	}
}

func TestUsesLeaveTheDeclarationOut(t *testing.T) {
	p := &project{t: t, answer: func(_ string, in map[string]any) (string, bool) {
		if in["operation"] == "workspaceSymbol" {
			return "method Basket.Total in shop  shop/b.go:29:18", false
		}
		return "shop/b.go:29:18  func (b *Basket) Total() Cents {\ncmd/main.go:26:4  x := b.Total()", false
	}}
	if said := p.converse("find uses of Basket.Total"); !strings.Contains(said, "has 1 use in 1 file") || !strings.Contains(said, "26  x := b.Total()") {
		t.Error(said)
	}
}

func TestWhatItCannotDoItSaysAndHowToAddAModel(t *testing.T) {
	p := &project{t: t}
	if said := p.converse("write a web server"); !strings.Contains(said, "ANTHROPIC_API_KEY") || len(p.calls) != 0 {
		t.Error(said, p.calls)
	}
}

func TestExplainAsksForAllProblemsSideBySide(t *testing.T) {
	b := &broken{errors: []string{"ERROR a.go:3:5 undefined: y [compiler]"}, actions: map[string]string{"a.go:3:5": "a1  Create variable y [quickfix]"}}
	p := &project{t: t, answer: func(name string, in map[string]any) (string, bool) {
		if name == "read" {
			return "<content>\n3: \treturn y\n</content>", false
		}
		return b.answer(name, in)
	}}
	said := p.converse("explain errors")
	for _, want := range []string{"**a.go:3** error: undefined: y", "return y", "A quick fix would be: Create variable y"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not in\n%s", want, said)
		}
	}
}

// A server that has not read the project yet is asked once more; one that stays busy is not asked for ever.
func TestFixWaitsForABusyServer(t *testing.T) {
	for _, c := range []struct {
		busy int // answers
		want string
	}{{1, "Done: 1 error fixed, none left."}, {9, "gopls is still busy"}} {
		b := &broken{
			errors:  []string{`ERROR a.go:3:5 declared and not used: x [compiler UnusedVar]`},
			actions: map[string]string{"a.go:3:5": "a2  Remove variable x [quickfix] (preferred)  fixes 1, introduces 0"},
			cures:   map[string]string{"a2": "not used: x"},
		}
		left, same := c.busy, 0
		p := &project{t: t, answer: func(name string, in map[string]any) (string, bool) {
			if in["operation"] != "codeActions" || left == 0 {
				same = 0
				return b.answer(name, in)
			}
			if same++; same > 2 {
				t.Error("a third question of the same kind counts as a loop")
			}
			left--
			return "codeActions: gopls is still busy: Setting up workspace (45/66)", true
		}}
		if said := p.converse("fix all errors"); !strings.Contains(said, c.want) {
			t.Errorf("%d answers of a busy server:\n%s", c.busy, said)
		}
	}
}
