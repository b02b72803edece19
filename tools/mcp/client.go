package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/permission"
)

// client returns the client side of one connection: the capabilities that it announces, and the handlers of the server's requests. The
// handlers for changed lists start a goroutine: they read the lists over the connection whose reader has called them, and would otherwise
// wait for themselves. Sampling is announced only if Options.Sample can answer it, because servers rely on what is announced.
func (v *server) client() *sdk.Client {
	o := &sdk.ClientOptions{
		Logger: v.set.o.Log,
		Capabilities: &sdk.ClientCapabilities{RootsV2: &sdk.RootCapabilities{},
			Elicitation: &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}, URL: &sdk.URLElicitationCapabilities{}}},
		ToolListChangedHandler: func(_ context.Context, r *sdk.ToolListChangedRequest) {
			go v.reread(v.set.ctx, r.Session)
		},
		PromptListChangedHandler: func(_ context.Context, r *sdk.PromptListChangedRequest) {
			go v.reread(v.set.ctx, r.Session)
		},
		ResourceListChangedHandler:  func(context.Context, *sdk.ResourceListChangedRequest) { v.known.expire() },
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { v.progressed(r.Params) },
		LoggingMessageHandler: func(_ context.Context, r *sdk.LoggingMessageRequest) {
			v.set.o.Log.Debug("mcp", "server", v.Name, "level", r.Params.Level, "data", r.Params.Data)
		},
		ElicitationHandler: func(ctx context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return v.elicit(ctx, r.Params)
		},
	}
	if v.set.o.Sample != nil {
		o.CreateMessageHandler = func(ctx context.Context, r *sdk.CreateMessageRequest) (*sdk.CreateMessageResult, error) {
			return v.sample(ctx, r.Params)
		}
	}
	c := sdk.NewClient(&sdk.Implementation{Name: "pillion", Title: "Pillion", Version: v.set.o.Version}, o)
	if root := v.set.o.Root; root != "" {
		c.AddRoots(&sdk.Root{URI: (&url.URL{Scheme: "file", Path: filepath.ToSlash(root)}).String(), Name: filepath.Base(root)})
	}
	return c
}

// field is one property of an elicitation form, in the flat schemas to which MCP limits such forms ("Elicitation"). Enum with EnumNames,
// and OneOf, are two spellings of a single choice; servers use both. Items describes a choice of several values.
type field struct {
	Type        string   `json:"type"`
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Enum        []string `json:"enum"`
	EnumNames   []string `json:"enumNames"`
	OneOf       []choice `json:"oneOf"`
	Default     any      `json:"default"`
	Items       *struct {
		Enum  []string `json:"enum"`
		AnyOf []choice `json:"anyOf"`
	} `json:"items"`
}

// choice is one value of OneOf or AnyOf, with the title that the person reads.
type choice struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

// Limits of elicitation. A server that asks again and again would train the person to answer without reading.
const (
	maxElicit = 10 // requests during one tool call
	maxFields = 20 // fields in one form
)

// elicit asks the person for the values that a server wants, on behalf of the running call. It declines outside a call, because the person
// could not see why the server asks; beyond the limits; and for a schema that it cannot read. Servers can handle a decline, while an error
// may make their call fail.
func (v *server) elicit(ctx context.Context, p *sdk.ElicitParams) (*sdk.ElicitResult, error) {
	decline := &sdk.ElicitResult{Action: "decline"}
	r := v.calls.latest()
	if r == nil || r.call.Host.Questions == nil || r.asked.Add(1) > maxElicit {
		return decline, nil
	}
	if p.Mode == "url" || p.URL != "" {
		return v.elicitURL(ctx, r, p)
	}
	raw, err := json.Marshal(p.RequestedSchema)
	if err != nil {
		return decline, nil
	}
	var form struct {
		Properties map[string]field `json:"properties"`
		Required   []string         `json:"required"`
	}
	if err := json.Unmarshal(raw, &form); err != nil {
		return decline, nil
	}
	names := order(form.Properties, form.Required)
	if len(names) > maxFields {
		return decline, nil
	}
	intro := fmt.Sprintf("The MCP server %s asks: %s", v.Name, tools.Cut(strings.TrimSpace(p.Message), 1000))
	var qs []tools.Question
	for _, name := range names {
		qs = append(qs, question(intro, name, form.Properties[name]))
	}
	if len(qs) == 0 { // nothing to fill in: a yes or no
		no := false
		qs = []tools.Question{{Question: intro, Header: tools.Cut(v.Name, 30), Custom: &no, Options: []tools.Option{{Label: "Yes"}, {Label: "No"}}}}
	}
	answers, err := r.ask(ctx, qs)
	switch {
	case errors.Is(err, tools.ErrDismissed):
		return &sdk.ElicitResult{Action: "cancel"}, nil
	case err != nil:
		return nil, err
	case len(names) == 0:
		if len(answers) > 0 && slices.Contains(answers[0], "Yes") {
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{}}, nil
		}
		return decline, nil
	}
	content := map[string]any{}
	for i, name := range names {
		// Answers are in the order of names, like the questions.
		if i < len(answers) {
			if value, ok := form.Properties[name].value(answers[i]); ok {
				content[name] = value
			}
		}
	}
	return &sdk.ElicitResult{Action: "accept", Content: content}, nil
}

// order returns the order in which a form's fields are asked: the required ones first, both groups by name, so that a form looks the same
// each time. The server's own order is lost when the JSON object is decoded.
func order(properties map[string]field, required []string) []string {
	names := slices.Sorted(maps.Keys(properties))
	slices.SortStableFunc(names, func(a, b string) int {
		return cmp.Compare(boolInt(slices.Contains(required, b)), boolInt(slices.Contains(required, a)))
	})
	return names
}

// boolInt orders false before true.
func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// choices returns the values of an enumeration or a boolean, and the texts that the person reads: values[i] is sent for labels[i]. Both are
// empty for free input.
func (f field) choices() (values, labels []string) {
	oneOf, enum := f.OneOf, f.Enum
	if f.Items != nil {
		oneOf, enum = f.Items.AnyOf, f.Items.Enum
	}
	for _, c := range oneOf {
		label := c.Title
		if label == "" {
			label = c.Const
		}
		values, labels = append(values, c.Const), append(labels, label)
	}
	for i, e := range enum {
		label := e
		if i < len(f.EnumNames) {
			label = f.EnumNames[i]
		}
		values, labels = append(values, e), append(labels, label)
	}
	if f.Type == "boolean" {
		return []string{"true", "false"}, []string{"Yes", "No"}
	}
	return values, labels
}

// question turns a form's field into a question to the person. Title and description are the server's text, so they are cut.
func question(intro, name string, f field) tools.Question {
	title := f.Title
	if title == "" {
		title = name
	}
	q := tools.Question{Question: intro + "\n" + title, Header: tools.Cut(title, 30), Multiple: f.Type == "array"}
	if f.Description != "" {
		q.Question += ": " + tools.Cut(f.Description, 500)
	}
	_, labels := f.choices()
	for _, l := range labels {
		q.Options = append(q.Options, tools.Option{Label: l})
	}
	// A free answer to an enumeration would break the server's schema.
	if len(labels) > 0 {
		no := false
		q.Custom = &no
	}
	return q
}

// value converts the person's answer to the type in the field's schema. ok is false, and the field is left out, for an empty answer without
// a default and for text that is not a number where one is required.
func (f field) value(answer []string) (any, bool) {
	if len(answer) == 0 || len(answer) == 1 && strings.TrimSpace(answer[0]) == "" {
		return f.Default, f.Default != nil
	}
	values, labels := f.choices()
	pick := func(label string) string {
		if i := slices.Index(labels, label); i >= 0 {
			return values[i]
		}
		return label
	}
	switch f.Type {
	case "boolean":
		return pick(answer[0]) == "true", true
	case "integer":
		n, err := strconv.ParseInt(strings.TrimSpace(answer[0]), 10, 64)
		return n, err == nil
	case "number":
		n, err := strconv.ParseFloat(strings.TrimSpace(answer[0]), 64)
		return n, err == nil
	case "array":
		all := make([]string, len(answer))
		for i, a := range answer {
			all[i] = pick(a)
		}
		return all, true
	}
	return pick(answer[0]), true
}

// Sample is a sampling request: messages that a server wants a model to answer (MCP, "Sampling"). MaxTokens limits the answer.
type Sample struct {
	System    string
	Messages  []SampleMessage
	MaxTokens int64
}

// SampleMessage is a message of a sampling request; Role is user or assistant.
type SampleMessage struct {
	Role, Text string
	Images     []tools.Attachment
}

// Sampled is the model's answer.
type Sampled struct{ Text, Model, Stop string }

// sample lets the session's model answer a server after the person's approval, because it costs tokens and the server reads the answer. A
// grant of "always" covers all requests of this server. Outside a tool call it is an error: there is no session whose model could answer.
func (v *server) sample(ctx context.Context, p *sdk.CreateMessageParams) (*sdk.CreateMessageResult, error) {
	r := v.calls.latest()
	if r == nil {
		return nil, errors.New("sampling is answered only while one of the server's tools is called")
	}
	s := Sample{System: p.SystemPrompt, MaxTokens: p.MaxTokens}
	for _, m := range p.Messages {
		got := convert([]sdk.Content{m.Content}, nil, nil)
		s.Messages = append(s.Messages, SampleMessage{Role: string(m.Role), Text: got.Output, Images: got.Attachments})
	}
	// The approval shows the last message, which is the question; those before it are the server's context.
	first := ""
	if len(s.Messages) > 0 {
		first = s.Messages[len(s.Messages)-1].Text
	}
	// The call's silence timer stays stopped until the model has answered: the server is waiting for Pillion.
	defer r.person()()
	err := ask(ctx, r.call, permission.Request{
		Permission: "mcp_sampling", Patterns: []string{v.Name}, Always: []string{v.Name}, Added: true,
		Title: fmt.Sprintf("Let the MCP server %s ask the model: %s", v.Name, tools.Cut(first, 200)),
		Why:   "The server wants an answer of your model. It costs tokens, and the server reads the answer.",
	})
	if err != nil {
		return nil, err
	}
	answer, err := v.set.o.Sample(ctx, r.call.SessionID, s)
	if err != nil {
		return nil, err
	}
	return &sdk.CreateMessageResult{Role: "assistant", Content: &sdk.TextContent{Text: answer.Text}, Model: answer.Model, StopReason: answer.Stop}, nil
}
