// Package scan says what a bash command would run and touch, before it runs. It parses the command, walks it as bash
// would, and names every program in every position and the paths outside the project that are read or written. What it
// cannot determine makes the command opaque: then no permission pattern may allow it.
//
// The package knows bash only. What a program does with its words is said by an implementation of Programs, see package
// programs. It decides nothing: which calls and paths are allowed is up to the caller's rules.
//
//	a := scan.Analyze(scan.Request{Command: "cd web && npm test > /tmp/log", Dir: dir, Root: dir}, set)
//	a.Calls[1].Text // "npm test"
//	a.External      // [{/tmp/log write}]
//
// The analysis is not a boundary: a program can do more than its words say. It saves questions; the sandbox is the boundary.
package scan

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pillion-dev/pillion/tools/shell/visible"
)

// MaxCommand is the longest command that is looked at, in bytes. Longer ones could exhaust a parser's stack, which
// ends the process, so they are refused unread.
const MaxCommand = 64 << 10

// Access is what happens to a path.
type Access string

// Write includes creating, removing and changing the mode.
const (
	Read  Access = "read"
	Write Access = "write"
)

// Request is a command and where it would run. All paths are absolute.
// It is not changed, and a copy of it lives as long as the analysis.
type Request struct {
	Command string
	Dir     string   // where it starts
	Root    string   // the worktree: what counts as inside, beside Dir and Extra
	Extra   []string // more folders that count as inside
	// ReadDirs may be read, not written, without counting as outside: the folder of capped tool output.
	ReadDirs []string
	Home     string                           // for ~ and $HOME
	Getenv   func(name string) (string, bool) // the environment the command gets; nil: an empty one
	// Protected says whether an access to a path (absolute, links resolved) must always be asked about, and why; nil: none.
	Protected func(realPath string, access Access) (reason string, ok bool)
	// Hidden says whether a file (absolute, links resolved) may not be read without asking; nil: all may.
	Hidden func(realPath string) bool

	// Patience is how long the analysis may take at least. 0: the usual limits; tests on a busy machine want more.
	Patience time.Duration
}

// PathAccess is a path that a command touches, absolute and with links resolved.
type PathAccess struct {
	Path   string `json:"path"`
	Access Access `json:"access"`
}

// ProtectedPath is a path that is always asked about, whatever the permission rules allow.
type ProtectedPath struct {
	Path   string `json:"path"`
	Access Access `json:"access"`
	Reason string `json:"reason"`
}

// Call is one program the command would start, or a builtin of the shell that does something.
// Rules see Text and Also only; the other fields decide what may run without a question and what "always" offers.
type Call struct {
	Text     string   // as rules see it: inline assignments, quotes and redirections taken away
	Also     []string // other spellings, for rules that deny: without the folder, as typed
	Program  string   // first word of Text without its folder
	ReadOnly bool     // known to change nothing, with these options
	Silent   bool     // changes nothing but the shell (cd, export): asked only where a rule denies it
	Complete bool     // ReadOnly, and every option of it is enumerated: it runs unasked where commands cannot be contained
	NoGrant  bool     // wrappers, shells, interpreters: no grant may cover it
	Always   string   // what "always" would remember; empty: nothing
	Exact    bool     // does more than its program does without some of its words: only a grant of this very text covers it
	Class    string   // what it does at most, in words: "deletes", "reaches elsewhere"; empty: it reads, or changes the project
	Effect   string   // … what more, and by which word: "forces: --force"
	Record   string   // where it is described what the program does: "git.yaml: git clean"; empty: nowhere
}

// Analysis is what could be found out about a command.
// Its lists are in the order of the walk, which goes through the script from its start to its end.
type Analysis struct {
	Command   string
	Calls     []Call
	External  []PathAccess    // outside the project
	Protected []ProtectedPath // inside or outside
	Reads     []string        // files inside the project that are named and read, absolute, links resolved
	// Found are files that the command may print without naming them: hidden ones below the folders that it searches.
	Found  []string
	Writes []string // files inside the project that are named and written
	// Redirected are those of Writes that the shell itself writes (> file), whatever the programs do.
	Redirected []string
	Redirects  bool // a file, inside or outside, is written by the shell itself
	// Opaque: something could not be determined, so no pattern may allow the command. Refused: it must not run at all.
	Opaque  bool
	Refused bool
	Why     string // the first reasons for Opaque or Refused, for a person
	// ReadOnly: every call is, and nothing is written, outside, protected or opaque.
	ReadOnly bool
}

// Commands are the texts of all calls, each once.
// Of the other spellings those with quotes or backslashes are left out: a rule is written against plain words, and the
// same call is in the list without them.
func (a *Analysis) Commands() []string {
	out := []string{}
	for _, c := range a.Calls {
		if !slices.Contains(out, c.Text) {
			out = append(out, c.Text)
		}
		for _, also := range c.Also {
			if !slices.Contains(out, also) && !strings.ContainsAny(also, "\"'\\") {
				out = append(out, also)
			}
		}
	}
	return out
}

// Analyze looks at a command. It never fails: what it cannot understand is opaque. It reads directory entries and
// links to resolve paths, of file contents only a git repository's settings and index, and its time is bounded.
func Analyze(r Request, p Programs) (a *Analysis) {
	defer func() {
		if p := recover(); p != nil { // a mistake here must cost a question, never a session
			a = &Analysis{Command: r.Command, Opaque: true, Why: fmt.Sprintf("the analysis failed: %v", p)}
		}
	}()
	return analyze(r, p)
}

// analyze is Analyze without the recover. Refused commands are not parsed at all, so that neither parser sees a text that it
// was not made for.
func analyze(r Request, p Programs) *Analysis {
	a := &Analysis{Command: r.Command}
	switch {
	case strings.ContainsRune(r.Command, 0):
		a.refuse("it contains a NUL byte, which no shell can run")
		return a
	case len(r.Command) > MaxCommand:
		a.refuse(fmt.Sprintf("it is %d bytes long, the limit is %d; write it to a script file and run that", len(r.Command), MaxCommand))
		return a
	}
	// Only a command within shortCommand gets the longer time: maxSteps and maxLookups bound it in any case.
	if len(r.Command) <= shortCommand && r.Patience == 0 {
		r.Patience = shortPatience
	}
	w := newWalker(r, p, a)
	// Deceptive text does not end the walk: rules that deny still need the calls that can be read off it.
	if why := visible.Deceptive(r.Command); why != "" {
		w.opaque(why)
	}
	// Invalid UTF-8 is not walked: what a screen shows of it and what bash runs are different texts.
	if !utf8.ValidString(r.Command) {
		w.opaque("it is not valid UTF-8")
	} else {
		// The shell reads its own start directory, so a workdir outside the project is listed in External even for "true".
		st := state{dirs: []string{r.Dir}}
		w.record(Literal(r.Dir), Read, &st)
		w.script(r.Command, &st)
		w.runTraps()
	}
	w.finish()
	return a
}

// Limits of time exist for hostile commands. A short command is bounded by the steps it may take, so it gets more time:
// on a busy machine its few milliseconds could otherwise exceed the limit, and a harmless command would be asked about.
const (
	shortCommand  = 4 << 10 // bytes
	shortPatience = time.Second
)

// refuse makes the command one that must not run at all. A refused command is opaque as well, so callers that look at one
// of the two fields are right.
func (a *Analysis) refuse(why string) {
	a.Refused, a.Opaque, a.Why = true, true, why
}
