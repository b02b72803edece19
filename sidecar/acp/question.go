package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/pillion-dev/pillion/sidecar/editors"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools"
)

// AskQuestions implements tools.Questioner for one editor. It uses a form (ACP elicitation) if the editor shows
// forms, else one choice after the other, as permission requests. A question without options cannot be a choice: the
// model is told to ask in its answer.
func (who *person) AskQuestions(ctx context.Context, session string, call *tools.Call, qs []tools.Question) ([][]string, error) {
	if err := who.waitUntilShown(ctx, session); err != nil {
		return nil, err
	}
	if _, err := who.waitUntilChildShown(ctx, session, call.SessionID, call.CallID); err != nil {
		return nil, err
	}
	if who.editor.Client().AsksForms() {
		answers, err := who.askForm(ctx, session, call, qs)
		// A form that this editor cannot show is asked as choices below; any other error is the answer.
		if !errors.Is(err, editors.ErrCannotAsk) || who.ctx.Err() != nil {
			return answers, err
		}
		who.log.Info("the editor announced forms and cannot show one", "err", err)
	}
	answers := make([][]string, len(qs))
	for i, q := range qs {
		// Failing would lose the answers to the other questions.
		if len(q.Options) == 0 {
			answers[i] = []string{"(the editor cannot ask this; put the question into your reply and wait for the next message)"}
			continue
		}
		label, err := who.askChoice(ctx, session, call, i, q)
		if err != nil {
			return nil, err
		}
		answers[i] = []string{label}
	}
	return answers, nil
}

// freeTextField ends the name of a form's field for an answer that is none of the options.
const freeTextField = "-other"

// askForm asks all questions in one form. It fails with editors.ErrCannotAsk when the editor announced forms and
// cannot show this one, and with tools.ErrDismissed when the person closes it.
func (who *person) askForm(ctx context.Context, session string, call *tools.Call, qs []tools.Question) ([][]string, error) {
	form := &protocol.ElicitationSchema{Type: "object", Properties: map[string]protocol.ElicitationPropertySchema{}}
	var text []string
	for i, q := range qs {
		key := "q" + strconv.Itoa(i+1)
		title := q.Header
		if title == "" {
			title = q.Question
		}
		text = append(text, q.Question)
		custom := q.Custom == nil || *q.Custom
		var opts []protocol.EnumOption
		for _, o := range q.Options {
			name := o.Label
			if o.Description != "" {
				name += ": " + o.Description
			}
			opts = append(opts, protocol.EnumOption{Const: o.Label, Title: name})
		}
		switch {
		case len(opts) == 0:
			form.Properties[key] = property("string", &protocol.StringPropertySchema{Title: title, Description: q.Question})
			form.Required = append(form.Required, key)
			continue
		// A list of titled options (anyOf) is how ACP asks for several of them.
		case q.Multiple:
			form.Properties[key] = property("array", &protocol.MultiSelectPropertySchema{Title: title, Description: q.Question,
				Items: protocol.MultiSelectItems{Value: &protocol.TitledMultiSelectItems{AnyOf: opts}}})
		default:
			form.Properties[key] = property("string", &protocol.StringPropertySchema{Title: title, Description: q.Question, OneOf: opts})
		}
		// Neither field is required then: the person fills in one of them.
		if custom {
			form.Properties[key+freeTextField] = property("string", &protocol.StringPropertySchema{Title: title + " (own words)", Description: "Instead of the options above"})
		} else if !q.Multiple {
			form.Required = append(form.Required, key)
		}
	}
	var got protocol.CreateElicitationResponse
	err := who.editor.Call(ctx, protocol.MethodElicitationCreate, protocol.CreateElicitationRequest{
		Mode: "form", SessionID: session, ToolCallID: call.CallID, Message: strings.Join(text, "\n"), RequestedSchema: form,
	}, &got)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%w: %w", editors.ErrCannotAsk, err)
	}
	// decline and cancel are the other actions of ACP.
	if got.Action != "accept" {
		return nil, tools.ErrDismissed
	}
	answers := make([][]string, len(qs))
	for i := range qs {
		key := "q" + strconv.Itoa(i+1)
		// Both fields count: a person may choose options and add words of their own.
		answers[i] = append(formValues(got.Content[key]), formValues(got.Content[key+freeTextField])...)
	}
	return answers, nil
}

// property is a field of a form.
func property(kind string, value any) protocol.ElicitationPropertySchema {
	return protocol.ElicitationPropertySchema{Type: kind, Value: value}
}

// formValues are the answers of a field: a string, a list of strings, or nothing. An answer of another type counts as
// none.
func formValues(raw json.RawMessage) []string {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		if one == "" {
			return nil
		}
		return []string{one}
	}
	var many []string
	_ = json.Unmarshal(raw, &many)
	return many
}

// askChoice asks one question as a permission request whose options are the answers. "None of these" dismisses it.
func (who *person) askChoice(ctx context.Context, session string, call *tools.Call, n int, q tools.Question) (string, error) {
	request := protocol.RequestPermissionRequest{SessionID: session, ToolCall: protocol.ToolCallUpdate{
		ToolCallID: call.CallID, Title: q.Question, Name: call.Tool, Kind: protocol.ToolKindOther, Status: protocol.ToolCallStatusPending,
		RawInput: rawJSON(q),
	}}
	// Descriptions have no place in ACP's options, so they are part of the text.
	text := q.Question
	for i, o := range q.Options {
		request.Options = append(request.Options, protocol.PermissionOption{OptionID: strconv.Itoa(i), Name: o.Label, Kind: protocol.PermissionOptionKindAllowOnce})
		if o.Description != "" {
			text += "\n- " + o.Label + ": " + o.Description
		}
	}
	request.ToolCall.Content = []protocol.ToolCallContent{protocol.TextOfCall(text)}
	request.Options = append(request.Options, protocol.PermissionOption{OptionID: optionReject, Name: "None of these", Kind: protocol.PermissionOptionKindRejectOnce})
	var got protocol.RequestPermissionResponse
	if err := who.editor.Call(ctx, protocol.MethodSessionRequestPermission, request, &got); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", fmt.Errorf("question %d: %w: %w", n+1, editors.ErrCannotAsk, err)
	}
	selected, ok := got.Outcome.Value.(*protocol.SelectedPermissionOutcome)
	if !ok {
		return "", tools.ErrDismissed
	}
	// The rejecting option is not a number, and neither is an option that was not offered.
	i, err := strconv.Atoi(selected.OptionID)
	if err != nil || i < 0 || i >= len(q.Options) {
		return "", tools.ErrDismissed
	}
	return q.Options[i].Label, nil
}
