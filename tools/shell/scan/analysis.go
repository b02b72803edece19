// Package scan says what a bash command would run and touch, before it runs. It parses the command, walks it as bash
// would, and lists every program that it starts, nested ones included, and the paths outside the project that it reads or
// writes. Whatever it cannot determine makes the command opaque: then no permission pattern may allow it.
//
// The package knows bash only. What a program does with its arguments comes from an implementation of Programs, see package
// programs. Which calls and paths are allowed is decided by the caller's rules, not here.
//
//	a := scan.Analyze(scan.Request{Command: "cd web && npm test > /tmp/log", Dir: dir, Root: dir}, set)
//	a.Calls[1].Text // "npm test"
//	a.External      // [{/tmp/log write}]
//
// The analysis is not a security boundary, since a program can do more than its arguments say. It saves approval requests for
// harmless commands; the boundary is the sandbox.
package scan

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pillion-dev/pillion/tools/shell/visible"
)

// MaxCommand is the longest command that is analysed, in bytes. A longer one could overflow the stack of a parser, which
// would end the process, so Analyze refuses it without parsing.
const MaxCommand = 64 << 10

// Access is what happens to a path.
type Access string

// Write includes creating, removing and changing the mode.
const (
	Read  Access = "read"
	Write Access = "write"
)

// Request is a command and where it would run. All paths are absolute.
type Request struct {
	Command string
	Dir     string   // the working directory at the start
	Root    string   // the worktree, which counts as inside the project; empty or "/": Dir instead
	Extra   []string // more folders that count as inside
	// ReadDirs count as inside for reading only, such as the folder that holds the full text of shortened tool output.
	ReadDirs []string
	Home     string                           // for ~ and $HOME
	Getenv   func(name string) (string, bool) // the environment the command gets; nil: an empty one
	// Protected reports whether an access to a path (absolute, links resolved) always needs approval, and why; nil: no path does.
	Protected func(realPath string, access Access) (reason string, ok bool)
	// Hidden reports whether reading a file (absolute, links resolved) needs approval; nil: no file does.
	Hidden func(realPath string) bool

	// Patience raises the limits of time to at least this value. 0 keeps them; tests on a busy machine set more.
	Patience time.Duration

	limit time.Duration // of parsing and walking at least: Patience, or shortPatience
}

// PathAccess is a path that a command touches, absolute and with links resolved.
type PathAccess struct {
	Path   string `json:"path"`
	Access Access `json:"access"`
}

// ProtectedPath is an access that always needs approval, whatever the permission rules allow.
type ProtectedPath struct {
	Path   string `json:"path"`
	Access Access `json:"access"`
	Reason string `json:"reason"`
}

// Call is one program that the command would start, or one builtin of the shell that it would run.
// Permission rules match Text and Also only; the other fields decide what may run without approval and what "always" offers.
type Call struct {
	Text     string   // what rules match: the call without assignments in front, quotes and redirections
	Also     []string // other spellings, which only rules that deny match: without the program's folder, as typed, as expanded
	Program  string   // first word of Text without its folder
	ReadOnly bool     // known to change nothing, with these options
	Silent   bool     // changes nothing but the shell itself (cd, export): never needs approval; a rule may still deny it
	Complete bool     // ReadOnly, and its record lists every option: it may run without approval even where there is no sandbox
	NoGrant  bool     // wrappers, shells, interpreters: no grant may cover it
	Always   string   // the pattern that "always" would remember; empty: nothing
	Exact    bool     // an argument makes it do more than the program usually does (Effect): only a grant of the same text covers it
	Class    string   // the gravest thing it does, for the person: "deletes", "reaches elsewhere"; empty: it reads, or changes the project
	Effect   string   // what more it does than usual, and through which argument: "forces: --force"
	Record   string   // the record that describes the program: "git.yaml: git clean"; empty: there is none
}

// Analysis is the result of Analyze. Its lists are in the order of the walk, from the start of the script to its end.
type Analysis struct {
	Command   string
	Calls     []Call
	External  []PathAccess    // outside the project
	Protected []ProtectedPath // inside or outside
	Reads     []string        // files inside the project that are named and read, absolute, links resolved
	// Found are files for which Request.Hidden is true, in folders that the command searches: it may print them without naming them.
	Found  []string
	Writes []string // files inside the project that are named and written
	// Redirected are the files in Writes that the shell itself writes (> file), whatever the programs do.
	Redirected []string
	Redirects  bool // a file, inside or outside, is written by the shell itself
	// Opaque: something could not be determined, so no pattern may allow the command. Refused: it must not run at all.
	Opaque  bool
	Refused bool
	// Bounded: the only reasons for Opaque are code that the command holds as text (python -c), in which nothing looks like more than a change
	// of the project's files, and paths and folders that cannot be said (xargs sed -i). Rules cannot judge these, but a sandbox that holds
	// reading and writing can run them without a question. Which programs run is known.
	Bounded bool
	Why     string // the first reasons for Opaque or Refused, for a person
	// ReadOnly: all Calls are ReadOnly, no file is written, External and Protected are empty, and the command is not opaque.
	ReadOnly bool
}

// Commands lists the texts of all calls and their other spellings, each once. Spellings with quotes or backslashes are left
// out: rules are written for plain words, and the list has the same call without the quotes.
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

// Analyze analyses a command. It never fails: a command that it cannot understand is opaque. It reads directory entries and
// links to resolve paths; the only file contents it reads are the settings and the index of a Git repository. Its time is bounded.
func Analyze(r Request, p Programs) (a *Analysis) {
	defer func() {
		if p := recover(); p != nil { // a bug in the analysis must lead to an approval request, not end the process
			a = &Analysis{Command: r.Command, Opaque: true, Why: fmt.Sprintf("the analysis failed: %v", p)}
		}
	}()
	return analyze(r, p)
}

// analyze is Analyze without the recover. It refuses some commands before parsing, since neither parser is made for NUL bytes
// or very long texts.
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
	// A short command may take longer; maxSteps and maxLookups bound it in any case.
	r.limit = r.Patience
	if len(r.Command) <= shortCommand && r.Patience == 0 {
		r.limit = shortPatience
	}
	w := newWalker(r, p, a)
	// Deceptive text does not end the analysis: rules that deny need the calls that can still be recognised.
	if why := visible.Deceptive(r.Command); why != "" {
		w.opaque(why)
	}
	// Invalid UTF-8 is not parsed: the person would be shown another text than the one that bash runs.
	if !utf8.ValidString(r.Command) {
		w.opaque("it is not valid UTF-8")
	} else {
		// The working directory counts as read, so one outside the project is listed in External whatever the command is.
		st := state{dirs: []string{r.Dir}}
		w.record(Literal(r.Dir), Read, &st)
		w.script(r.Command, &st)
		w.runTraps()
	}
	w.finish()
	return a
}

// The limits of time exist for hostile commands. A short command is bounded by maxSteps and maxLookups, so its limit is for a disk that
// does not answer: on a busy machine its few milliseconds of work took more than a second, and a harmless command needed approval.
const (
	shortCommand  = 4 << 10 // bytes
	shortPatience = 20 * time.Second
)

// refuse marks the command as one that must not run at all. It sets Opaque too, so that a caller that tests only Opaque does
// not let the command through.
func (a *Analysis) refuse(why string) {
	a.Refused, a.Opaque, a.Why = true, true, why
}
