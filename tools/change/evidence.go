package change

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/tools/textutil"
)

// Evidence is what is known of a proposal besides its verdict: what was run on it, what uses what it changes, what of it is
// mechanical. It never decides anything; a person reads it beside the diff. Its JSON is stored with the set and sent to
// editors, so names of fields stay.
type Evidence struct {
	// Version names the texts of the proposal, see Version. A check that ran on other texts proves less; it is Stale.
	Version string `json:"version,omitempty"`
	// Attempts counts how often the proposal went back to the agent before a person was asked.
	Attempts int `json:"attempts,omitempty"`
	// Insists is the agent's reason to propose the errors that it was told of; "" where it was told of none, or mended them.
	Insists string  `json:"insists,omitempty"`
	Checks  []Check `json:"checks,omitempty"`
	Uses    []Use   `json:"uses,omitempty"`
	Groups  []Group `json:"groups,omitempty"`
	Claims  []Claim `json:"claims,omitempty"`
}

// Check is a command that was run on the proposal, and how it ended. One that did not run is evidence too: a reader must not
// assume that it passed.
type Check struct {
	Command  string         `json:"command"`        // its name for people; the command line itself may be long
	Line     string         `json:"line,omitempty"` // what bash was given
	Status   EvidenceStatus `json:"status"`
	ExitCode int            `json:"exitCode,omitempty"`
	Seconds  float64        `json:"seconds,omitempty"`
	Reason   string         `json:"reason,omitempty"`  // why it did not run, or not to its end
	Version  string         `json:"version,omitempty"` // of the texts that it ran on
	Stale    bool           `json:"stale,omitempty"`   // it ran on other texts than those that are proposed
	Output   string         `json:"output,omitempty"`  // its end, where failures stand; of a check that failed
	// Tests are its results one by one, where the program reports them so. Those that pass have no output.
	Tests []TestResult `json:"tests,omitempty"`
}

// EvidenceStatus says how a command, or a test, ended.
type EvidenceStatus string

// A command passed, failed or did not run; a test passed, failed or was skipped. A test also failed when its package could not
// be built.
const (
	EvidencePassed  EvidenceStatus = "passed"
	EvidenceFailed  EvidenceStatus = "failed"
	EvidenceNotRun  EvidenceStatus = "notRun"
	EvidenceSkipped EvidenceStatus = "skipped"
	EvidenceMissing EvidenceStatus = "missing" // TestResult.Before only: there was no such test
)

// TestResult is one test of a command that ran.
type TestResult struct {
	Name    string         `json:"name"`
	Suite   string         `json:"suite,omitempty"` // package or file, as the runner names it
	Status  EvidenceStatus `json:"status"`
	Seconds float64        `json:"seconds,omitempty"`
	Output  string         `json:"output,omitempty"` // its end, of a test that failed
	Before  EvidenceStatus `json:"before,omitempty"` // how it ended without the change; empty: not known
}

// Use is the reach of one changed declaration, as its language server sees it. What uses it may be affected; whether it
// breaks is for the verdict and the tests to say.
type Use struct {
	Name   string `json:"name"`
	Kind   string `json:"kind"` // LSP's words: function, method, class …
	Path   string `json:"path"` // of the declaration; absolute
	Line   int    `json:"line"` // from 1, in the old text
	What   string `json:"what"` // "body", "signature" or "removed"
	Public bool   `json:"public,omitempty"`
	Uses   int    `json:"uses"`   // without the declaration itself
	Files  int    `json:"files"`  // that they are in
	Inside int    `json:"inside"` // uses on lines that the proposal changes
	// Unknown says why the uses were not counted; they are 0 then.
	Unknown string `json:"unknown,omitempty"`
	// Others are uses outside of the proposal, the first twenty.
	Others []Place `json:"others,omitempty"`
}

// What becomes of a declaration.
const (
	UseBody      = "body"      // only what is inside of it
	UseSignature = "signature" // how others name or call it
	UseRemoved   = "removed"   // or under another name now
)

// Place is a line of a file.
type Place struct {
	Path string `json:"path"` // absolute
	Line int    `json:"line"` // from 1
}

// Group is some hunks that are one decision. A verified group is what a program made of the old text when Pillion let it: its
// hunks are exactly that, so nobody needs to read them one by one.
type Group struct {
	Kind     string   `json:"kind"`
	Title    string   `json:"title"` // "verified rename Load → Fetch, 41 places"
	Hunks    []string `json:"hunks"` // ids, in the order of the set
	Verified bool     `json:"verified,omitempty"`
}

// Kinds of groups. All but the last are verified.
const (
	GroupRename    = "rename"
	GroupFormat    = "format"
	GroupImports   = "imports"
	GroupGenerated = "generated"
	GroupTogether  = "together" // hunks that make no sense without each other
)

// Claim is something that the agent says it has checked, beside what was run.
type Claim struct {
	Text    string `json:"text"`  // its words
	About   string `json:"about"` // "tests", "build", "types" or "lint"
	Support string `json:"support"`
	Command string `json:"command,omitempty"` // the last that could support it; "" for none
	Exit    int    `json:"exit,omitempty"`
	Version string `json:"version,omitempty"` // of the texts when the command had ended
}

// How a claim stands. Only a run that ended with 0 on the proposed texts supports one.
const (
	ClaimSupported = "run"
	ClaimStale     = "stale"  // it ran on other texts
	ClaimFailed    = "failed" // it ended with another code
	ClaimNoRun     = "none"
)

// Version names the texts of some files: what they are called and what is in them. Files in another order have the same.
func Version(files []File) string {
	lines := make([]string, len(files))
	for i, f := range files {
		text := sha256.Sum256([]byte(f.New))
		lines[i] = fmt.Sprintf("%s\x00%s\x00%s\x00%o\x00%s\x00%x", f.Kind, f.Path, f.NewPath, f.Mode, f.Encoding, text)
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:6]) // twelve digits: it tells two states of one turn apart, and a person can compare it
}

// WithEvidence is the set with evidence; the set itself may be shown already and is not written to.
func (s *Set) WithEvidence(e *Evidence) *Set {
	next := *s
	next.Evidence = e
	return &next
}

// Count is how many tests of a check ended so.
func (c *Check) Count(status EvidenceStatus) (n int) {
	for _, t := range c.Tests {
		if t.Status == status {
			n++
		}
	}
	return n
}

// Ran reports a check that says something. Anything unknown counts as not run: a status of a later version must not read as a
// success.
func (c *Check) Ran() bool { return c.Status == EvidencePassed || c.Status == EvidenceFailed }

// New are the failed tests that did not fail before the proposal, as far as that is known.
func (c *Check) New() (out []TestResult) {
	for _, t := range c.Tests {
		if t.Status == EvidenceFailed && t.Before != EvidenceFailed {
			out = append(out, t)
		}
	}
	return out
}

// String is a line of an approval request: "FAILED: go test ./... (exit 1, 2.3 s, 1 of 14 tests failed)".
func (c *Check) String() string {
	var in []string
	head := "Passed: "
	switch c.Status {
	case EvidencePassed:
	case EvidenceFailed:
		head = "FAILED: "
		if c.ExitCode > 0 {
			in = append(in, fmt.Sprintf("exit %d", c.ExitCode))
		}
	default:
		return "Not run: " + c.Command + because(c.Reason) + "."
	}
	in = append(in, fmt.Sprintf("%.1f s", c.Seconds))
	if n := len(c.Tests); n > 0 {
		words := textutil.Plural(n, "test")
		if failed := c.Count(EvidenceFailed); failed > 0 {
			words = fmt.Sprintf("%d of %s failed", failed, words)
			switch old := failed - len(c.New()); {
			case old == failed:
				words += " as before the change"
			case old > 0:
				words += fmt.Sprintf(", %d of them before the change too", old)
			}
		}
		if skipped := c.Count(EvidenceSkipped); skipped > 0 {
			words += fmt.Sprintf(", %d skipped", skipped)
		}
		in = append(in, words)
	}
	if c.Reason != "" {
		in = append(in, c.Reason)
	}
	if c.Stale {
		in = append(in, "before the last change")
	}
	return head + c.Command + " (" + strings.Join(in, ", ") + ")."
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + reason + ")"
}

// String is one line for people, as careful as what is known: what may be affected is not said to break.
func (u *Use) String() string {
	s := u.Kind + " " + u.Name
	if u.Public {
		s = "public " + s
	}
	switch u.What {
	case UseRemoved:
		s += " is removed or renamed"
	case UseSignature:
		s += " is declared differently"
	default:
		s += " changed inside"
	}
	switch {
	case u.Unknown != "":
		return s + ": its uses are not known (" + u.Unknown + ")"
	case u.Uses == 0:
		s += ": no other use is known in this project"
	default:
		s += fmt.Sprintf(": %s in %s, %d of them in this proposal", textutil.Plural(u.Uses, "use"), textutil.Plural(u.Files, "file"), u.Inside)
		if left := u.Uses - u.Inside; left > 0 {
			s += fmt.Sprintf("; %d outside may be affected", left)
		}
	}
	if u.Public {
		s += "; other projects may use it"
	}
	return s
}

// String is one line for people.
func (c *Claim) String() string {
	s := "the agent says “" + c.Text + "”: "
	switch c.Support {
	case ClaimSupported:
		return s + "`" + c.Command + "` ended with 0 on this version"
	case ClaimStale:
		return s + fmt.Sprintf("`%s` ended with %d, but on an earlier version", c.Command, c.Exit)
	case ClaimFailed:
		return s + fmt.Sprintf("NOT SO, `%s` ended with %d", c.Command, c.Exit)
	}
	return s + "no run of that is known"
}

// Line is a line of the evidence with how it should be read.
type Line struct {
	Text string
	Mood Mood
}

// Mood says whether a line supports a proposal; a screen colours it so.
type Mood int

// A line may speak for the proposal, against it, or only inform.
const (
	Neutral Mood = iota
	Good
	Warning
	Bad
)

// Limits of Lines: a question must stay on the screen with what speaks for and against it.
const (
	maxFailedLines = 5
	maxUseLines    = 8
)

// Lines are the evidence in words, for every front end that draws none of its own. place words a file and line.
func (e *Evidence) Lines(place func(path string, line int) string) (out []Line) {
	if e == nil {
		return nil
	}
	add := func(mood Mood, text string) { out = append(out, Line{text, mood}) }
	for i := range e.Checks {
		c := &e.Checks[i]
		mood := Good
		switch {
		case !c.Ran() || c.Stale:
			mood = Warning
		case c.Status == EvidenceFailed && len(c.Tests) > 0 && len(c.New()) == 0:
			mood = Warning // all of it failed before as well
		case c.Status == EvidenceFailed:
			mood = Bad
		}
		add(mood, c.String())
		shown := 0
		for _, t := range c.Tests {
			if t.Status != EvidenceFailed {
				continue
			}
			if shown++; shown > maxFailedLines {
				add(Bad, fmt.Sprintf("  … and %d more", c.Count(EvidenceFailed)-maxFailedLines))
				break
			}
			text := "  failed: " + t.Name
			if t.Suite != "" {
				text += " (" + t.Suite + ")"
			}
			if t.Before == EvidenceFailed {
				text += ", failed before too"
			}
			add(Bad, text)
		}
	}
	shown, unknown, why := 0, 0, ""
	for i := range e.Uses {
		u := &e.Uses[i]
		if u.Unknown != "" {
			unknown, why = unknown+1, u.Unknown
			continue
		}
		if shown++; shown > maxUseLines {
			continue
		}
		mood := Neutral
		if u.What != UseBody && u.Uses > u.Inside {
			mood = Warning
		}
		text := u.String()
		if len(u.Others) > 0 {
			text += " (" + place(u.Others[0].Path, u.Others[0].Line)
			if len(u.Others) > 1 {
				text += " …"
			}
			text += ")"
		}
		add(mood, text)
	}
	if more := shown - maxUseLines; more > 0 {
		add(Neutral, fmt.Sprintf("… and %s more", textutil.Plural(more, "changed declaration")))
	}
	// One line for all: it is one reason as a rule, and a list of what is not known hides what is.
	if unknown > 0 {
		add(Warning, fmt.Sprintf("uses of %s are not known: %s", textutil.Plural(unknown, "changed declaration"), why))
	}
	for i := range e.Claims {
		mood := Bad
		switch e.Claims[i].Support {
		case ClaimSupported:
			mood = Good
		case ClaimNoRun, ClaimStale:
			mood = Warning
		}
		add(mood, e.Claims[i].String())
	}
	if e.Attempts > 0 {
		add(Neutral, textutil.Plural(e.Attempts, "earlier attempt")+" went back to the agent")
	}
	if e.Insists != "" {
		add(Warning, "the agent was told of the errors and proposes this all the same: “"+e.Insists+"”")
	}
	return out
}

// EvidenceText is what is known of the set besides its verdict, a line each, and what of it is verified; "" for nothing.
func (s *Set) EvidenceText() string {
	if s == nil || s.Evidence == nil {
		return ""
	}
	var lines []string
	for _, l := range s.Evidence.Lines(func(path string, line int) string { return fmt.Sprintf("%s:%d", path, line) }) {
		lines = append(lines, l.Text)
	}
	for _, g := range s.Evidence.Groups {
		if g.Verified {
			lines = append(lines, g.Title)
		}
	}
	return strings.Join(lines, "\n")
}

// WithFiles is the set with other texts: what was known of its problems is not known of these, and what was run on it is
// outdated. Uses and groups were found in the old texts.
func (s Set) WithFiles(files []File) *Set {
	s.Files, s.Verdict = files, nil
	if s.Evidence != nil {
		e := *s.Evidence
		e.Version, e.Uses, e.Groups, e.Checks, e.Claims = "", nil, nil, slices.Clone(e.Checks), slices.Clone(e.Claims)
		for i := range e.Checks {
			e.Checks[i].Stale = true
		}
		for i := range e.Claims {
			if e.Claims[i].Support == ClaimSupported {
				e.Claims[i].Support = ClaimStale
			}
		}
		s.Evidence = &e
	}
	return &s
}

// GroupOf is the group of a hunk; nil where it stands alone.
func (e *Evidence) GroupOf(hunk string) *Group {
	if e == nil {
		return nil
	}
	for i := range e.Groups {
		if slices.Contains(e.Groups[i].Hunks, hunk) {
			return &e.Groups[i]
		}
	}
	return nil
}
