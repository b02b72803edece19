package agent

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/tools"
)

func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

// BenchmarkSubAgents is the memory that 20 sub-agents take while all of them work, each with 20 results of 10 KB.
func BenchmarkSubAgents(b *testing.B) {
	const kids, steps = 20, 20
	output := strings.Repeat("a line of output\n", 600)
	for b.Loop() {
		h := newHarness(b)
		h.with.tools = func(ctx context.Context, s SessionInfo) ([]tools.Tool, error) {
			return []tools.Tool{taskTool(), tools.New("read", "Reads.", func(context.Context, textParams, *tools.Call) (tools.Result, error) {
				return tools.Result{Output: output + fmt.Sprint(runtime.NumGoroutine())}, nil
			}, tools.WithReadOnly())}, nil
		}
		before := heap()
		var mu sync.Mutex
		at := map[string]int{}
		arrived, most := 0, 0.0
		all := make(chan struct{})
		h.model.def = func(ctx context.Context, req *provider.Request, emit func(provider.Event) error) error {
			h.model.mu.Lock()
			h.model.requests = nil
			h.model.mu.Unlock()
			if strings.Contains(req.System[0], promptText("general")) {
				mu.Lock()
				n := at[req.SessionID]
				at[req.SessionID]++
				if n == steps {
					if arrived++; arrived == kids {
						most = heap() - before
						close(all)
					}
				}
				mu.Unlock()
				if n < steps {
					return calls(fmt.Sprintf(`read {"text":"%d"}`, n))(ctx, req, emit)
				}
				<-all
				return says("done")(ctx, req, emit)
			}
			if len(req.Messages) > 1 {
				return says("done")(ctx, req, emit)
			}
			var list []string
			for i := range kids {
				list = append(list, fmt.Sprintf(`task {"agent":"general","prompt":"job %d"}`, i))
			}
			return calls(list...)(ctx, req, emit)
		}
		h.model.info = provider.Model{Provider: "fake", ID: "m", Context: 1_000_000}
		h.prompt(h.session(), "go")
		b.ReportMetric(most, "MB")
	}
}

// BenchmarkManySteps is the memory of a session after 2,000 steps of one turn, with results of 2 KB.
func BenchmarkManySteps(b *testing.B) {
	const steps = 2000
	output := strings.Repeat("a line of output\n", 120)
	for b.Loop() {
		h := newHarness(b)
		h.with.tools = func(ctx context.Context, s SessionInfo) ([]tools.Tool, error) {
			return []tools.Tool{tools.New("read", "Reads.", func(context.Context, textParams, *tools.Call) (tools.Result, error) {
				return tools.Result{Output: output}, nil
			}, tools.WithReadOnly())}, nil
		}
		before := heap()
		n, most := 0, 0.0
		h.with.agents = func(string) []Agent { return []Agent{{Name: "build", Steps: 2 * steps}} }
		h.model.info = provider.Model{Provider: "fake", ID: "m", Context: 200_000}
		h.model.def = func(ctx context.Context, req *provider.Request, emit func(provider.Event) error) error {
			h.model.mu.Lock()
			h.model.requests = nil
			h.model.mu.Unlock()
			if forSummary(req) {
				return says("a summary")(ctx, req, emit)
			}
			if n++; n > steps {
				most = heap() - before
				return says("done")(ctx, req, emit)
			}
			return withUsage(calls(fmt.Sprintf(`read {"text":"%d"}`, n)), estimateAll(req.Messages))(ctx, req, emit)
		}
		s := h.session()
		h.prompt(s, "go")
		b.ReportMetric(most, "MB")
		b.ReportMetric(float64(len(compactions(h, s))), "compactions")
	}
}
