package agent

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/pillion-dev/pillion/agent/provider"
)

// spansOf runs a turn with a failed first request, two calls and a sub-agent, and gives its spans as "parent > name".
func spansOf(t *testing.T, content bool) (tree []string, all string) {
	t.Helper()
	h := delegates(t, map[string][]answerFunc{
		"go with " + HiddenKey: {fails(provider.ErrRateLimit, "slow down, SECRET-9x"), calls(`read {"text":"PLAIN-words"}`, `task {"agent":"general","prompt":"sub"}`), says("ANSWER-words")},
		"sub":                  {says("done")},
	})
	out := tracetest.NewInMemoryExporter()
	h.rt.o.Tracing = &Tracing{Tracer: sdktrace.NewTracerProvider(sdktrace.WithSyncer(out)).Tracer("t"), Content: content}
	h.with.hide = func(_, text string) string { return strings.ReplaceAll(text, "SECRET-9x", HiddenKey) }
	if end := h.prompt(h.session(), "go with SECRET-9x"); end.Stop != TurnEnd {
		t.Fatal(end)
	}
	spans := out.GetSpans()
	names := map[string]string{}
	for _, s := range spans {
		names[s.SpanContext.SpanID().String()] = s.Name
	}
	for _, s := range spans {
		line := s.Name
		if p := names[s.Parent.SpanID().String()]; p != "" {
			line = p + " > " + line
		}
		for _, a := range s.Attributes {
			switch a.Key {
			case "error.type", "pillion.stop_reason":
				line += " " + a.Value.AsString()
			case "gen_ai.usage.input_tokens":
				line += fmt.Sprint(" in=", a.Value.AsInt64())
			}
			all += fmt.Sprintln(s.Name, a.Key, a.Value.Emit())
		}
		all += fmt.Sprintln(s.Name, s.Status.Description)
		tree = append(tree, line)
	}
	slices.Sort(tree)
	return tree, all
}

func TestATurnIsATree(t *testing.T) {
	tree, all := spansOf(t, false)
	want := []string{
		"execute_tool task > invoke_agent general end_turn in=10",
		"invoke_agent build > step",
		"invoke_agent build > step",
		"invoke_agent build end_turn in=110",
		"invoke_agent general > step",
		"step > chat m in=10",
		"step > chat m in=10",
		"step > chat m in=100",
		"step > chat m rate_limit",
		"step > execute_tool read",
		"step > execute_tool task",
	}
	if !slices.Equal(tree, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(tree, "\n"), strings.Join(want, "\n"))
	}
	for _, words := range []string{"SECRET", "PLAIN", "ANSWER", "go with"} {
		if strings.Contains(all, words) {
			t.Errorf("%s in\n%s", words, all)
		}
	}
}

func TestSpansCarryTextsOnlyWhenAskedFor(t *testing.T) {
	_, all := spansOf(t, true)
	for _, words := range []string{"PLAIN-words", "ANSWER-words", "go with " + HiddenKey} {
		if !strings.Contains(all, words) {
			t.Errorf("no %s in\n%s", words, all)
		}
	}
	if strings.Contains(all, "SECRET") {
		t.Errorf("a key in\n%s", all)
	}
}
