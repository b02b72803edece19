package agent_test

import (
	"context"
	"fmt"
	"os"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/agent/provider/wiretest"
	"github.com/pillion-dev/pillion/agent/store"
)

// oneModel is a Models that knows a single model.
type oneModel struct{ p provider.Provider }

func (m oneModel) Resolve(context.Context, string, string) (provider.Provider, provider.Model, error) {
	return m.p, provider.Model{Provider: "test", ID: "scripted", Context: 100_000}, nil
}

// A session answers one prompt. Whoever shows it subscribes to its events; the sidecar does the same for an editor.
func Example() {
	model, err := wiretest.Start(wiretest.Step{Text: "Nothing to fix."})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer model.Close()
	p, err := provider.New(provider.Config{Kind: provider.KindOpenAI, BaseURL: model.OpenAIURL(), Key: "test"})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	st := store.New("") // in memory
	defer st.Close()
	rt := agent.New(agent.Options{Store: st, Models: oneModel{p}})
	defer rt.Close(ctx)
	s, err := rt.NewSession(ctx, agent.SessionOptions{Cwd: os.TempDir(), Title: "Example"})
	if err != nil {
		fmt.Println(err)
		return
	}
	stop := s.Subscribe(0, func(e agent.Event) {
		if e.Type == agent.EventText {
			text, _ := agent.Value[agent.TextData](e)
			fmt.Print(text.Text)
		}
	})
	defer stop()
	end, err := s.Prompt(ctx, agent.Prompt{Parts: []provider.Part{{Type: provider.PartText, Text: "fix all errors"}}})
	fmt.Println()
	fmt.Println(end.Stop, err)
	// Output:
	// Nothing to fix.
	// end_turn <nil>
}
