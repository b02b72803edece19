package wiretest

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// Request is a model request as it was received.
// Header is a copy and Body is whole, so a test may look at them at any time.
type Request struct {
	Format Format
	Path   string
	Query  string
	Header http.Header
	Body   []byte
	Time   time.Time // when the whole body had arrived
}

// Message is a message of a request, in one shape for all formats. Consecutive messages of one role stay separate. Text blocks are
// joined, because tests ask for what was said and not for its blocks.
type Message struct {
	Role    string // system, user, assistant, tool
	Text    string // text parts joined with newlines
	Calls   []Call
	Results []Result
	Files   []string // media types
}

// Result is a tool result in a request.
type Result struct {
	CallID string // Gemini: the function's name when it carries no id
	Name   string // where the format carries it
	Text   string
	Error  bool
}

// JSON decodes the body into v. An error means that the adapter wrote a body that is not JSON.
func (r Request) JSON(v any) error { return json.Unmarshal(r.Body, v) }

// Model is the model that the request names. Gemini, and Claude on Vertex, have it in the path: …/models/NAME:streamGenerateContent.
func (r Request) Model() string {
	if _, m, ok := strings.Cut(r.Path, "/models/"); ok {
		m, _, _ = strings.Cut(m, ":")
		return m
	}
	var b struct{ Model string }
	_ = json.Unmarshal(r.Body, &b)
	return b.Model
}

// ToolNames are the tools that the request offers, in order. The formats are told apart by the fields that are set.
func (r Request) ToolNames() []string {
	var b struct {
		Tools []struct {
			Name                 string
			Function             struct{ Name string }
			FunctionDeclarations []struct{ Name string }
		}
	}
	_ = json.Unmarshal(r.Body, &b)
	var out []string
	for _, t := range b.Tools {
		switch {
		case t.Name != "":
			out = append(out, t.Name)
		case t.Function.Name != "":
			out = append(out, t.Function.Name)
		}
		for _, f := range t.FunctionDeclarations {
			out = append(out, f.Name)
		}
	}
	return out
}

// LastText is the text of the last message, or its last tool result; empty when the request has no messages.
func (r Request) LastText() string {
	all := r.Messages()
	if len(all) == 0 {
		return ""
	}
	m := all[len(all)-1]
	if m.Text == "" && len(m.Results) > 0 {
		return m.Results[len(m.Results)-1].Text
	}
	return m.Text
}

// Results are all tool results of the request, by call id. Of two with one id the later counts.
func (r Request) Results() map[string]Result {
	out := map[string]Result{}
	for _, m := range r.Messages() {
		for _, res := range m.Results {
			out[res.CallID] = res
		}
	}
	return out
}

// Messages reads the conversation; the system prompt comes first.
func (r Request) Messages() []Message {
	switch r.Format {
	case Anthropic:
		return r.anthropicMessages()
	case Chat:
		return r.chatMessages()
	case Responses:
		return r.responsesMessages()
	case Gemini:
		return r.geminiMessages()
	}
	return nil
}

// block is any content block of Anthropic and of the OpenAI formats. encoding/json ignores case, so only names with an underscore need a
// tag.
type block struct {
	Type      string
	Text      string
	ID        string
	Name      string
	Input     json.RawMessage
	ToolUseID string `json:"tool_use_id"`
	Content   json.RawMessage
	IsError   bool `json:"is_error"`
	Source    struct {
		MediaType string `json:"media_type"`
	}
	ImageURL json.RawMessage `json:"image_url"`
	File     struct {
		FileData string `json:"file_data"`
	}
	FileData string `json:"file_data"`
}

// blocks reads content that is a string or a list of blocks; anything else has none.
func blocks(raw json.RawMessage) []block {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []block{{Type: "text", Text: text}}
	}
	var list []block
	_ = json.Unmarshal(raw, &list)
	return list
}

// textOf joins the text blocks with newlines. Types that end in "text" are text, input_text and output_text.
func textOf(list []block) string {
	var parts []string
	for _, b := range list {
		if strings.HasSuffix(b.Type, "text") {
			parts = append(parts, b.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// filesOf are the media types of the blocks that are files.
func filesOf(list []block) []string {
	var out []string
	for _, b := range list {
		// Both OpenAI formats carry files as data URLs, under different names.
		url := b.File.FileData + b.FileData
		if len(b.ImageURL) > 0 {
			var o struct{ URL string }
			// image_url is a string in Responses and an object in Chat Completions.
			if json.Unmarshal(b.ImageURL, &url) != nil && json.Unmarshal(b.ImageURL, &o) == nil {
				url = o.URL
			}
		}
		if b.Source.MediaType != "" {
			out = append(out, b.Source.MediaType)
		} else if mime, ok := strings.CutPrefix(url, "data:"); ok {
			mime, _, _ = strings.Cut(mime, ";")
			out = append(out, mime)
		}
	}
	return out
}

// anthropicMessages, like the readers below, turns the format's messages into the one shape of Message, so that a test that was written
// once holds for all four formats. In this one the system prompt is a field beside the messages.
func (r Request) anthropicMessages() []Message {
	var b struct {
		System   json.RawMessage
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	_ = json.Unmarshal(r.Body, &b)
	var out []Message
	// In every format the system prompt is the first message that a test sees.
	if len(b.System) > 0 {
		out = append(out, Message{Role: "system", Text: textOf(blocks(b.System))})
	}
	for _, m := range b.Messages {
		list := blocks(m.Content)
		msg := Message{Role: m.Role, Text: textOf(list), Files: filesOf(list)}
		for _, bl := range list {
			switch bl.Type {
			case "tool_use":
				msg.Calls = append(msg.Calls, Call{ID: bl.ID, Name: bl.Name, Input: bl.Input})
			case "tool_result":
				inner := blocks(bl.Content)
				msg.Results = append(msg.Results, Result{CallID: bl.ToolUseID, Text: textOf(inner), Error: bl.IsError})
				// files inside a tool result are counted to its message
				msg.Files = append(msg.Files, filesOf(inner)...)
			}
		}
		out = append(out, msg)
	}
	return out
}

// chatMessages finds the system prompt as the first message; a tool message is a result.
func (r Request) chatMessages() []Message {
	var b struct {
		Messages []struct {
			Role       string
			Content    json.RawMessage
			ToolCallID string `json:"tool_call_id"`
			ToolCalls  []struct {
				ID       string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
	}
	_ = json.Unmarshal(r.Body, &b)
	var out []Message
	for _, m := range b.Messages {
		list := blocks(m.Content)
		msg := Message{Role: m.Role, Text: textOf(list), Files: filesOf(list)}
		if m.Role == "tool" {
			// its text is the result's, not something that was said
			msg.Results, msg.Text = []Result{{CallID: m.ToolCallID, Text: msg.Text}}, ""
		}
		for _, c := range m.ToolCalls {
			msg.Calls = append(msg.Calls, argsCall(c.ID, c.Function.Name, c.Function.Arguments))
		}
		out = append(out, msg)
	}
	return out
}

// argsCall is a call whose arguments came as a string: Input when they are JSON, else RawInput. So a test can see that broken arguments
// reach the model unchanged.
func argsCall(id, name, args string) Call {
	c := Call{ID: id, Name: name}
	if json.Valid([]byte(args)) {
		c.Input = json.RawMessage(args)
	} else {
		c.RawInput = args
	}
	return c
}

// responsesMessages makes one message of each item: in this format calls, results and texts are separate.
func (r Request) responsesMessages() []Message {
	var b struct {
		Instructions string
		Input        []struct {
			Type, Role string
			Content    json.RawMessage
			CallID     string `json:"call_id"`
			Name       string
			Arguments  string
			Output     json.RawMessage
		}
	}
	_ = json.Unmarshal(r.Body, &b)
	var out []Message
	if b.Instructions != "" {
		out = append(out, Message{Role: "system", Text: b.Instructions})
	}
	for _, in := range b.Input {
		switch in.Type {
		case "function_call":
			out = append(out, Message{Role: "assistant", Calls: []Call{argsCall(in.CallID, in.Name, in.Arguments)}})
		case "function_call_output":
			list := blocks(in.Output)
			out = append(out, Message{Role: "tool", Results: []Result{{CallID: in.CallID, Text: textOf(list)}}, Files: filesOf(list)})
		// Tests cannot look into reasoning: the item has no text for them.
		case "reasoning":
		default:
			role := in.Role
			// Newer OpenAI models call the system role "developer".
			if role == "developer" {
				role = "system"
			}
			list := blocks(in.Content)
			out = append(out, Message{Role: role, Text: textOf(list), Files: filesOf(list)})
		}
	}
	return out
}

// geminiContent is a message of the Gemini format, with the fields that tests look at.
type geminiContent struct {
	Role  string
	Parts []struct {
		Text         string
		Thought      bool
		FunctionCall *struct {
			ID, Name string
			Args     json.RawMessage
		}
		FunctionResponse *struct {
			ID, Name string
			Response struct{ Output, Error string }
		}
		InlineData *struct{ MimeType string }
	}
}

// geminiMessages reads the roles user and model; results come in messages of the user.
func (r Request) geminiMessages() []Message {
	var b struct {
		SystemInstruction *geminiContent
		Contents          []geminiContent
	}
	_ = json.Unmarshal(r.Body, &b)
	var out []Message
	if b.SystemInstruction != nil {
		b.SystemInstruction.Role = "system"
		b.Contents = append([]geminiContent{*b.SystemInstruction}, b.Contents...)
	}
	for _, c := range b.Contents {
		msg := Message{Role: c.Role}
		if c.Role == "model" {
			msg.Role = "assistant"
		}
		var texts []string
		for _, p := range c.Parts {
			switch {
			case p.FunctionCall != nil:
				msg.Calls = append(msg.Calls, Call{ID: p.FunctionCall.ID, Name: p.FunctionCall.Name, Input: p.FunctionCall.Args})
			case p.FunctionResponse != nil:
				f := p.FunctionResponse
				res := Result{CallID: f.ID, Name: f.Name, Text: f.Response.Output}
				if res.CallID == "" {
					// an id is optional in this format
					res.CallID = f.Name
				}
				if f.Response.Error != "" {
					res.Text, res.Error = f.Response.Error, true
				}
				msg.Results = append(msg.Results, res)
			case p.InlineData != nil:
				msg.Files = append(msg.Files, p.InlineData.MimeType)
			// thoughts that are sent back are not part of the text
			case !p.Thought && p.Text != "":
				texts = append(texts, p.Text)
			}
		}
		msg.Text = strings.Join(texts, "\n")
		out = append(out, msg)
	}
	return out
}
