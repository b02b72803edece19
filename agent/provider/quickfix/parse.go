package quickfix

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"
)

// problem is a diagnostic in the metadata of the lsp tool. Line and Column count from 1, Column in UTF-16 units. The tool's texts are for
// people and may change, so this model reads the metadata only.
type problem struct {
	Path     string `json:"path"`
	Line     int    `json:"line"`
	Column   int    `json:"column"`
	Severity string `json:"severity"`
	Source   string `json:"source"`
	Code     string `json:"code"`
	Message  string `json:"message"`
}

// key recognises a problem while lines above it come and go and names in its message change: by its file, column and code. Two problems
// of one kind in one column have the same key; at worst the second is given up too early.
func (p problem) key() string {
	return fmt.Sprintf("%s\x00%d\x00%s\x00%s", p.Path, p.Column, p.Source, p.Code)
}

// action is a code action in the metadata of the lsp tool. The tool applies and undoes it by ID.
type action struct {
	ID        string  `json:"id"`
	Title     string  `json:"title"`
	Kind      string  `json:"kind"`
	Preferred bool    `json:"preferred"`
	Disabled  string  `json:"disabled"`
	Server    string  `json:"server"`
	Effect    *effect `json:"effect"` // nil: it could not be measured in time
}

// effect is what an action would change in the problems. The tool measures it within a time limit.
type effect struct {
	Fixes      int  `json:"fixes"`
	Introduces int  `json:"introduces"`
	Errors     int  `json:"errors"`   // change of the number of errors; below 0: fewer errors
	Stub       bool `json:"stub"`     // it adds code that fails when it runs
	Discards   bool `json:"discards"` // it assigns a value to nothing
}

// quickfix reports that an action repairs something; refactorings do not. An action without a kind counts, because some servers give
// none.
func (a action) quickfix() bool {
	return a.Disabled == "" && (a.Kind == "" || a.Kind == "quickfix" || strings.HasPrefix(a.Kind, "quickfix."))
}

// diagnosis is the answer to a request for diagnostics. ok is false when there was none; then diagnose has told the user.
type diagnosis struct {
	ok       bool
	problems []problem
	doubt    string // why there may be more problems than these
}

// errors are the problems of severity error. This model leaves warnings alone.
func (d diagnosis) errors() []problem {
	var out []problem
	for _, p := range d.problems {
		if p.Severity == "error" {
			out = append(out, p)
		}
	}
	return out
}

// diagnose asks for the problems of a file, a folder or the whole project. When there is no answer it tells the user why.
func diagnose(w *walk, where string) diagnosis {
	if !w.canAsk() {
		return diagnosis{}
	}
	// Without a path the tool checks the whole project.
	input := map[string]any{"operation": "diagnostics"}
	if where != "" {
		input["filePath"] = where
	}
	r := w.call("lsp", input)
	// The place is most often a word of the prompt that was taken for a path, so the help text follows.
	if r.failed && r.kind == "file_missing" {
		w.sayUndone("There is no file or folder %s here.\n\n%s", where, help)
		return diagnosis{}
	}
	if r.failed {
		w.sayUndone("The language servers could not say what is wrong%s: %s", in(where), r.text)
		return diagnosis{}
	}
	var said struct {
		Diagnostics []problem `json:"diagnostics"`
		State       string    `json:"state"` // fresh, partial, pending, unavailable
		Reason      string    `json:"reason"`
	}
	r.read(&said)
	// The absence of an answer must not be reported as "no errors".
	if len(said.Diagnostics) == 0 && (said.State == "pending" || said.State == "unavailable" || said.State == "") {
		if said.Reason == "" {
			said.Reason = "the language servers gave no answer"
		}
		w.sayUndone("I do not know what is wrong%s: %s.", in(where), said.Reason)
		return diagnosis{}
	}
	d := diagnosis{ok: true, problems: said.Diagnostics}
	if said.State != "fresh" {
		// Incomplete answers are used; what the user reads then names the doubt.
		d.doubt = said.Reason
	}
	// Stable, so that the problems of one line keep the server's order in every replay.
	sort.SliceStable(d.problems, func(i, j int) bool {
		a, b := d.problems[i], d.problems[j]
		if a.Path != b.Path {
			return a.Path < b.Path
		}
		return a.Line < b.Line
	})
	return d
}

// asFarAs qualifies "there are no errors" with what is in doubt.
func (d diagnosis) asFarAs() string {
	if d.doubt == "" {
		return ""
	}
	return " as far as the language servers can say (" + d.doubt + ")"
}

// actions are those of a codeActions result.
func (r result) actions() []action {
	var said struct {
		Actions []action `json:"actions"`
	}
	r.read(&said)
	return said.Actions
}

// changed reports that an edit was applied; false where the tool found nothing to do.
func (r result) changed() bool {
	var said struct {
		Files []json.RawMessage `json:"files"`
	}
	r.read(&said)
	return !r.failed && len(said.Files) > 0
}

// refused reports that a person or a rule said no, or that no user was connected; the kinds are those of tools.Error. Any other failure
// may be tried in another way.
func (r result) refused() bool {
	switch r.kind {
	case "rejected", "denied", "unanswered", "refused", "dismissed":
		return r.failed
	}
	return false
}

// read decodes the metadata into v; what cannot be decoded stays as it is.
func (r result) read(v any) { _ = json.Unmarshal(r.metadata, v) }

// byFile groups problems by path.
func byFile(ps []problem) map[string][]problem {
	out := map[string][]problem{}
	for _, p := range ps {
		out[p.Path] = append(out[p.Path], p)
	}
	return out
}

// in is " in WHERE" for a sentence, empty for the whole project.
func in(where string) string {
	if where == "" {
		return ""
	}
	return " in " + where
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}
