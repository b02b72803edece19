package builtin

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/permission"
)

//go:embed batch.txt
var batchText string

// batchParams has the names of OpenCode's tool. The number of calls is checked in Batch and not by the schema, which would refuse the
// whole batch: the first maxBatch calls run, and each further one gets an error of its own.
type batchParams struct {
	ToolCalls []batchCall `json:"tool_calls" minItems:"1" jsonschema:"the calls, at most 25"`
}

// batchCall is one call as the model would make it alone.
type batchCall struct {
	Tool       string         `json:"tool" minLength:"1" jsonschema:"the tool's name"`
	Parameters map[string]any `json:"parameters,omitempty" jsonschema:"its parameters"`
}

// maxBatch is OpenCode's limit of calls in one batch.
const maxBatch = 25

// Batch makes several calls at once. Each goes through the host like a call of its own, with gate, hooks and card, so a batch is no
// way around a permission. It is offered on request only, since most models call tools in parallel by themselves.
func Batch(Env) tools.Tool {
	return tools.New("batch", batchText, func(ctx context.Context, p batchParams, call *tools.Call) (tools.Result, error) {
		if call.Host.Calls == nil {
			return tools.Result{}, &tools.Error{Kind: "unavailable", Message: "This host cannot run calls in a batch; make them one by one."}
		}
		results, errs := make([]tools.Result, len(p.ToolCalls)), make([]error, len(p.ToolCalls))
		var wg sync.WaitGroup
		for i, c := range p.ToolCalls {
			if i >= maxBatch {
				errs[i] = &tools.Error{Kind: "too_many", Message: fmt.Sprintf("Maximum of %d tools allowed in batch", maxBatch)}
				continue
			}
			input, err := json.Marshal(c.Parameters)
			if c.Parameters == nil {
				input = []byte("{}")
			}
			if err != nil {
				errs[i] = err
				continue
			}
			wg.Go(func() { results[i], errs[i] = call.Host.Calls.CallTool(ctx, c.Tool, input) })
		}
		wg.Wait()
		// Checked after the wait, so that no call outlives the batch.
		if ctx.Err() != nil {
			return tools.Result{}, ctx.Err()
		}
		out := batchResult(p.ToolCalls, results, errs)
		for _, err := range errs {
			var no *permission.RejectedError
			if errors.As(err, &no) && no.Message == "" {
				return out, err // a rejection without a message ends the turn, as it does outside a batch
			}
		}
		return out, nil
	}, tools.WithOptIn())
}

// batchResult has the form of OpenCode's result: a count, then one tag for each call in the order in which they were given, whatever
// the order in which they ended. results and errs have an entry for every call.
func batchResult(calls []batchCall, results []tools.Result, errs []error) tools.Result {
	var b strings.Builder
	var out tools.Result
	details, names, good := []map[string]any{}, []string{}, 0
	for i, c := range calls {
		state, text := "completed", results[i].Output
		if errs[i] != nil {
			state, text = "error", errs[i].Error()
		} else {
			good++
			out.Attachments = append(out.Attachments, results[i].Attachments...)
		}
		fmt.Fprintf(&b, "\n\n<result tool=%q call=\"%d\" state=%q>\n%s\n</result>", c.Tool, i+1, state, strings.TrimSpace(text))
		details = append(details, map[string]any{"tool": c.Tool, "success": errs[i] == nil})
		names = append(names, c.Tool)
	}
	head := fmt.Sprintf("All %d tools executed successfully.", good)
	if good < len(calls) {
		head = fmt.Sprintf("Executed %d/%d tools successfully. %d failed.", good, len(calls), len(calls)-good)
	}
	out.Title = fmt.Sprintf("Batch execution (%d/%d successful)", good, len(calls))
	out.Output = head + b.String()
	out.Metadata = map[string]any{"totalCalls": len(calls), "successful": good, "failed": len(calls) - good, "tools": names, "details": details}
	return out
}
