package agent

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/agent/provider/wiretest"
	"github.com/pillion-dev/pillion/tools/permission"
)

var update = flag.Bool("update", false, "rewrite the want parts of testdata")

// wire resolves every model to one provider over HTTP.
type wire struct {
	via   provider.Provider
	model provider.Model
}

func (w wire) Resolve(context.Context, string, string) (provider.Provider, provider.Model, error) {
	return w.via, w.model, nil
}

// TestScenarios runs each script of testdata over real HTTP in the four wire formats; the transcript is the same in
// all of them. A file has the script (see wiretest.ParseScript), the prompts, one a line, the person's answers, one
// a line, and the transcript that is wanted.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no scenarios in testdata", err)
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			parts := map[string]string{}
			for _, f := range archive.Files {
				parts[f.Name] = string(f.Data)
			}
			for _, kind := range []provider.Kind{provider.KindAnthropic, provider.KindOpenAI, provider.KindResponses, provider.KindGemini} {
				t.Run(string(kind), func(t *testing.T) {
					got := runScenario(t, kind, parts)
					if *update {
						parts["want/transcript"] = got
						for i := range archive.Files {
							if archive.Files[i].Name == "want/transcript" {
								archive.Files[i].Data = []byte(got)
							}
						}
						if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
							t.Fatal(err)
						}
						return
					}
					if want := parts["want/transcript"]; got != want {
						t.Errorf("got\n%s\nwant\n%s", got, want)
					}
				})
			}
		})
	}
}

func runScenario(t *testing.T, kind provider.Kind, parts map[string]string) string {
	steps, err := wiretest.ParseScript([]byte(parts["script"]))
	if err != nil {
		t.Fatal(err)
	}
	srv := wiretest.New(t, steps...)
	url := map[provider.Kind]string{provider.KindAnthropic: srv.AnthropicURL(), provider.KindGemini: srv.GeminiURL()}[kind]
	if url == "" {
		url = srv.OpenAIURL()
	}
	via, err := provider.New(provider.Config{Kind: kind, BaseURL: url, Key: "test"})
	if err != nil {
		t.Fatal(err)
	}
	h := newHarness(t)
	h.rt.o.Models = wire{via, provider.Model{Provider: string(kind), ID: "scripted", Context: 100_000, Output: 4096}}
	answers := strings.Split(strings.TrimSpace(parts["answers"]), "\n")
	h.person.answer = func(context.Context, permission.Request) (permission.Reply, error) {
		if len(answers) == 0 {
			return permission.Reply{}, fmt.Errorf("asked more often than the scenario answers")
		}
		kind, message, _ := strings.Cut(answers[0], " ")
		answers = answers[1:]
		return permission.Reply{Kind: permission.ReplyKind(kind), Message: message}, nil
	}
	s := h.session()
	for line := range strings.Lines(parts["prompt"]) {
		h.prompt(s, strings.TrimSpace(line))
	}
	h.consistent(s)
	return transcript(h.events(s)) + sent(srv.Requests())
}

// transcript is what a reader of the events sees, without ids and times.
func transcript(events []Event) string {
	var b, said strings.Builder
	var step []Event // the calls of the step: those that run together end in any order
	flush := func() {
		if said.Len() > 0 {
			fmt.Fprintf(&b, "  says %q\n", said.String())
			said.Reset()
		}
	}
	for _, e := range events {
		if e.Type != EventText {
			flush()
		}
		switch e.Type {
		case EventPrompt:
			fmt.Fprintf(&b, "prompt %q\n", decode[PromptData](e).Parts[0].Text)
		case EventMessage:
			fmt.Fprintf(&b, " step %d\n", decode[MessageData](e).Step)
		case EventText:
			said.WriteString(decode[TextData](e).Text)
		case EventTool:
			step = append(step, e)
		case EventAsk:
			if d := decode[AskData](e); d.Reply != "" {
				fmt.Fprintf(&b, "  ask %s %v: %s %s\n", d.Permission, d.Patterns, d.Reply, d.Message)
			}
		case EventNotice:
			d := decode[NoticeData](e)
			retry := ""
			if d.Attempt > 0 {
				retry = fmt.Sprintf(" before attempt %d", d.Attempt)
			}
			fmt.Fprintf(&b, "  %s%s\n", d.Level, retry)
		case EventStep:
			for _, d := range final(step) {
				if d.Status == ToolCompleted {
					fmt.Fprintf(&b, "  %s %s: %q\n", d.Tool, d.Input, d.Output)
				} else {
					fmt.Fprintf(&b, "  %s %s failed (%s): %q\n", d.Tool, d.Input, d.ErrorKind, d.Error)
				}
			}
			step = nil
			if d := decode[StepData](e); d.Dropped {
				b.WriteString("  dropped\n")
			}
		case EventTurn:
			d := decode[TurnData](e)
			fmt.Fprintf(&b, "turn %s after %d steps, failed: %v\n", d.Stop, d.Steps, d.Error != "")
		}
	}
	return b.String()
}

// sent is what the last request told the model, as it was on the wire.
func sent(requests []wiretest.Request) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d requests, the last\n", len(requests))
	for _, m := range requests[len(requests)-1].Messages() {
		if m.Role == "system" || m.Role == "developer" {
			continue
		}
		for _, r := range m.Results { // some formats put them into the user's message
			text := strings.TrimPrefix(r.Text, "Error: ") // formats without an error mark say it in words
			fmt.Fprintf(&b, " result %q\n", text)
		}
		if m.Text != "" {
			fmt.Fprintf(&b, " text %q\n", m.Text)
		}
		for _, c := range m.Calls {
			fmt.Fprintf(&b, " calls %s\n", c.Name)
		}
	}
	return b.String()
}
