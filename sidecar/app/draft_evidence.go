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
	"github.com/pillion-dev/pillion/tools/draft"
	"github.com/pillion-dev/pillion/tools/evidence"
	"github.com/pillion-dev/pillion/tools/textutil"
	"github.com/pillion-dev/pillion/tools/whole"
)

// ledger is what a draft stores about its checks. It is the file evidence.json beside the draft, so that landing the draft later,
// in another process, shows the same evidence. Its versions are change.Version of the draft's texts.
type ledger struct {
	Runs   []evidence.Ran `json:"runs,omitempty"`   // commands of the agent that check something, oldest first
	Checks []change.Check `json:"checks,omitempty"` // as of the last proposal
	Words  string         `json:"words,omitempty"`  // the agent's last text, in which claims are searched
	// Earlier are its texts before the draft was returned to it, the newest first. Often the last one says only "Done.".
	Earlier string `json:"earlier,omitempty"`
	// Insists is the agent's reason to propose a change although it was told of errors; empty if there were none.
	Insists string `json:"insists,omitempty"`
	// Back is the version that was last returned to the agent. If the agent proposes the same version again, it is not returned:
	// the agent has read the errors and changed nothing.
	Back string `json:"back,omitempty"`
}

// maxRuns limits how many commands a ledger keeps; otherwise the file would grow with every command of a long session. Of several
// commands about the same subject only the last is used, so older ones are rarely needed.
const maxRuns = 50

// settled reports whether the checks need not run again: all of them have run on this version. One that did not run may be allowed now;
// a turn in the background could ask nobody.
func (l ledger) settled(version string) bool {
	return len(l.Checks) > 0 && !slices.ContainsFunc(l.Checks, func(c change.Check) bool { return !c.Ran() || c.Version != version })
}

func (o *openDraft) ledgerPath() string { return filepath.Join(o.Dir, "evidence.json") }

// ledger reads the stored ledger. If it cannot be read, there is no evidence, but the draft can still be landed.
func (o *openDraft) ledger() (l ledger) {
	if b, err := os.ReadFile(o.ledgerPath()); err == nil && json.Unmarshal(b, &l) != nil {
		return ledger{}
	}
	return l
}

// version is the hash of the draft's texts; "" if they cannot be read. Callers compare two versions, and two "" must not count as
// equal.
func (o *openDraft) version() string {
	p, err := o.proposal()
	if err != nil {
		return ""
	}
	return change.Version(p.Files)
}

// setLedger writes the ledger as a whole, so that after a crash there is the old one or the new one. Only the person may read it,
// because it contains command lines. A caller that changes a stored ledger must hold noting.
func (o *openDraft) setLedger(l ledger) error {
	b, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return whole.Write(o.ledgerPath(), b, 0o600)
}

// noteRun stores a command of the agent that checks something, with the version of the texts after the command: "gofmt -w . && go
// test" says nothing about the texts before it. input are the arguments of bash, r is its result. A command that did not end by
// itself has no exit code and is not stored.
func (o *openDraft) noteRun(input json.RawMessage, r tools.Result) {
	var p struct {
		Command string `json:"command"`
	}
	// Metadata from the worker was JSON, so its numbers are float64; bash in this process gives an int.
	exit, ok := r.Metadata["exit"].(float64)
	if n, whole := r.Metadata["exit"].(int); whole {
		exit, ok = float64(n), true
	}
	if json.Unmarshal(input, &p) != nil || !ok {
		return
	}
	checks := evidence.ChecksIn(p.Command)
	if len(checks) == 0 {
		return
	}
	proposal, err := o.proposal()
	if err != nil {
		return
	}
	o.noting.Lock() // calls run concurrently
	defer o.noting.Unlock()
	l := o.ledger()
	l.Runs = append(l.Runs, evidence.Ran{Command: textutil.Shorten(strings.TrimSpace(p.Command), 200), Checks: checks, Exit: int(exit), Version: change.Version(proposal.Files)})
	l.Runs = l.Runs[max(0, len(l.Runs)-maxRuns):]
	if err := o.setLedger(l); err != nil {
		o.app.O.Log.Warn("keeping a draft's evidence", "draft", o.Dir, "err", err)
	}
}

// evidence computes the evidence for a proposal. tested is the version of the texts in the draft, proposed that of the texts that a person
// decides on. They differ if the project has changed since the draft began: landing then merges, and the merged text was not tested.
func (l ledger) evidence(tested, proposed string, attempts int) *change.Evidence {
	e := &change.Evidence{Version: proposed, Attempts: attempts, Insists: l.Insists, Checks: slices.Clone(l.Checks)}
	runs := slices.Clone(l.Runs)
	for i := range e.Checks {
		c := &e.Checks[i]
		// A check is stale if it ran on other texts than the proposed ones.
		c.Stale = c.Ran() && (c.Version != tested || tested != e.Version)
		// Pillion's own checks support a claim like the agent's.
		if c.Ran() {
			checks := evidence.ChecksIn(c.Line)
			if len(checks) == 0 { // a command of the person's setting that is not known by name
				checks = []evidence.Check{{About: []string{evidence.AboutTests}}}
			}
			runs = append(runs, evidence.Ran{Command: c.Command, Checks: checks, Exit: c.ExitCode, Version: c.Version})
		}
	}
	if tested != e.Version {
		// No run was on the merged text. A run without a version is shown as a run on other texts.
		for i := range runs {
			runs[i].Version = ""
		}
	}
	e.Claims = evidence.Claims(l.Words, runs, e.Version)
	for _, c := range evidence.Claims(l.Earlier, runs, e.Version) {
		// What turned out to be false has been returned to the agent since, and the failed check itself is listed.
		if c.Support != change.ClaimFailed && !slices.ContainsFunc(e.Claims, func(x change.Claim) bool { return x.Subject == c.Subject }) {
			e.Claims = append(e.Claims, c)
		}
	}
	return e
}

// DraftEvidence describes a stored draft in lines of text: its checks, the agent's claims, earlier attempts. It asks no language server, so
// uses and mechanical hunks are missing; landing finds those. p is the draft's proposal, see ReadDraft.
func DraftEvidence(d *draft.Draft, p *draft.Proposal) string {
	o := &openDraft{Draft: d, root: d.Head().Project}
	version := change.Version(p.Files)
	set := &change.Set{Evidence: o.ledger().evidence(version, version, d.Head().Attempt)}
	text := set.EvidenceText()
	if h := d.Head(); h.View != draft.Overlay {
		text = strings.TrimSuffix(text, "\n") + "\nThe draft is " + draft.Support{View: h.View, Why: h.Why}.String() + "\n"
	}
	return strings.TrimPrefix(text, "\n")
}

// evidenceBudget limits the time for uses and mechanical hunks from language servers, because the person waits for the proposal. What the
// servers have not answered by then is missing from the evidence.
const evidenceBudget = 20 * time.Second

// evidenceOf returns the evidence for a draft's proposal, for builtin.Landing. Its argument is the merged change set: if the
// project has changed since the draft began, the proposal differs from what was tested. tested is the version of the texts in the
// draft. made maps the paths of generated files that were reproduced to the command; see regenerated.
func (d *Drafts) evidenceOf(s *agent.Session, o *openDraft, l ledger, tested string, made map[string]string) func(context.Context, *change.Set) *change.Evidence {
	return func(ctx context.Context, set *change.Set) *change.Evidence {
		ctx, cancel := context.WithTimeout(ctx, evidenceBudget)
		defer cancel()
		e := l.evidence(tested, change.Version(set.Files), o.Head().Attempt)
		env := d.app.Sessions.Env(s.Info())
		var servers evidence.Servers
		if q, ok := env.Bridge.(evidence.Servers); ok {
			servers = q
		}
		e.Uses, e.Groups = evidence.Find(ctx, servers, set, o.Head().Project, generatedGroups(set, made))
		return e
	}
}
