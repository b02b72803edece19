package provider

import (
	"encoding/json"
	"errors"
	"fmt"
)

// textSignature marks a thought signature that came with text and not with a call: it must be sent back in the same place.
const textSignature = "text:"

// geminiAnswer reads the chunks of one answer. Calls are not streamed: each comes whole in one chunk.
type geminiAnswer struct {
	out   emitter
	calls int
	ids   idSet
	// finish is the last finishReason; empty until the answer has ended. blocked is why the prompt was refused.
	finish  string
	blocked string
	usage   *geminiUsage
	like    template
}

// geminiChunk is a GenerateContentResponse with only what is new in it. Error is what a proxy sends instead.
type geminiChunk struct {
	Candidates []struct {
		Index   int `json:"index"`
		Content struct {
			Parts []geminiPart `json:"parts"`
		} `json:"content"`
		FinishReason  string `json:"finishReason"`
		FinishMessage string `json:"finishMessage"`
	} `json:"candidates"`
	PromptFeedback *struct {
		BlockReason string `json:"blockReason"`
	} `json:"promptFeedback"`
	Usage *geminiUsage    `json:"usageMetadata"`
	Error json.RawMessage `json:"error"`
}

// geminiPart holds Text or FunctionCall; a signature may come with either, or alone.
type geminiPart struct {
	Text         json.RawMessage `json:"text"`
	Thought      bool            `json:"thought"`
	Signature    string          `json:"thoughtSignature"`
	FunctionCall *struct {
		ID   string          `json:"id"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
}

// geminiUsage is in tokens. Prompt includes what was read from a cache; Thoughts are not part of Answer.
type geminiUsage struct {
	Prompt   int `json:"promptTokenCount"`
	Tools    int `json:"toolUsePromptTokenCount"`
	Cached   int `json:"cachedContentTokenCount"`
	Answer   int `json:"candidatesTokenCount"`
	Thoughts int `json:"thoughtsTokenCount"`
}

// event implements answer. Only the candidate with index 0 is read; requests ask for no other.
func (a *geminiAnswer) event(data []byte) (progress, error) {
	if ok, err := a.like.try(data); ok {
		return more, err
	}
	a.like.clear()
	// Some gateways end every format with [DONE].
	if strayDone(data) {
		return more, nil
	}
	var ch geminiChunk
	if err := json.Unmarshal(data, &ch); err != nil {
		var typeErr *json.UnmarshalTypeError
		if !errors.As(err, &typeErr) {
			return more, errBadEvent
		}
	}
	// The code and the status of the failure are inside the object.
	if len(ch.Error) > 0 && string(ch.Error) != "null" {
		f := parseFailure(0, nil, data)
		return more, f
	}
	if ch.PromptFeedback != nil && ch.PromptFeedback.BlockReason != "" {
		a.blocked = ch.PromptFeedback.BlockReason
	}
	// Each chunk repeats the counts so far.
	if ch.Usage != nil {
		a.usage = ch.Usage
	}
	for i := range ch.Candidates {
		c := &ch.Candidates[i]
		if c.Index != 0 {
			continue
		}
		for j := range c.Content.Parts {
			if err := a.part(&c.Content.Parts[j]); err != nil {
				return more, err
			}
		}
		if c.FinishReason != "" && c.FinishReason != "FINISH_REASON_UNSPECIFIED" {
			a.finish = c.FinishReason
			if f := geminiFailure(c.FinishReason, c.FinishMessage); f != nil {
				return more, f
			}
		}
	}
	if a.finish != "" || a.blocked != "" {
		return finished, nil
	}
	// Only a chunk with one part of text and nothing else is learned: in chunks like it everything but the text is skipped.
	if len(ch.Candidates) == 1 && ch.Candidates[0].Index == 0 && len(ch.Candidates[0].Content.Parts) == 1 {
		if p := &ch.Candidates[0].Content.Parts[0]; p.Signature == "" && p.FunctionCall == nil {
			kind := p.kind()
			a.like.learn(data, p.Text, func(t string) error { return a.out.send(Event{Type: kind, Text: t}) })
		}
	}
	return more, nil
}

// kind is the type of event that the part's text becomes.
func (p *geminiPart) kind() EventType {
	if p.Thought {
		return EventThinking
	}
	return EventText
}

// geminiFailure is an error for the finish reasons which mean that the model made a malformed answer; nil for all others. The kind
// server_error makes it retriable, like a failure of the server.
func geminiFailure(reason, message string) error {
	switch reason {
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "OTHER", "MISSING_THOUGHT_SIGNATURE", "MALFORMED_RESPONSE":
		return &apiFailure{message: fmt.Sprintf("the model stopped with %s %s", reason, message), kind: "server_error"}
	}
	return nil
}

// part emits one part. A thought signature that came with text or alone becomes an event of its own, because it must be sent back in the
// same place.
func (a *geminiAnswer) part(p *geminiPart) error {
	if f := p.FunctionCall; f != nil {
		at, id := a.calls, a.ids.unique(f.ID)
		a.calls++
		args := wrapArguments(string(f.Args))
		// A call without arguments has no args, or null.
		if args == "null" {
			args = "{}"
		}
		// A call arrives whole and is still emitted in three events: consumers see the same order from every provider.
		for _, ev := range []Event{
			{Type: EventToolStart, Index: at, CallID: id, Name: f.Name},
			{Type: EventToolDelta, Index: at, Text: args},
			{Type: EventToolEnd, Index: at, CallID: id, Name: f.Name, Text: args, Signature: p.Signature},
		} {
			if err := a.out.send(ev); err != nil {
				return err
			}
		}
		return nil
	}
	if text := jsonText(p.Text); text != "" {
		if err := a.out.send(Event{Type: p.kind(), Text: text}); err != nil {
			return err
		}
	}
	// Signatures of thoughts are not wanted back; those of text and calls are.
	if p.Signature != "" && !p.Thought {
		return a.out.send(Event{Type: EventThinking, Signature: textSignature + p.Signature})
	}
	return nil
}

// end emits usage and stop. A blocked prompt has no finish reason, and its answer is complete all the same.
func (a *geminiAnswer) end() error {
	if a.finish == "" && a.blocked == "" {
		return errCut
	}
	if u := a.usage; u != nil {
		// max: some servers count cached tokens beside the prompt.
		usage := Usage{Input: max(0, u.Prompt+u.Tools-u.Cached), Output: u.Answer, Reasoning: u.Thoughts, CacheRead: u.Cached}
		if err := a.out.send(Event{Type: EventUsage, Usage: usage}); err != nil {
			return err
		}
	}
	return a.out.send(Event{Type: EventStop, Stop: a.stopReason()})
}

// stopReason translates finishReason. The API says STOP for answers with calls too, so calls decide.
func (a *geminiAnswer) stopReason() StopReason {
	if a.blocked != "" {
		return StopRefusal
	}
	switch a.finish {
	case "MAX_TOKENS":
		return StopMaxTokens
	case "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY":
		return StopRefusal
	}
	if a.calls > 0 {
		return StopTools
	}
	return StopEnd
}
