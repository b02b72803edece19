package slash

import (
	"fmt"
	"strings"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/tools/change"
)

// Markdown returns a function that adds events to b in the order of the log, as a conversation that a person reads:
// prompts, answers, one line for each tool call, and applied changes as diffs.
func Markdown(b *strings.Builder) func(agent.Event) error {
	return func(e agent.Event) error {
		switch e.Type {
		case agent.EventPrompt, agent.EventSteer:
			d, _ := agent.Value[agent.PromptData](e)
			b.WriteString("\n## You\n\n")
			for _, p := range d.Parts {
				// Synthetic parts are file contents and notes for the model; the person did not write them.
				if p.Type == provider.PartText && !p.Synthetic {
					b.WriteString(p.Text + "\n")
				}
			}
		case agent.EventMessage:
			d, _ := agent.Value[agent.MessageData](e)
			// A turn has a message for each step; one heading is for all of them.
			if d.Step == 1 {
				b.WriteString("\n## Pillion (" + d.Model + ")\n\n")
			}
		case agent.EventText:
			d, _ := agent.Value[agent.TextData](e)
			b.WriteString(d.Text)
		case agent.EventTool:
			d, _ := agent.Value[agent.ToolData](e)
			// A call is listed once, when it has ended.
			switch d.Status {
			case agent.ToolCompleted:
				fmt.Fprintf(b, "\n\n- %s: %s\n\n", d.Tool, d.Title)
			case agent.ToolError:
				fmt.Fprintf(b, "\n\n- %s failed: %s\n\n", d.Tool, d.Error)
			}
		case agent.EventChange:
			d, _ := agent.Value[agent.ChangeData](e)
			// Proposals that were rejected are left out.
			if d.State == change.Applied && d.Set != nil {
				text := d.Set.Unified(func(p string) string { return p })
				b.WriteString("\n```diff\n" + strings.TrimSuffix(text, "\n") + "\n```\n")
			}
		case agent.EventTurn:
			d, _ := agent.Value[agent.TurnData](e)
			if d.Error != "" {
				b.WriteString("\n\n(" + d.Error + ")\n")
			}
			b.WriteString("\n")
		}
		return nil
	}
}
