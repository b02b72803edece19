package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/agent/provider"
)

// DiffStat is what was done to files, as a diff counts.
type DiffStat struct {
	Files     int `json:"files"`
	Additions int `json:"additions"`
	Deletions int `json:"deletions"`
}

// String is the line a person reads.
func (d DiffStat) String() string {
	return fmt.Sprintf("%s changed, +%d −%d lines", plural(d.Files, "file"), d.Additions, d.Deletions)
}

// counted is a change set that can be counted; agent knows no more of it.
type counted interface {
	Lines() (id string, files map[string][2]int)
}

// diffStats are the sets applied in a turn, its sub-agents' among them. A set is told of more than once: the last
// word counts.
type diffStats struct {
	mu  sync.Mutex
	set map[string]map[string][2]int // guarded by mu; by set
}

func (s *diffStats) see(state ChangeState, set any) {
	c, ok := set.(counted)
	if !ok || state != ChangeApplied {
		return
	}
	id, files := c.Lines()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.set == nil {
		s.set = map[string]map[string][2]int{}
	}
	s.set[id] = files
}

// take sums up and starts anew; nil when nothing was changed.
func (s *diffStats) take() *DiffStat {
	s.mu.Lock()
	defer s.mu.Unlock()
	var d DiffStat
	seen := map[string]bool{}
	for _, files := range s.set {
		for path, n := range files {
			if !seen[path] {
				seen[path] = true
				d.Files++
			}
			d.Additions += n[0]
			d.Deletions += n[1]
		}
	}
	s.set = nil
	if d.Files == 0 {
		return nil
	}
	return &d
}

// Summary describes what was done in the session, by the hidden agent where there is a model for it, else by its facts.
func (s *Session) Summary(ctx context.Context) (text string, err error) {
	run := func(ctx context.Context) {
		var total DiffStat
		_ = s.Events(ctx, 0, func(e Event) error {
			if e.Type == EventTurn {
				if d := decode[TurnData](e).Diff; d != nil {
					total.Files, total.Additions, total.Deletions = max(total.Files, d.Files), total.Additions+d.Additions, total.Deletions+d.Deletions
				}
			}
			return nil
		})
		if len(s.hist.messages) == 0 {
			err = errors.New("nothing was said yet")
			return
		}
		text, _, err = s.errand(ctx, errand{agent: summaryAgent, model: s.Info().Model, text: transcriptFor(s.hist.messages, "", 60_000)})
		var perr *provider.Error
		if errors.Is(err, errNoModelForJob) || errors.As(err, &perr) && perr.Kind == provider.ErrContextLength {
			text, err = digest(s.hist.messages), nil
		}
		if err == nil && total.Files > 0 {
			text = strings.TrimSpace(text) + fmt.Sprintf("\n\n+%d −%d lines in this session.", total.Additions, total.Deletions)
		}
	}
	if e := s.do(ctx, run, func(e error) { err = e }); e != nil {
		return "", e
	}
	return text, err
}
