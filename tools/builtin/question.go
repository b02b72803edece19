package builtin

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/textutil"
)

//go:embed question.txt
var questionText string

// questionParams has the names of OpenCode's tool; all questions are asked in one form.
type questionParams struct {
	Questions []questionItem `json:"questions" minItems:"1" maxItems:"10"`
}

// questionItem is one question; Custom is a pointer because leaving it out means yes.
type questionItem struct {
	Question string           `json:"question" minLength:"1"`
	Header   string           `json:"header,omitempty" jsonschema:"a label of at most 30 characters"`
	Options  []questionOption `json:"options,omitempty" jsonschema:"none: the user's own words"`
	Multiple bool             `json:"multiple,omitempty" jsonschema:"several options may be chosen"`
	Custom   *bool            `json:"custom,omitempty" jsonschema:"whether the user may answer in their own words; yes by default"`
}

// questionOption is one answer to choose; the label alone comes back to the model.
type questionOption struct {
	Label       string `json:"label" minLength:"1" jsonschema:"1 to 5 words"`
	Description string `json:"description,omitempty"`
}

// maxHeader is the length that the parameter's description asks for; longer labels are cut.
const maxHeader = 30 // characters

// Question asks the person and waits for the answers. The result repeats each question with its answer, because several are asked at
// once. An answer that is missing is "Unanswered".
func Question(Env) tools.Tool {
	return tools.New("question", questionText, func(ctx context.Context, p questionParams, call *tools.Call) (tools.Result, error) {
		if call.Host.Questions == nil {
			return tools.Result{}, &tools.Error{Kind: "unavailable", Message: "No user is connected to answer. Decide yourself, and say what you decided."}
		}
		qs := make([]tools.Question, len(p.Questions))
		for i, q := range p.Questions {
			qs[i] = tools.Question{Question: q.Question, Header: header(q), Multiple: q.Multiple, Custom: q.Custom}
			for _, o := range q.Options {
				qs[i].Options = append(qs[i].Options, tools.Option(o))
			}
			if len(q.Options) == 0 {
				qs[i].Custom = nil // nil means yes: without options the answer can only be free text
			}
		}
		answers, err := call.Host.Questions.AskQuestions(ctx, call, qs)
		if err != nil {
			return tools.Result{}, err
		}
		var said []string
		for i, q := range qs {
			text := "Unanswered"
			if i < len(answers) && len(answers[i]) > 0 {
				text = strings.Join(answers[i], ", ")
			}
			said = append(said, fmt.Sprintf("%q=%q", q.Question, text))
		}
		return tools.Result{
			Title:    asked(len(qs)),
			Output:   "User has answered your questions: " + strings.Join(said, ", ") + ". You can now continue with the user's answers in mind.",
			Metadata: map[string]any{"answers": answers},
		}, nil
	})
}

// asked is the call's title.
func asked(n int) string {
	if n == 1 {
		return "Asked 1 question"
	}
	return fmt.Sprintf("Asked %d questions", n)
}

// header is the question's label, cut to what editors show.
func header(q questionItem) string {
	return textutil.Shorten(strings.TrimSpace(q.Header), maxHeader)
}
