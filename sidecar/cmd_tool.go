package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/sidecar/terminal"
	"github.com/pillion-dev/pillion/sidecar/trust"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/paths"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// toolCommand is `pillion tool`: the tools without a model, for people who write rules or tools of their own, and
// for scripts.
func toolCommand() *cobra.Command {
	c := &cobra.Command{Use: "tool", Short: "List the tools, show a schema, call a tool by hand"}
	c.AddCommand(toolList(), toolSchema(), toolCall())
	return c
}

// sessionTools makes the tools of a session that is not stored. The person's own tools replace built-in ones of
// the same name, as in a turn, so a list shows what a model is offered. What could not be loaded is reported on
// errOut. The caller must call the returned function, also after an error.
func sessionTools(ctx context.Context, dir string, errOut io.Writer) ([]tools.Tool, func(), error) {
	a := app.New(app.Options{Place: app.NewWorkplace(version), Ephemeral: true, Notices: errOut})
	s, err := a.Runtime.NewSession(ctx, agent.SessionOptions{Cwd: dir})
	if err != nil {
		return nil, a.Close, err
	}
	// The session's notices say which tools could not be loaded.
	defer s.Subscribe(0, func(e agent.Event) {
		if d, ok := agent.Value[agent.NoticeData](e); ok && e.Type == agent.EventNotice && d.Level != "info" {
			fmt.Fprintln(errOut, "pillion:", terminal.Clean(d.Text))
		}
	})()
	list, err := a.Toolbox().Tools(ctx, s.Info())
	if e := a.Plugins.Extensions(dir); err == nil && e != nil && e.Over != nil {
		// over comes first, so its tools are found before those of the same name that they replace.
		over := e.Over(ctx)
		for _, t := range list {
			if !slices.ContainsFunc(over, func(o tools.Tool) bool { return o.ID == t.ID }) {
				over = append(over, t)
			}
		}
		list = over
	}
	return list, a.Close, err
}

// toolList is `pillion tool list`. The second column is the permission that rules about the tool name.
func toolList() *cobra.Command {
	var asJSON bool
	var cwd string
	c := &cobra.Command{
		Use: "list", Short: "List the tools a model is offered", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := app.Directory(cwd)
			if err != nil {
				return err
			}
			list, done, err := sessionTools(c.Context(), dir, c.ErrOrStderr())
			defer done()
			if err != nil {
				return err
			}
			if asJSON {
				type row struct {
					ID          string `json:"id"`
					Kind        string `json:"kind"`
					Permission  string `json:"permission"`
					ReadOnly    bool   `json:"readOnly"`
					Description string `json:"description"`
				}
				var rows []row
				for _, t := range list {
					rows = append(rows, row{t.ID, string(t.Kind), t.Permission, t.ReadOnly, t.Description})
				}
				// Descriptions in full: the JSON is what a model reads.
				return writeLines(c.OutOrStdout(), rows)
			}
			return writeTable(c.OutOrStdout(), list, func(w io.Writer, t tools.Tool) {
				// Descriptions are written for a model and fill pages; the first line says what the tool does.
				first := textutil.FirstLine(t.Description)
				fmt.Fprintf(w, "%s\t%s\t%s\n", t.ID, t.Permission, first)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON lines")
	c.Flags().StringVarP(&cwd, "cwd", "C", "", "project directory (default: this one)")
	return c
}

// toolSchema is `pillion tool schema`. It accepts the same wrong spellings of a name as a model's call
// (tools.Repair).
func toolSchema() *cobra.Command {
	var cwd string
	c := &cobra.Command{
		Use: "schema NAME", Short: "Print the JSON Schema of a tool's input", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			dir, err := app.Directory(cwd)
			if err != nil {
				return err
			}
			list, done, err := sessionTools(c.Context(), dir, c.ErrOrStderr())
			defer done()
			if err != nil {
				return err
			}
			t, ok := tools.Repair(args[0], list)
			if !ok {
				near := ""
				if c := tools.Close(args[0], list); len(c) > 0 {
					near = "; did you mean " + strings.Join(c, " or ") + "?"
				}
				return fmt.Errorf("unknown tool %q%s (pillion tool list shows all)", args[0], near)
			}
			var b bytes.Buffer
			// The schema is kept as compact JSON, which is hard to read.
			if err := json.Indent(&b, t.Parameters, "", "  "); err != nil {
				return err
			}
			fmt.Fprintln(c.OutOrStdout(), b.String())
			return nil
		},
	}
	c.Flags().StringVarP(&cwd, "cwd", "C", "", "project directory (default: this one)")
	return c
}

// toolAnswer is one line of `pillion tool call`. ID is what the request had, so that a script can match answers.
type toolAnswer struct {
	ID          json.RawMessage    `json:"id,omitempty"`
	Title       string             `json:"title"`
	Output      string             `json:"output"`
	Metadata    map[string]any     `json:"metadata"`
	Attachments []tools.Attachment `json:"attachments"`
	Changes     []proposed         `json:"changes,omitempty"` // what the call proposed, applied or not
	Error       *agent.ToolFailure `json:"error,omitempty"`
}

// proposed is a change set of a call, in its last state.
type proposed struct {
	State   change.State    `json:"state"`
	Diff    string          `json:"diff"`
	Verdict *change.Verdict `json:"verdict"` // null: it was not checked
	// Evidence is what was run on a draft and what uses the changed declarations; absent for other changes.
	Evidence *change.Evidence `json:"evidence,omitempty"`
}

// proposals collects the change sets of a call from the session's events. A change set has several events; the
// last one counts, because it has the final state and verdict. mu, because events may arrive on another goroutine
// than the call's.
type proposals struct {
	mu    sync.Mutex
	order []string
	last  map[string]proposed // by change set; guarded by mu
}

func newProposals() *proposals { return &proposals{last: map[string]proposed{}} }

// event takes one event of the session; one that carries no whole change set is ignored.
func (p *proposals) event(e agent.Event) {
	d, ok := agent.Value[agent.ChangeData](e)
	if !ok || e.Type != agent.EventChange || d.Whole() == nil {
		return
	}
	set := d.Whole()
	p.mu.Lock()
	defer p.mu.Unlock()
	// A later event of a known set replaces the earlier one and keeps its place.
	if _, known := p.last[set.ID]; !known {
		p.order = append(p.order, set.ID)
	}
	p.last[set.ID] = proposed{d.State, set.Unified(func(path string) string { return path }), set.Verdict, set.Evidence}
}

// take returns those collected since the last take, in the order of their first event, and forgets them: each
// belongs to one answer.
func (p *proposals) take() (out []proposed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range p.order {
		out = append(out, p.last[id])
	}
	p.order, p.last = nil, map[string]proposed{}
	return out
}

// toolCallFlags are the flags of `pillion tool call`.
type toolCallFlags struct {
	cwd, approve, input, review string
	lines, asJSON, noLSP, noMCP bool
}

// toolCall is `pillion tool call`: a call as a model makes it, with the same repair of names and parameters,
// rules, approval and previews. A failed call is an answer with an error and exit code 1, also in JSON.
func toolCall() *cobra.Command {
	var f toolCallFlags
	c := &cobra.Command{
		Use:   "call [NAME --input JSON]",
		Short: "Call a tool with the permissions and previews of a model's call",
		Example: `  pillion tool call read --input '{"filePath":"go.mod"}'
  echo '{"tool":"grep","input":{"pattern":"TODO"}}' | pillion tool call --jsonl`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if !f.lines && len(args) != 1 {
				return usagef("name the tool: pillion tool call read --input '{\"filePath\":\"go.mod\"}'")
			}
			h, done, err := f.open(c)
			defer done()
			switch {
			case err != nil:
				return err
			case f.lines:
				return h.answerLines(c)
			}
			return h.answerOne(c, args[0], f)
		},
	}
	c.Flags().StringVar(&f.input, "input", "", "the tool's input as JSON; standard input if empty or -")
	c.Flags().StringVarP(&f.cwd, "cwd", "C", "", "project directory (default: this one)")
	c.Flags().StringVar(&f.approve, "approve", "ask", approveHelp)
	c.Flags().StringVar(&f.review, "review", "", reviewHelp)
	c.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&f.lines, "jsonl", false, `read {"id"?,"tool","input"} lines from standard input; all share one session, and with --review draft one draft, proposed in a last line`)
	c.Flags().BoolVar(&f.noLSP, "no-lsp", false, "do not start language servers")
	c.Flags().BoolVar(&f.noMCP, "no-mcp", false, "start no MCP servers")
	return c
}

// toolHand is a session whose tools are called by hand or by a script, without a model. All calls share it, and with
// --review draft one draft.
type toolHand struct {
	app     *app.App
	session *agent.Session
	dir     string
	made    *proposals
}

// open makes the session. The caller must call done, also after an error.
func (f toolCallFlags) open(c *cobra.Command) (h *toolHand, done func(), err error) {
	var ends []func()
	done = func() {
		for _, end := range slices.Backward(ends) {
			end()
		}
	}
	how, err := parseApprove(f.approve)
	if err != nil {
		return nil, done, err
	}
	dir, err := app.Directory(f.cwd)
	if err != nil {
		return nil, done, err
	}
	o := terminal.Options{Out: c.ErrOrStderr(), Cwd: dir, Approve: how, Editor: textEditor()}
	// A program reads the answers; diffs on standard error would only fill its log.
	if f.lines || f.asJSON {
		o.Out = io.Discard
	}
	// With --jsonl, standard input holds the requests, so there is no keyboard to answer with.
	if !f.lines && isTerminal(os.Stdin) && isTerminal(c.ErrOrStderr()) {
		o.Keys, o.Out, o.Color = terminal.TTY{File: os.Stdin}, c.ErrOrStderr(), os.Getenv("NO_COLOR") == ""
	}
	t := terminal.New(o)
	ends = append(ends, t.Close)
	a := app.New(app.Options{Place: app.NewWorkplace(version), Asker: t, Questions: t, Ephemeral: true, NoLSP: f.noLSP, NoMCP: f.noMCP, Notices: c.ErrOrStderr(), Verdict: verdictMode(how)})
	ends = append(ends, a.Close)
	conf, _ := a.Place.Config(dir)
	// Held settings may be the reason why a call behaves otherwise than in the editor.
	trust.Warn(c.ErrOrStderr(), conf, trust.RealPath(paths.Worktree(dir)))
	s, err := a.Runtime.NewSession(c.Context(), agent.SessionOptions{Cwd: dir})
	if err != nil {
		return nil, done, err
	}
	if f.review != "" {
		if err := s.SetReview(f.review); err != nil {
			return nil, done, usagef("--review: %w", err)
		}
	}
	a.Drafts.Begin(s)
	made := newProposals()
	stop := s.Subscribe(0, func(e agent.Event) {
		if d, ok := agent.Value[agent.NoticeData](e); ok && e.Type == agent.EventNotice {
			fmt.Fprintln(c.ErrOrStderr(), "pillion:", terminal.Clean(d.Text))
		}
		made.event(e)
	})
	ends = append(ends, func() { s.Last(); stop() }) // the last notice is delivered before the end
	return &toolHand{app: a, session: s, dir: dir, made: made}, done, nil
}

// call makes one call. id is what the answer carries.
func (h *toolHand) call(ctx context.Context, id json.RawMessage, name string, input json.RawMessage) toolAnswer {
	// A server of the person may still be starting; without the wait its tools would be unknown for the first calls.
	h.app.MCP.Await(ctx, h.dir, name)
	d, err := h.session.Tool(ctx, name, input)
	x := answer(id, d, err)
	x.Changes = h.made.take()
	return x
}

// land proposes the draft of all calls; nil where there is nothing to propose. No call is open any more, so its answer has
// no id.
func (h *toolHand) land(ctx context.Context) *toolAnswer {
	_, d, any := h.app.Drafts.Land(ctx, h.session, 0, false, false)
	if !any {
		return nil
	}
	x := answer(nil, d, nil)
	x.Changes = h.made.take()
	return &x
}

// answerLines answers the requests of --jsonl.
func (h *toolHand) answerLines(c *cobra.Command) error {
	err := jsonl(c, func(line []byte) any {
		var q struct {
			ID    json.RawMessage `json:"id"`
			Tool  string          `json:"tool"`
			Input json.RawMessage `json:"input"`
		}
		if err := json.Unmarshal(line, &q); err != nil {
			return answer(nil, agent.ToolData{}, &tools.Error{Kind: "invalid", Message: "the line is not a JSON object with tool and input: " + jsonFault(err)})
		}
		// A line with an error is answered like the others, and the next line is read.
		return h.call(c.Context(), q.ID, q.Tool, q.Input)
	})
	// The draft is proposed also after a failed line: what the calls before it changed would be lost otherwise.
	if x := h.land(c.Context()); x != nil {
		err = errors.Join(err, writeAnswer(c, *x))
	}
	return err
}

// answerOne answers one call on the command line.
func (h *toolHand) answerOne(c *cobra.Command, name string, f toolCallFlags) error {
	input := f.input
	// Without --input the call is read from a pipe, so that a large input needs no quoting.
	if input == "" || input == "-" {
		b, err := io.ReadAll(io.LimitReader(c.InOrStdin(), maxLine))
		if err != nil {
			return err
		}
		input = string(b)
	}
	x := h.call(c.Context(), nil, name, json.RawMessage(input))
	if landed := h.land(c.Context()); landed != nil {
		// One call: the changes of its draft belong to its own answer.
		x.Changes = append(x.Changes, landed.Changes...)
		x.Output += "\n\n" + landed.Output
		if x.Error == nil {
			x.Error = landed.Error
		}
	}
	if f.asJSON {
		if err := writeAnswer(c, x); err != nil {
			return err
		}
	} else if x.Error == nil || x.Output != "" {
		fmt.Fprintln(c.OutOrStdout(), outputFor(x.Output, isTerminal(c.OutOrStdout())))
	}
	if x.Error == nil {
		return nil
	}
	if !f.asJSON {
		fmt.Fprintln(c.ErrOrStderr(), "pillion:", terminal.Clean(x.Error.Message))
	}
	return exitCode(exitError)
}

// writeAnswer writes an answer as one line. < > & stay as they are, as in the lines of --jsonl: programs read both.
func writeAnswer(c *cobra.Command, x toolAnswer) error {
	e := json.NewEncoder(c.OutOrStdout())
	e.SetEscapeHTML(false)
	return e.Encode(x)
}

// answer is the line of a call that has ended. Metadata and attachments are never null: scripts index them
// unchecked. err says that there was no call; a call that failed carries its error in d.
func answer(id json.RawMessage, d agent.ToolData, err error) toolAnswer {
	x := toolAnswer{ID: id, Title: d.Title, Output: d.Output, Metadata: d.Metadata, Attachments: d.Attachments, Error: d.Failure(err)}
	if x.Metadata == nil {
		x.Metadata = map[string]any{}
	}
	if x.Attachments == nil {
		x.Attachments = []tools.Attachment{}
	}
	return x
}

// outputFor is a tool's output as it may be printed. A terminal obeys control sequences that a file or a command
// contains; a program that reads the output wants it unchanged.
func outputFor(output string, tty bool) string {
	if tty {
		return terminal.Clean(output)
	}
	return output
}
