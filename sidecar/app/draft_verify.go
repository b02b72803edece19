package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/draft"
	"github.com/pillion-dev/pillion/tools/permission"
)

// verifyTime is how long one command of verify may take, in milliseconds as the bash tool takes it. Somebody waits for
// the proposal.
const verifyTime = 5 * 60 * 1000

// evidence is a command that was run on a draft, with how it ended. It holds for the draft as it was then: nothing
// changes the draft between the run and the proposal. A command that did not run is evidence too, so that a reader does
// not assume it passed.
type evidence struct {
	command string
	exit    int
	ran     bool // false: it was not allowed, or could not be started
	took    time.Duration
	why     string // where it did not run
	output  string // its end
}

// String is a line of what the model reads.
func (e evidence) String() string { return e.public().String() }

// public is the evidence as an approval request has it.
func (e evidence) public() change.Evidence {
	out := change.Evidence{Command: e.command, Status: change.EvidenceNotRun, Reason: e.why}
	if e.ran {
		out = change.Evidence{Command: e.command, Status: change.EvidencePassed, Seconds: e.took.Seconds(), Output: e.output}
		if e.exit != 0 {
			out.Status, out.ExitCode = change.EvidenceFailed, e.exit
		}
	}
	return out
}

// verify runs the commands of the setting verify in the draft; without any, the tests of a Go module that the draft's
// changes can affect (turn: a model worked in it, and not a script's calls). Each is asked for under the permission
// verify, in the sandbox, with a card of its own. An empty list in the settings turns it off, as it is not nil.
func (d *Drafts) verify(ctx context.Context, s *agent.Session, o *openDraft, turn bool) (out []evidence) {
	p, err := o.proposal()
	if err != nil || len(p.Files)+len(p.Bulk) == 0 {
		return nil // the proposal says what went wrong
	}
	c := d.app.ConfigOf(s.Info().Cwd)
	commands, shown := slices.Clone(c.Verify), map[string]string{}
	for _, x := range commands {
		shown[x] = x
	}
	if c.Verify == nil && turn {
		for _, t := range goTests(o.Head().Project, p) {
			commands, shown[t.command] = append(commands, t.command), t.name
		}
	}
	for _, command := range commands {
		out = append(out, d.verifyOne(ctx, s, o, command, shown[command]))
		if ctx.Err() != nil {
			break
		}
	}
	return out
}

// verifyOne runs one command as a tool call beside the turn, so that it is asked for, shown and stored like any other.
// name is what people read of it; the command of goTests is too long for that.
func (d *Drafts) verifyOne(ctx context.Context, s *agent.Session, o *openDraft, command, name string) evidence {
	e := evidence{command: name, exit: -1}
	tool := tools.Tool{ID: "verify", Permission: "verify", Kind: tools.KindExecute, Description: "Checks a draft before it is proposed.", Parameters: json.RawMessage(`{"type":"object"}`),
		Run: func(ctx context.Context, _ json.RawMessage, call *tools.Call) (tools.Result, error) {
			// Tests are the project's code. One "always" covers them all, as the agent chooses which.
			_, err := call.Host.Gate.Ask(ctx, permission.Request{SessionID: call.SessionID, CallID: call.CallID, Tool: call.Tool, Permission: "verify", Patterns: []string{command}, Always: []string{"*"}, Named: true,
				Title: "Verify the draft: " + name, Why: "it runs the project's code on what was done in the draft; nothing outside the draft is written", Metadata: map[string]any{"command": command}})
			if err != nil {
				return tools.Result{}, err
			}
			// A copy: the call belongs to the session's loop, and its gate must stay as it is for others.
			inside := *call
			inside.Tool, inside.Host.Gate = "bash", asked{call.Host.Gate}
			input, err := json.Marshal(map[string]any{"command": command, "description": "verify: " + name, "timeout": verifyTime})
			if err != nil {
				return tools.Result{}, err
			}
			start := time.Now()
			r, err := o.call(ctx, "bash", input, &inside, s.Info())
			e.took = time.Since(start)
			return r, err
		}}
	data, err := s.ToolBeside(ctx, tool, json.RawMessage(`{}`))
	if err != nil {
		e.why = err.Error()
		return e
	}
	// A number that has been JSON is a float64. Without it the command was stopped, or never ran.
	exit, ok := data.Metadata["exit"].(float64)
	if !ok {
		if e.why = data.Error; e.why == "" {
			e.why = "it did not end by itself"
		}
		return e
	}
	e.exit, e.ran, e.output = int(exit), true, data.Output
	if cut := len(e.output) - 4<<10; cut > 0 { // failures stand at the end
		e.output = "…" + strings.ToValidUTF8(e.output[cut:], "")
	}
	return e
}

// asked lets a command through that the person has allowed under verify: bash would ask about it a second time. A rule
// that denies still counts.
type asked struct{ gate tools.Gate }

// Ask implements tools.Gate.
func (g asked) Ask(ctx context.Context, r permission.Request) (permission.Reply, error) {
	if r.Permission != "bash" || g.Would(ctx, r) == permission.Deny {
		return g.gate.Ask(ctx, r)
	}
	return permission.Reply{Kind: permission.Once, Asked: true}, nil
}

// Would implements tools.Foreteller.
func (g asked) Would(ctx context.Context, r permission.Request) permission.Action {
	if f, ok := g.gate.(tools.Foreteller); ok {
		return f.Would(ctx, r)
	}
	return permission.Ask
}

// goTest is the command that tests what a change of a Go module can affect, and its name for people.
type goTest struct{ command, name string }

// moduleLine finds the module path in a go.mod (go.dev/ref/mod#go-mod-file-module), quoted or not.
var moduleLine = regexp.MustCompile(`(?m)^module\s+"?([^\s"]+)`)

// goTests finds the packages that were changed, module by module, and makes the command that runs the tests of those
// and of all that depend on them, tests' own imports included: the dependencies are what `go list` says in the draft.
// The whole test suite of a large project would take longer than a person waits.
func goTests(project string, p *draft.Proposal) (out []goTest) {
	changed := map[string]map[string]bool{} // by module's folder: import paths
	for _, f := range p.Files {
		if name := filepath.Base(f.Path); !strings.HasSuffix(name, ".go") {
			continue
		}
		// The nearest go.mod upwards, but not above the project.
		for dir := filepath.Dir(f.Path); ; dir = filepath.Dir(dir) {
			if rel, err := filepath.Rel(project, dir); err != nil || !filepath.IsLocal(rel) {
				break
			}
			text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
			if err != nil {
				continue
			}
			m := moduleLine.FindSubmatch(bytes.TrimSpace(text))
			rel, err := filepath.Rel(dir, filepath.Dir(f.Path))
			if m != nil && err == nil {
				if changed[dir] == nil {
					changed[dir] = map[string]bool{}
				}
				changed[dir][path.Join(string(m[1]), filepath.ToSlash(rel))] = true
			}
			break
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(changed)) {
		// Quoted for grep -E: a dot in github.com would match any character.
		var names []string
		for _, pkg := range slices.Sorted(maps.Keys(changed[dir])) {
			names = append(names, regexp.QuoteMeta(pkg))
		}
		// -test lists each package's test with all its dependencies: "pkg.test [a b …]" and "pkg_test [pkg.test] [a …]".
		list := fmt.Sprintf(`go list -e -test -f '{{.ImportPath}} {{.Deps}}' ./... | { grep -E '(^|[[ ])(%s)([] .]|$)' || true; } | awk '{print $1}' | sed -E 's/(\.test|_test)$//' | sort -u`, strings.Join(names, "|"))
		rel, err := filepath.Rel(project, dir)
		if err != nil {
			continue
		}
		quoted := "'" + strings.ReplaceAll(filepath.Join(project, rel), "'", `'\''`) + "'"
		name := "go test of what the change affects"
		if rel != "." {
			name += " in " + filepath.ToSlash(rel)
		}
		out = append(out, goTest{"cd " + quoted + " && set -o pipefail && affected=$(" + list + ") && { [ -z \"$affected\" ] || go test $affected; }", name})
	}
	return out
}

// failures is what the model reads of checks that failed; empty where none did. Commands that did not run are not its
// doing.
func failures(checks []evidence) string {
	var b strings.Builder
	for _, e := range checks {
		if e.ran && e.exit != 0 {
			fmt.Fprintf(&b, "%s\n%s\n", e, e.output)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "Before the user is asked: what you did in this draft was checked, and not all checks pass.\n\n" + b.String() +
		"\nMend it, or say in one sentence why it must be so or failed before; the user will see the result with your proposal."
}
