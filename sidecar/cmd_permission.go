package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/sidecar/terminal"
	"github.com/pillion-dev/pillion/tools/builtin"
	"github.com/pillion-dev/pillion/tools/paths"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/shell/visible"
)

// permissionCommand is `pillion permission`: why something is asked about or denied, and what "always" has
// allowed.
func permissionCommand() *cobra.Command {
	c := &cobra.Command{Use: "permission", Short: "Explain, check, list and revoke permissions"}
	c.AddCommand(permissionExplain(), permissionCheck(), permissionList(), permissionRevoke())
	return c
}

// permissionExplain is `pillion permission explain`: the analysis and the gate of a real call, without running
// anything. --jsonl answers many commands with one start, for tests and for other programs.
func permissionExplain() *cobra.Command {
	var cwd, command, as string
	var lines, asJSON bool
	c := &cobra.Command{
		Use: "explain --command '…'", Short: "Show what a shell command would run, read and write, and what needs approval", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := app.Directory(cwd)
			if err != nil {
				return err
			}
			// Language servers know nothing about commands, and starting them would cost more than the answer.
			a := app.New(app.Options{Place: app.NewWorkplace(version), NoLSP: true})
			defer a.Close()
			rules, err := a.AgentRules(dir, as)
			if err != nil {
				return err
			}
			env := a.Sessions.Env(agent.SessionInfo{Cwd: dir})
			// The gate of a session, with the same rules and grants, but without an Asker: Explain only evaluates.
			gate := permission.NewGate(permission.GateOptions{Rules: func() permission.Ruleset { return rules }, Grants: a.Grants, Project: paths.Worktree(dir)})
			explain := func(command, workdir string) builtin.Explanation {
				return builtin.Explain(c.Context(), env, command, workdir, gate)
			}
			// One start for many questions: the start takes longer than an analysis.
			if lines {
				return jsonl(c, func(line []byte) any {
					var q struct {
						ID json.RawMessage `json:"id"`
						// A pointer tells a missing command from an empty one, which is a valid question.
						Command *string `json:"command"`
						Workdir string  `json:"workdir"`
					}
					if err := json.Unmarshal(line, &q); err != nil {
						// The id is unknown when the line is not JSON, so the answer has none.
						return badLine(nil, "invalid", "the line is not a JSON object with a command: %s", jsonFault(err))
					}
					if q.Command == nil {
						return badLine(q.ID, "invalid", "command is missing")
					}
					return struct {
						ID json.RawMessage `json:"id,omitempty"`
						builtin.Explanation
					}{q.ID, explain(*q.Command, q.Workdir)}
				})
			}
			if command == "" {
				return usagef("say which command: pillion permission explain --command 'rm -rf build'")
			}
			x := explain(command, "")
			if asJSON {
				e := json.NewEncoder(c.OutOrStdout())
				// Commands are full of < > &, which Encode would write as \u003c and so on.
				e.SetEscapeHTML(false)
				return e.Encode(x)
			}
			printExplanation(c.OutOrStdout(), x)
			return nil
		},
	}
	c.Flags().StringVar(&command, "command", "", "the shell command")
	c.Flags().StringVar(&as, "agent", "", "judge by this agent's rules (default: the agent of new sessions)")
	c.Flags().StringVarP(&cwd, "cwd", "C", "", "project directory (default: this one)")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&lines, "jsonl", false, `read {"id"?,"command","workdir"?} lines from standard input`)
	return c
}

// verbs are the actions as the explanation prints them, before the name of the permission. Every Action is a key.
var verbs = map[permission.Action]string{permission.Allow: "allows", permission.Ask: "asks", permission.Deny: "denies"}

// printExplanation prints for a person what the JSON says. Every text of the command passes visible.Text and
// terminal.Clean: a command must not be able to hide a part of itself here.
func printExplanation(w io.Writer, x builtin.Explanation) {
	fmt.Fprintln(w, strings.TrimSuffix(x.Decision+": "+terminal.Clean(x.Why), ": "))
	// Programs and commands are two lists of the analysis; the text of the call connects them.
	judged := map[string]builtin.ExplainedProgram{}
	for _, p := range x.Programs {
		judged[p.Text] = p
	}
	for _, c := range x.Commands {
		fmt.Fprintln(w, "  runs      ", terminal.Clean(visible.Text(c)))
		p, ok := judged[c]
		switch {
		case !ok: // the analysis has rewritten it, e.g. by expanding a variable
		case p.Record == "":
			fmt.Fprintf(w, "  %-10s unknown program: every argument that looks like a path is treated as written\n", "")
		default:
			// The map yields "" for a program whose record says nothing of its effect.
			fmt.Fprintf(w, "  %-10s described by %s%s\n", "", p.Record, map[bool]string{true: "; it " + p.Effect}[p.Effect != ""])
		}
	}
	for _, p := range x.ExternalPaths {
		fmt.Fprintf(w, "  %-10s %s (outside the project)\n", p.Access+"s", terminal.Clean(p.Path))
	}
	for _, p := range x.ProtectedPaths {
		fmt.Fprintln(w, "  protected ", terminal.Clean(p))
	}
	// Said in full, because "always" cannot help here and the person may wonder why.
	if x.Opaque {
		fmt.Fprintln(w, "  opaque     the analysis cannot tell what it runs: the whole command needs approval, and no rule allows it")
	}
	if x.Sandbox {
		fmt.Fprintln(w, "  sandbox    it runs in the sandbox")
	}
	if x.Contained {
		fmt.Fprintln(w, "  contained  it can only read the project and the system: no writes, no network, no keys")
	}
	for _, r := range x.Requests {
		// visible.Text shows characters that a terminal hides or reorders; Clean removes control sequences.
		fmt.Fprintf(w, "  %-10s %s: %s\n", verbs[r.Action], r.Permission, terminal.Clean(visible.Text(strings.Join(r.Patterns, " · "))))
		fmt.Fprintf(w, "  %-10s %s\n", "", terminal.Clean(visible.Text(r.Why)))
		// What "always" would remember is shown before it is answered: it may cover more than this command.
		if len(r.Always) > 0 && r.Action == permission.Ask {
			fmt.Fprintf(w, "  %-10s \"always\" would remember %s\n", "", terminal.Clean(strings.Join(r.Always, " · ")))
		}
	}
}

// permissionCheck is `pillion permission check`: one rule look-up, without the analysis of a command and without
// grants. config in a JSON line replaces the rules of the directory, for programs that test rules before they
// write them.
func permissionCheck() *cobra.Command {
	var cwd, name, pattern string
	var lines, asJSON bool
	c := &cobra.Command{
		Use: "check", Short: "Show what the rules decide for a permission and a pattern, and by which rule", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := app.Directory(cwd)
			if err != nil {
				return err
			}
			p := app.NewWorkplace(version)
			if lines {
				return jsonl(c, func(line []byte) any {
					var q struct {
						ID         json.RawMessage `json:"id"`
						Config     json.RawMessage `json:"config"`
						Permission string          `json:"permission"`
						Pattern    string          `json:"pattern"`
					}
					if err := json.Unmarshal(line, &q); err != nil {
						return badLine(nil, "invalid", "the line is not a JSON object: %s", jsonFault(err))
					}
					// Read for each line: a long-running caller sees changes of the configuration.
					rules := p.Rules(dir)
					// null is what an encoder writes for an absent value.
					if len(q.Config) > 0 && string(q.Config) != "null" {
						var err error
						if rules, err = permission.Parse(q.Config, nil); err != nil {
							return badLine(q.ID, "invalid", "config: %v", err)
						}
					}
					return struct {
						ID json.RawMessage `json:"id,omitempty"`
						permission.Checked
					}{q.ID, permission.Check(rules, q.Permission, q.Pattern)}
				})
			}
			if name == "" {
				return usagef("say which permission: pillion permission check --permission edit --pattern src/a.go")
			}
			x := permission.Check(p.Rules(dir), name, pattern)
			if asJSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(x)
			}
			fmt.Fprintf(c.OutOrStdout(), "%s", x.Action)
			if x.Rule != nil {
				fmt.Fprintf(c.OutOrStdout(), "  by %s %q = %s from %s", x.Rule.Permission, x.Rule.Pattern, x.Rule.Action, x.Rule.Origin)
			}
			fmt.Fprintln(c.OutOrStdout())
			return nil
		},
	}
	c.Flags().StringVar(&name, "permission", "", "edit, bash, read …")
	c.Flags().StringVar(&pattern, "pattern", "*", "path, command or address")
	c.Flags().StringVarP(&cwd, "cwd", "C", "", "project directory (default: this one)")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&lines, "jsonl", false, `read {"id"?,"config"?,"permission","pattern"} lines from standard input`)
	return c
}
