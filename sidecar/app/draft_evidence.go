package app

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/evidence"
	"github.com/pillion-dev/pillion/tools/textutil"
	"github.com/pillion-dev/pillion/tools/whole"
)

// ledger is what a draft remembers of its checks: it lies beside the draft, so that landing it later shows the same evidence.
type ledger struct {
	Runs   []evidence.Ran `json:"runs,omitempty"`   // commands of the agent that check something, oldest first
	Checks []change.Check `json:"checks,omitempty"` // as of the last proposal
	Words  string         `json:"words,omitempty"`  // what the agent said last
	// Insists is the agent's reason to propose what it was told to be wrong.
	Insists string `json:"insists,omitempty"`
	Back    string `json:"back,omitempty"` // version that went back to the agent last
}

// maxRuns is how many commands a ledger keeps; the last one about a subject counts.
const maxRuns = 50

func (o *openDraft) ledgerPath() string { return filepath.Join(o.Dir, "evidence.json") }

// ledger reads what is kept. What cannot be read is no evidence.
func (o *openDraft) ledger() (l ledger) {
	if b, err := os.ReadFile(o.ledgerPath()); err == nil && json.Unmarshal(b, &l) != nil {
		return ledger{}
	}
	return l
}

// version names the draft's texts; "" where they cannot be read.
func (o *openDraft) version() string {
	p, err := o.proposal()
	if err != nil {
		return ""
	}
	return change.Version(p.Files)
}

func (o *openDraft) setLedger(l ledger) error {
	b, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return whole.Write(o.ledgerPath(), b, 0o600)
}

// noteRun keeps a command of the agent that checks something, with the version of the texts that it ran on. A command may
// change them: those that it leaves behind are what counts.
func (o *openDraft) noteRun(input json.RawMessage, r tools.Result) {
	var p struct {
		Command string `json:"command"`
	}
	exit, ok := r.Metadata["exit"].(float64)
	if n, whole := r.Metadata["exit"].(int); whole {
		exit, ok = float64(n), true
	}
	if json.Unmarshal(input, &p) != nil || !ok {
		return
	}
	about, loose := evidence.About(p.Command)
	if about == "" {
		return
	}
	proposal, err := o.proposal()
	if err != nil {
		return
	}
	o.noting.Lock() // calls run beside each other
	defer o.noting.Unlock()
	l := o.ledger()
	l.Runs = append(l.Runs, evidence.Ran{Command: textutil.Shorten(strings.TrimSpace(p.Command), 200), About: about, Exit: int(exit), Version: change.Version(proposal.Files), Loose: loose})
	l.Runs = l.Runs[max(0, len(l.Runs)-maxRuns):]
	if err := o.setLedger(l); err != nil {
		o.app.O.Log.Warn("keeping a draft's evidence", "draft", o.Dir, "err", err)
	}
}

// evidenceBudget is how long language servers are asked about uses and mechanical hunks: somebody waits for the proposal.
const evidenceBudget = 20 * time.Second

// evidenceOf is what is known of a draft's proposal when it is landed. tested is the version of the texts in the draft: where
// the project has changed meanwhile, what is proposed differs from what was tested. made are the paths of generated files that came
// out as proposed, with the command.
func (d *Drafts) evidenceOf(s *agent.Session, o *openDraft, l ledger, tested string, made map[string]string) func(context.Context, *change.Set) *change.Evidence {
	return func(ctx context.Context, set *change.Set) *change.Evidence {
		ctx, cancel := context.WithTimeout(ctx, evidenceBudget)
		defer cancel()
		e := &change.Evidence{Version: change.Version(set.Files), Attempts: o.Head().Attempt, Insists: l.Insists, Checks: slices.Clone(l.Checks)}
		runs := slices.Clone(l.Runs)
		for i := range e.Checks {
			c := &e.Checks[i]
			c.Stale = c.Ran() && (c.Version != tested || tested != e.Version)
			// Pillion's own checks support a claim like the agent's.
			if about := evidence.AboutTests; c.Ran() {
				if x, _ := evidence.About(c.Line); x != "" {
					about = x
				}
				runs = append(runs, evidence.Ran{Command: c.Command, About: about, Exit: c.ExitCode, Version: c.Version})
			}
		}
		if tested != e.Version {
			for i := range runs {
				runs[i].Version = ""
			}
		}
		e.Claims = evidence.Claims(l.Words, runs, e.Version)
		env := d.app.Sessions.Env(s.Info())
		var servers evidence.Servers
		if q, ok := env.Bridge.(evidence.Servers); ok {
			servers = q
		}
		e.Uses, e.Groups = evidence.Find(ctx, servers, set, o.Head().Project, generatedGroups(set, made))
		return e
	}
}
