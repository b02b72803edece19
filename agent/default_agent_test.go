package agent

import "testing"

// A session begins with an agent that there is, whatever a configuration removes.
func TestTheAgentOfANewSession(t *testing.T) {
	gone := []Agent{{Name: "build", Disabled: true}, {Name: "plan", Disabled: true}}
	for _, c := range []struct {
		name   string
		agents []Agent
		want   string
	}{
		{"nothing configured", nil, "build"},
		{"build disabled", gone[:1], "plan"},
		{"both disabled", append(gone[:2:2], Agent{Name: "helper", Mode: ModeSubagent}, Agent{Name: "secret", Mode: ModePrimary, Hidden: true}, Agent{Name: "architect", Mode: ModePrimary}), "architect"},
		{"an agent of any mode", append(gone[:2:2], Agent{Name: "mine"}), "mine"},
	} {
		h := newHarness(t, says("hello"))
		h.with.agents = func(string) []Agent { return c.agents }
		s := h.session()
		if got := s.Info().Agent; got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if end := h.prompt(s, "go"); end.Stop != TurnEnd {
			t.Errorf("%s: %+v", c.name, end)
		}
	}
}

func TestTheConfiguredAgentOfANewSession(t *testing.T) {
	for name, want := range map[string]string{"plan": "plan", "build": "build", "": "build", "gone": "build", "general": "build"} { // general is a sub-agent
		r := &directories{o: Options{Configuration: preferring{absent{}, Preferences{DefaultAgent: name}}, Plugins: absent{}}}
		if got := r.DefaultAgentOf(""); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
}
