package quickfix

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/agent/provider"
)

// answer plays a prompt whose one lsp call has been answered.
func answer(t *testing.T, prompt, result string) string {
	t.Helper()
	req := &provider.Request{Tools: []provider.ToolSpec{{Name: "lsp"}}, Messages: []provider.Message{
		{Role: provider.RoleUser, Parts: []provider.Part{{Type: provider.PartText, Text: prompt}}},
		{Role: provider.RoleAssistant, Parts: []provider.Part{{Type: provider.PartToolCall, CallID: "1", Name: "lsp", Input: json.RawMessage(`{"operation":"diagnostics"}`)}}},
		{Role: provider.RoleTool, Parts: []provider.Part{answered("1", "lsp", result, strings.HasPrefix(result, "File not found"))}},
	}}
	var text strings.Builder
	if err := (Provider{}).Stream(context.Background(), req, func(e provider.Event) error {
		if e.Type == provider.EventText {
			text.WriteString(e.Text)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func TestNoErrorsIsNotSaidWhenNobodyCouldLook(t *testing.T) {
	for result, want := range map[string]string{
		"Not known. (unavailable: gopls crashed: exit status 3)":            "I do not know what is wrong: gopls crashed: exit status 3.",
		"Not known yet. (pending: gopls is starting)":                       "I do not know what is wrong: gopls is starting.",
		"No problems in what was checked. (partial: gopls cannot see b.go)": "as far as the language servers can say (gopls cannot see b.go).",
		"No problems.": "There are no",
	} {
		for _, prompt := range []string{"fix all errors", "explain errors"} {
			got := answer(t, prompt, result)
			if !strings.Contains(got, want) || strings.HasPrefix(result, "Not known") && strings.Contains(got, "no errors") {
				t.Errorf("%s after %q: %q", prompt, result, got)
			}
		}
	}
}

func TestAWordThatIsNoFileIsToldWhatCanBeDone(t *testing.T) {
	got := answer(t, "explain recursion", "File not found: /p/recursion")
	if !strings.Contains(got, "no file or folder recursion") || !strings.Contains(got, "For everything else add a model") {
		t.Errorf("%q", got)
	}
}

func TestThePersonsWordsAreRead(t *testing.T) {
	for prompt, want := range map[string]request{
		"fix all errors":                         {verb: verbFix},
		"Fix all errors.":                        {verb: verbFix},
		"please fix the errors in shop/money.go": {verb: verbFix, where: "shop/money.go"},
		"fix errors in `cmd/till`":               {verb: verbFix, where: "cmd/till"},
		"fix":                                    {verb: verbFix},
		"fix the build":                          {verb: verbFix},
		"fix main.go":                            {verb: verbFix, where: "main.go"},
		"fix compile errors in the project":      {verb: verbFix},
		"make it compile":                        {verb: verbFix},
		"could you fix all the problems in @store.go?":    {verb: verbFix, where: "store.go"},
		"rename Total to Sum":                             {verb: verbRename, name: "Total", to: "Sum"},
		"rename the function `longest` to widest in r.go": {verb: verbRename, name: "longest", to: "widest", where: "r.go"},
		"organise imports":                                {verb: verbOrganize},
		"organize the imports of shop/money.go":           {verb: verbOrganize, where: "shop/money.go"},
		"format a.go":                                     {verb: verbFormat, where: "a.go"},
		"format":                                          {verb: verbFormat},
		"format the code":                                 {verb: verbFormat},
		"explain errors":                                  {verb: verbExplain},
		"explain the errors in a.go":                      {verb: verbExplain, where: "a.go"},
		"what is wrong with a.go?":                        {verb: verbExplain, where: "a.go"},
		"find uses of ParseCents":                         {verb: verbUses, name: "ParseCents"},
		"where is Basket.Total() used?":                   {verb: verbUses, name: "Basket.Total"},
		"who calls longest in report.go":                  {verb: verbUses, name: "longest", where: "report.go"},
		"write a web server":                              {},
		"explain this repo":                               {},
		"explain how the parser works":                    {},
		"fix the login bug":                               {},
		"format the dates as ISO 8601":                    {},
		"make the tests build faster":                     {},
		"fix the package shop":                            {verb: verbFix, where: "shop"},
		"fix src/my file.go":                              {verb: verbFix, where: "src/my file.go"},
		"prefix the names":                                {},
		"":                                                {},
	} {
		if got := parsePrompt(prompt); got != want {
			t.Errorf("%q: got %+v, want %+v", prompt, got, want)
		}
	}
}

func FuzzParsePrompt(f *testing.F) {
	f.Add("rename a to b in c")
	f.Add("please fix the errors in `x y`.")
	f.Fuzz(func(t *testing.T, s string) {
		r := parsePrompt(s)
		if r.verb == verbNone && r != (request{}) {
			t.Errorf("%q: fields without a verb: %+v", s, r)
		}
		if len(r.name)+len(r.to)+len(r.where) > len(s) {
			t.Errorf("%q: more than was said: %+v", s, r)
		}
		if r.verb != verbRename && r.to != "" || (r.verb == verbFix || r.verb == verbFormat || r.verb == verbOrganize || r.verb == verbExplain) && r.name != "" {
			t.Errorf("%q: a field of another verb: %+v", s, r)
		}
	})
}
