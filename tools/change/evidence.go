package change

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/tools/textutil"
)

// Evidence is what is known of a proposal besides its verdict: commands that were run on it, uses of the declarations it changes,
// hunks that a program made. It decides nothing; a person reads it beside the diff. Its JSON is stored with the set and sent to
// editors, so the names of fields must not change.
type Evidence struct {
	// Version names the texts of the proposal, see Version. A check that ran on other texts proves less; it is Stale.
	Version string `json:"version,omitempty"`
	// Attempts counts how often the proposal was returned to the agent before a person was asked.
	Attempts int `json:"attempts,omitempty"`
	// Insists is the agent's reason to propose a change although it was told of errors; "" if there were none, or it fixed them.
	Insists string `json:"insists,omitempty"`
	// Merged are the files, absolute, that had changed since the agent last read them; the proposal is made in their present text.
	Merged []string `json:"merged,omitempty"`
	Checks []Check  `json:"checks,omitempty"`
	Uses   []Use    `json:"uses,omitempty"`
	Groups []Group  `json:"groups,omitempty"`
	Claims []Claim  `json:"claims,omitempty"`
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
	Output   string         `json:"output,omitempty"`  // the end of the output, where most programs print failures; only of a failed check
	// Before is how the command as a whole ended without the change, where it failed and has no results of single tests; "": unknown.
	Before EvidenceStatus `json:"before,omitempty"`
	// Tests are the single results, if the program's output can be read. Those that pass have no output.
	Tests []TestResult `json:"tests,omitempty"`
}

// EvidenceStatus is the result of a command or a test.
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
	Output  string         `json:"output,omitempty"` // the end of the output, if the test failed
	Before  EvidenceStatus `json:"before,omitempty"` // how it ended without the change; empty: unknown
}

// Names of results that stand for a whole package or file instead of a test: it failed before or outside its tests. It does
// not compile, its beginning panics, or it ends in the middle.
const (
	WholePackage = "(package)"
	WholeFile    = "(file)"
)

// Whole reports whether the result is that of a package or file that failed as a whole, and not that of a test.
func (t TestResult) Whole() bool { return t.Name == WholePackage || t.Name == WholeFile }

// Use counts the uses of one changed declaration, according to its language server. The uses may be affected; the verdict and the
// tests show whether they break.
type Use struct {
	Name   string `json:"name"`
	Kind   string `json:"kind"` // as in LSP: function, method, class …
	Path   string `json:"path"` // of the declaration; absolute
	Line   int    `json:"line"` // from 1, in the old text
	What   string `json:"what"` // "body", "signature" or "removed"
	Public bool   `json:"public,omitempty"`
	Uses   int    `json:"uses"`   // without the declaration itself
	Files  int    `json:"files"`  // number of files with a use
	Inside int    `json:"inside"` // uses on lines that the proposal changes
	// Unknown says why the uses were not counted; they are 0 then.
	Unknown string `json:"unknown,omitempty"`
	// Others are the first twenty uses on lines that the proposal does not change: a person opens only a few, and the count is in
	// Uses.
	Others []Place `json:"others,omitempty"`
}

// Values of Use.What: what the proposal changes of a declaration.
const (
	UseBody      = "body"      // only its inside: callers need no change
	UseSignature = "signature" // how others name or call it
	UseRemoved   = "removed"   // removed or renamed: the old name is not declared any more
)

// Place is a line of a file.
type Place struct {
	Path string `json:"path"` // absolute
	Line int    `json:"line"` // from 1
}

// Group is some hunks that a person decides on together. For a verified group, Pillion ran the operation itself on the old text,
// and its result has exactly these hunks, so the person need not read them one by one.
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

// Claim is a sentence in which the agent says that it checked something, with the command that supports it or the lack of one.
type Claim struct {
	Text  string `json:"text"`  // its words
	About string `json:"about"` // "tests", "build", "types" or "lint"
	// Subject is what the sentence says it of: About, or a program by its name ("go vet"). A sentence with several has a claim for each.
	Subject string `json:"subject,omitempty"`
	Support string `json:"support"`
	Command string `json:"command,omitempty"` // the last that could support it; "" for none
	Exit    int    `json:"exit,omitempty"`    // exit code of Command
	Version string `json:"version,omitempty"` // of the texts when the command had ended
}

// Values of Claim.Support. Only a run that ended with 0 on the proposed texts supports a claim.
const (
	ClaimSupported = "run"
	ClaimStale     = "stale"  // the command ran on other texts
	ClaimFailed    = "failed" // the command ended with another code
	ClaimNoRun     = "none"   // no command that could support it is known; with Command: one failed, perhaps in another of its checks
)

// Version is a short hash of the proposed files: kind, paths, mode, encoding and new text. Their order does not matter. Checks and
// claims have it, so that a later edit makes them stale.
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

// WithEvidence returns the set with evidence. It does not change the set itself, which may be shown already.
func (s *Set) WithEvidence(e *Evidence) *Set {
	next := *s
	next.Evidence = e
	return &next
}

// Count is how many tests of a check ended with this status.
func (c *Check) Count(status EvidenceStatus) (n int) {
	for _, t := range c.Tests {
		if t.Status == status {
			n++
		}
	}
	return n
}

// Ran reports whether the check has a result. An unknown status counts as not run: a status of a later version of Pillion must not
// look like a success.
func (c *Check) Ran() bool { return c.Status == EvidencePassed || c.Status == EvidenceFailed }

// Tally counts the results of checks, for people. Packages and files that failed as a whole are not counted as tests: how many tests
// they have is not known.
type Tally struct {
	Tests, Failed, Old int // Tests without the skipped ones; Old: failed before the change too
	Skipped            int
	Whole, WholeOld    int // packages and files that failed as a whole; those that did so before the change too
	noun               string
}

// Add counts the results of a check.
func (n *Tally) Add(c *Check) {
	for _, t := range c.Tests {
		old := t.Status == EvidenceFailed && t.Before == EvidenceFailed
		switch {
		case t.Whole() && t.Status == EvidenceFailed:
			n.Whole++
			if old {
				n.WholeOld++
			}
			switch noun := strings.Trim(t.Name, "()"); {
			case n.noun == "":
				n.noun = noun
			case n.noun != noun:
				n.noun = "suite"
			}
		case t.Status == EvidenceSkipped:
			n.Skipped++
		default:
			n.Tests++
			if t.Status == EvidenceFailed {
				n.Failed++
			}
			if old {
				n.Old++
			}
		}
	}
}

// Failures words what failed: "1 of 13 tests failed, 2 packages failed as a whole"; "" for nothing.
func (n *Tally) Failures() string {
	before := func(old, all int) string {
		switch {
		case old == 0:
			return ""
		case old == all:
			return " as before the change"
		}
		return fmt.Sprintf(", %d of them before the change too", old)
	}
	var out []string
	if n.Failed > 0 {
		out = append(out, fmt.Sprintf("%d of %s failed", n.Failed, textutil.Plural(n.Tests, "test"))+before(n.Old, n.Failed))
	}
	if n.Whole > 0 {
		words := textutil.Plural(n.Whole, n.noun) + " failed as a whole"
		if n.WholeOld == n.Whole {
			words += "," // "as a whole as before" would be hard to read
		}
		out = append(out, words+before(n.WholeOld, n.Whole))
	}
	return strings.Join(out, ", ")
}

// New are the failed tests that did not fail without the proposal. A test whose earlier result is unknown counts as new.
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
	if len(c.Tests) > 0 {
		var n Tally
		n.Add(c)
		n.Tests += n.Skipped // of all tests of the command
		words := n.Failures()
		if words == "" {
			words = textutil.Plural(n.Tests, "test")
		}
		if n.Skipped > 0 {
			words += fmt.Sprintf(", %d skipped", n.Skipped)
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

// because returns a reason in brackets, or "".
func because(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + reason + ")"
}

// String is one line for people. It says that uses may be affected, not that they break.
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

// String is one line for people. It names the subject, because a sentence may have several.
func (c *Claim) String() string {
	subject := cmp.Or(c.Subject, c.About)
	s := "the agent says “" + c.Text + "”, " + subject + ": "
	switch c.Support {
	case ClaimSupported:
		return s + "`" + c.Command + "` ended with 0 on this version"
	case ClaimStale:
		return s + fmt.Sprintf("`%s` ended with %d, but on an earlier version", c.Command, c.Exit)
	case ClaimFailed:
		return s + fmt.Sprintf("NOT SO, `%s` ended with %d", c.Command, c.Exit)
	}
	if c.Command != "" {
		return s + fmt.Sprintf("not known, `%s` ended with %d and checks other things too", c.Command, c.Exit)
	}
	return s + "no run of that is known"
}

// Line is a line of the evidence, and whether it speaks for the proposal.
type Line struct {
	Text string
	Mood Mood
}

// Mood says whether a line supports a proposal; front ends choose the colour by it.
type Mood int

// A line can support the proposal, speak against it, or only inform.
const (
	Neutral Mood = iota
	Good
	Warning
	Bad
)

// Limits of Lines: an approval request must fit on a screen with the evidence for and against it.
const (
	maxFailedLines = 5 // failed tests of each check
	maxUseLines    = 8 // changed declarations of the proposal
)

// Lines are the evidence as text, for front ends that do not draw it themselves. place prints a path and a line (from 1).
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
		case c.Status == EvidenceFailed && (c.Before == EvidenceFailed || len(c.Tests) > 0 && len(c.New()) == 0):
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
			text, suite := "  failed: "+t.Name, t.Suite
			if filepath.IsAbs(suite) { // a file, in the words of jest and vitest
				suite = strings.TrimSuffix(place(suite, 1), ":1")
			}
			switch {
			case t.Whole():
				text = "  failed as a whole: " + suite
			case suite != "":
				text += " (" + suite + ")"
			}
			if t.Before == EvidenceFailed {
				text += ", failed before too"
			}
			add(Bad, text)
		}
	}
	shown, unknown, why := 0, 0, ""
	// A name that several of them have, such as that of a method of several types, says its place too.
	same := map[string]int{}
	for i := range e.Uses {
		same[e.Uses[i].Kind+" "+e.Uses[i].Name]++
	}
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
		if same[u.Kind+" "+u.Name] > 1 {
			named := *u
			named.Name += " (" + place(u.Path, u.Line) + ")"
			text = named.String()
		}
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
		add(Neutral, "… and "+textutil.Plural(more, "more changed declaration"))
	}
	// One line for all of them, with the last reason: usually there is only one, such as a language without a server, and a long
	// list of unknowns would hide the known uses.
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
	for _, path := range e.Merged {
		add(Neutral, strings.TrimSuffix(place(path, 1), ":1")+" has changed since the agent read it; the change is to the file as it is now")
	}
	if e.Attempts > 0 {
		add(Neutral, textutil.Plural(e.Attempts, "earlier attempt")+" went back to the agent")
	}
	if e.Insists != "" {
		add(Warning, "the agent was told of the errors and proposes this all the same: “"+e.Insists+"”")
	}
	return out
}

// EvidenceText is the evidence as plain text, line by line, with the titles of verified groups at the end; "" for none.
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

// WithFiles returns the set with other texts. The verdict, uses and groups of the old texts are removed; checks and supported
// claims become stale, because a person may still want to see them.
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

// GroupOf is the group of a hunk; nil if it is in none.
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
