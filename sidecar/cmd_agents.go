package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/sidecar/config"
	"github.com/pillion-dev/pillion/sidecar/external"
	"github.com/pillion-dev/pillion/sidecar/terminal"
	"github.com/pillion-dev/pillion/tools/guard"
)

// agentsCommand is `pillion agents`: agents of other makers as models of Pillion.
func agentsCommand() *cobra.Command {
	c := &cobra.Command{Use: "agents", Short: "Use Claude Code, Codex, Gemini, OpenCode or another agent under Pillion's review",
		Long: "Agents of other makers that speak the Agent Client Protocol. One that is installed is the model acp/NAME:\n" +
			"choose it with --model, /model or the editor's model picker. It signs in with its maker's own program."}
	c.AddCommand(agentsList(), agentsAdd(), agentsTest())
	return c
}

// listedAgent is a row of `pillion agents list`.
type listedAgent struct {
	ID      string   `json:"id"`
	Name    string   `json:"name"`
	Model   string   `json:"model,omitempty"` // empty: it is not installed
	Command []string `json:"command,omitempty"`
	Missing bool     `json:"missing,omitempty"` // the command's program is not there, or not executable
	Edits   string   `json:"edits,omitempty"`
	Add     string   `json:"add,omitempty"` // what makes it usable
}

func agentsList() *cobra.Command {
	var asJSON bool
	var cwd string
	c := &cobra.Command{Use: "list", Short: "List the agents that can be used, and known ones that are not installed", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := app.Directory(cwd)
			if err != nil {
				return err
			}
			place := app.NewWorkplace(version)
			conf, problems := place.Config(dir)
			app.Warn(c.ErrOrStderr(), problems)
			var rows []listedAgent
			seen := map[string]bool{}
			for _, a := range app.ExternalAgentsOf(conf, place.Home) {
				edits := "draft"
				if a.Asks {
					edits = "client"
				}
				seen[a.ID] = true
				if k, ok := external.Running(a.Command); ok { // a row of another name, such as one of the registry
					seen[k.ID] = true
				}
				_, err := exec.LookPath(a.Command[0])
				rows = append(rows, listedAgent{ID: a.ID, Name: a.Name, Model: a.Model().String(), Command: a.Command, Missing: err != nil, Edits: edits})
			}
			for _, k := range external.KnownAgents() {
				if !seen[k.ID] && !k.Unlisted {
					rows = append(rows, listedAgent{ID: k.ID, Name: k.Name, Add: "pillion agents add " + k.ID})
				}
			}
			if asJSON {
				return writeLines(c.OutOrStdout(), rows)
			}
			return writeTable(c.OutOrStdout(), rows, func(w io.Writer, r listedAgent) {
				if r.Model == "" {
					fmt.Fprintf(w, "-\t%s\tnot installed; run: %s\n", r.Name, r.Add)
					return
				}
				missing := ""
				if r.Missing {
					missing = " (cannot be started; pillion agents test " + r.ID + " says why)"
				}
				fmt.Fprintf(w, "%s\t%s\t%s%s\n", r.Model, r.Name, strings.Join(r.Command, " "), missing)
			})
		}}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON lines")
	c.Flags().StringVarP(&cwd, "cwd", "C", "", "project directory (default: this one)")
	return c
}

func agentsAdd() *cobra.Command {
	var registry, approve string
	var dry bool
	c := &cobra.Command{Use: "add NAME [-- COMMAND ARGS...]", Short: "Add an agent to your settings", Args: cobra.MinimumNArgs(1),
		Long: "Adds a row to the agents of your own pillion.jsonc, which you review first. COMMAND is what speaks the Agent Client Protocol on\n" +
			"standard input and output; without it the row of a known agent, or of a registry in the format of the ACP registry, runs it with npx or uvx.",
		Example: "  pillion agents add claude\n  pillion agents add mine -- my-agent --acp\n  pillion agents add goose --registry registry.json",
		RunE: func(c *cobra.Command, args []string) error {
			if !agentName().MatchString(args[0]) {
				return usagef("%q is not a name for an agent: use letters, digits, dots, - and _; it becomes the model acp/NAME", args[0])
			}
			if n := c.ArgsLenAtDash(); n > 1 {
				return usagef("the agent has one name, %q, and its command follows after --", args[0])
			}
			row := config.ExternalAgent{ACP: args[1:]}
			if len(row.ACP) == 0 {
				var err error
				if row, err = agentRow(c.Context(), args[0], registry); err != nil {
					return usagef("%w", err)
				}
			}
			place := app.NewWorkplace(version)
			added, err := config.AddedAgent(place.User, args[0], row)
			if err != nil {
				return err
			}
			if dry {
				fmt.Fprint(c.OutOrStdout(), added.Text)
				return nil
			}
			if added.Text == added.Old {
				return fmt.Errorf("%s has a row for %s already; change it there, or add the agent under another name", added.Path, args[0])
			}
			if err := proposeSettings(c, added, approve); err != nil {
				return err
			}
			if _, err := exec.LookPath(row.ACP[0]); err != nil {
				fmt.Fprintf(c.ErrOrStderr(), "%s was not found on PATH: install it before you choose this agent\n", row.ACP[0])
			}
			fmt.Fprintf(c.OutOrStdout(), "choose it with --model acp/%s, or in your editor's model picker; pillion agents test %[1]s tries it\n", args[0])
			return nil
		}}
	c.Flags().StringVar(&registry, "registry", "", "file or https address of an agent registry in the ACP registry's format")
	c.Flags().BoolVar(&dry, "print", false, "print the file instead of proposing it")
	c.Flags().StringVar(&approve, "approve", "ask", approveHelp)
	return c
}

// agentName matches the names of agents that can be added. Each is a part of a model's name and of a setting's.
var agentName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`) })

// proposeSettings proposes a new text of a file of settings through the same review as an edit of a model.
func proposeSettings(c *cobra.Command, found config.Imported, approve string) error {
	if how, err := parseApprove(approve); err == nil && how != terminal.All && how != terminal.None && !(isTerminal(os.Stdin) && isTerminal(c.ErrOrStderr())) {
		return fmt.Errorf("nothing was written: %s changes only after your review, and there is no terminal to show the change in; --print prints the new file, --approve all writes it", found.Path)
	}
	// The folder must exist for the session that proposes the file.
	folder := filepath.Dir(found.Path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	tool, input := "write", map[string]string{"filePath": found.Path, "content": found.Text}
	if found.Old != "" { // an edit of exactly what was read: a file that changed meanwhile is not overwritten
		tool, input = "edit", map[string]string{"filePath": found.Path, "oldString": found.Old, "newString": found.Text}
	}
	raw, err := json.Marshal(input)
	if err != nil {
		return err
	}
	// The write is a call of pillion tool call, so the person reviews it like one of a model.
	call := toolCall()
	call.SetArgs([]string{tool, "--input", string(raw), "--approve", approve, "--no-lsp", "--no-mcp", "--cwd", folder})
	call.SetOut(c.OutOrStdout())
	call.SetErr(c.ErrOrStderr())
	call.SilenceUsage, call.SilenceErrors = true, true
	return call.ExecuteContext(c.Context())
}

// agentRow is the row of a known agent, or of one in a registry.
func agentRow(ctx context.Context, id, registry string) (config.ExternalAgent, error) {
	if registry == "" {
		k, ok := external.Find(id)
		if !ok {
			return config.ExternalAgent{}, fmt.Errorf("%s is not an agent that Pillion knows; give its command after --, or a --registry", id)
		}
		if argv := k.Installed(); argv != nil {
			return config.ExternalAgent{ACP: argv}, nil
		}
		return config.ExternalAgent{ACP: k.Npx()}, nil
	}
	b, err := readRegistry(ctx, registry)
	if err != nil {
		return config.ExternalAgent{}, fmt.Errorf("the registry %s cannot be read: %w", registry, err)
	}
	entry, err := external.RegistryEntry(b, id)
	if err != nil {
		return config.ExternalAgent{}, err
	}
	return config.ExternalAgent{ACP: entry.Command, Name: entry.Name, Env: entry.Env}, nil
}

// maxRegistry is the size of a registry that is read, in bytes; the public one has a few hundred kilobytes.
const maxRegistry = 8 << 20

// readRegistry reads a registry from a file or an https address.
func readRegistry(ctx context.Context, at string) ([]byte, error) {
	if !strings.HasPrefix(at, "https://") {
		return os.ReadFile(at)
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, err
	}
	// The person typed the address.
	resp, err := guard.Client(guard.Reason{Who: guard.Web}, guard.Network{}).Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, errors.New(resp.Status)
	}
	return io.ReadAll(io.LimitReader(resp.Body, maxRegistry))
}

func agentsTest() *cobra.Command {
	var cwd string
	var trusted bool
	c := &cobra.Command{Use: "test NAME", Short: "Start an agent, open a session in it, and say what it offers", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			dir, err := app.Directory(cwd)
			if err != nil {
				return err
			}
			place := app.NewWorkplace(version)
			if trusted {
				place.TrustFor(dir, true)
			}
			a := app.New(app.Options{Place: place, NoLSP: true, Ephemeral: true})
			defer a.Close()
			s, err := a.Runtime.NewSession(c.Context(), agent.SessionOptions{Cwd: dir, Model: external.ProviderID + "/" + args[0]})
			if err != nil {
				return err
			}
			// It may take minutes: npx may have to download the agent first.
			fmt.Fprintf(c.ErrOrStderr(), "starting %s …\n", args[0])
			said, err := a.External.Try(c.Context(), s.Info(), args[0])
			if err != nil {
				fmt.Fprintln(c.ErrOrStderr(), err)
				return exitCode(exitError)
			}
			fmt.Fprint(c.OutOrStdout(), said)
			return nil
		}}
	c.Flags().StringVarP(&cwd, "cwd", "C", "", "project directory (default: this one)")
	c.Flags().BoolVar(&trusted, "trust", false, "trust this folder's own configuration for this run (pillion trust remembers it)")
	return c
}
