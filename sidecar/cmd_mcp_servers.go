package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tailscale/hujson"

	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/sidecar/config"
	"github.com/pillion-dev/pillion/tools/mcp"
	"github.com/pillion-dev/pillion/tools/paths"
	"github.com/pillion-dev/pillion/tools/whole"
)

// mcpWait is how long list and test wait for servers to start: npx may have to download them first.
const mcpWait = 30 * time.Second

// mcpSetOf makes the configured servers of a directory, or only the one that is named, without starting them. It
// fails for a name that is not configured. The caller closes both. The set is one of its own: no session uses it,
// so closing it ends no server in use.
func mcpSetOf(cwd string, names ...string) (*app.App, *mcp.Set, error) {
	dir, err := app.Directory(cwd)
	if err != nil {
		return nil, nil, err
	}
	a := app.New(app.Options{Place: app.NewWorkplace(version), Ephemeral: true, NoLSP: true})
	c := a.ConfigOf(dir)
	servers := app.ConfiguredMCP(c)
	for _, name := range names {
		i := -1
		var known []string
		for j, s := range servers {
			known = append(known, s.Name)
			if s.Name == name {
				i = j
			}
		}
		if i < 0 {
			a.Close()
			return nil, nil, fmt.Errorf("no MCP server %q is configured and enabled; configured are: %s", name, strings.Join(known, ", "))
		}
		servers = servers[i : i+1]
	}
	return a, a.MCP.NewSet(dir, c, servers), nil
}

// withServers makes c a command about the configured servers, or about those that its arguments name. They are
// closed when run returns.
func withServers(c *cobra.Command, run func(c *cobra.Command, set *mcp.Set, names []string) error) *cobra.Command {
	var cwd string
	c.RunE = func(c *cobra.Command, names []string) error {
		a, set, err := mcpSetOf(cwd, names...)
		if err != nil {
			return err
		}
		defer a.Close()
		// Not c's context: after SIGTERM it has ended, and the servers still have to be stopped.
		defer set.Close(context.Background())
		return run(c, set, names)
	}
	c.Flags().StringVarP(&cwd, "cwd", "C", "", "project directory (default: this one)")
	return c
}

// mcpList is `pillion mcp list`. It starts the servers, because a configuration says nothing about whether they work.
func mcpList() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{Use: "list", Short: "Start the configured MCP servers and show their state", Args: cobra.NoArgs}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON lines")
	return withServers(c, func(c *cobra.Command, set *mcp.Set, _ []string) error {
		set.Start()
		// Ready returns early when all servers have come up or failed.
		set.Ready(c.Context(), mcpWait)
		all := set.Statuses()
		if asJSON {
			return writeLines(c.OutOrStdout(), all)
		}
		if len(all) == 0 {
			fmt.Fprintln(c.OutOrStdout(), "No MCP server is configured. Add one: pillion mcp add NAME -- COMMAND …, or --url ADDRESS")
			return nil
		}
		return writeTable(c.OutOrStdout(), all, func(w io.Writer, s mcp.Status) {
			what := fmt.Sprintf("%d tools, %d prompts", s.Tools, s.Prompts)
			if s.Resources {
				what += ", resources"
			}
			// The reason takes the place of the counts, which are 0 for a server that is not ready.
			if s.State != mcp.Ready {
				what = s.Reason
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", s.Name, s.State, s.Title, what)
		})
	})
}

// mcpTest is `pillion mcp test`. It fails where the server did not become ready, with the reason that the server
// or the start gave.
func mcpTest() *cobra.Command {
	c := &cobra.Command{Use: "test NAME", Short: "Start one MCP server and show what it offers, or why it fails", Args: cobra.ExactArgs(1)}
	return withServers(c, func(c *cobra.Command, set *mcp.Set, _ []string) error {
		began := time.Now()
		set.Start()
		set.Ready(c.Context(), mcpWait)
		// withServers has made the set of this name alone, so there is one status.
		s, out := set.Statuses()[0], c.OutOrStdout()
		if s.State != mcp.Ready {
			// The error of a command goes to standard error with exit code 1, so scripts can rely on it.
			return fmt.Errorf("%s %s: %s", s.Name, s.State, s.Reason)
		}
		fmt.Fprintf(out, "%s (%s) started in %d ms\n", s.Name, s.Title, time.Since(began).Milliseconds())
		for _, t := range set.Offered() {
			// Descriptions of tools are texts for a model, often with many lines.
			first, _, _ := strings.Cut(t.Description, "\n")
			fmt.Fprintf(out, "  tool    %s  %s\n", t.ID, first)
		}
		for _, p := range set.Prompts() {
			fmt.Fprintf(out, "  prompt  /%s  %s\n", p.Name, p.Description)
		}
		for _, r := range set.Resources(c.Context(), s.Name) {
			fmt.Fprintf(out, "  resource  %s  %s\n", r.URI, r.Name)
		}
		return nil
	})
}

// mcpLogin is `pillion mcp login`. The address is printed as well: over SSH the browser opens on the wrong machine,
// or not at all.
func mcpLogin() *cobra.Command {
	c := &cobra.Command{Use: "login NAME", Short: "Sign in to a remote MCP server with the browser", Args: cobra.ExactArgs(1)}
	return withServers(c, func(c *cobra.Command, set *mcp.Set, names []string) error {
		err := set.Login(c.Context(), names[0], func(address string) error {
			fmt.Fprintf(c.ErrOrStderr(), "Open this address to sign in:\n\n  %s\n\n", address)
			return app.OpenBrowser(address)
		})
		if err == nil {
			fmt.Fprintf(c.OutOrStdout(), "Signed in to %s.\n", names[0])
		}
		return err
	})
}

// mcpLogout is `pillion mcp logout`. It removes what was stored for the server and is not an error without a sign-in,
// so scripts may call it at any time.
func mcpLogout() *cobra.Command {
	c := &cobra.Command{Use: "logout NAME", Short: "Sign out of a remote MCP server", Args: cobra.ExactArgs(1)}
	return withServers(c, func(c *cobra.Command, set *mcp.Set, names []string) error {
		there, err := set.Logout(names[0])
		if err == nil && !there {
			fmt.Fprintf(c.OutOrStdout(), "You were not signed in to %s.\n", names[0])
		} else if err == nil {
			fmt.Fprintf(c.OutOrStdout(), "Signed out of %s.\n", names[0])
		}
		return err
	})
}

// mcpAdd is `pillion mcp add`. It edits the configuration and starts nothing: a command is run when it is tested
// or a session needs it, under the rules of trust.
func mcpAdd() *cobra.Command {
	var address string
	var env, header []string
	var project, sse bool
	c := &cobra.Command{
		Use:   "add NAME [--url ADDRESS | -- COMMAND …]",
		Short: "Add an MCP server to your configuration",
		Example: `  pillion mcp add files -- npx -y @modelcontextprotocol/server-filesystem .
  pillion mcp add docs --url https://mcp.example.com/mcp --header 'X-Key={env:DOCS_KEY}'`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			name, command := args[0], args[1:]
			// One of the two, not both: a server is a program or an address.
			if (len(command) == 0) == (address == "") {
				return usagef("name the server's address with --url ADDRESS, or its command after --")
			}
			s := config.MCPServer{Type: "local", Command: command, URL: address, SSE: sse}
			if address != "" {
				s.Type, s.Command = "remote", nil
			}
			var err error
			// Values may be {env:NAME}: the file then holds no secret and can be shared.
			if s.Environment, err = pairs("--env", env); err != nil {
				return err
			}
			if s.Headers, err = pairs("--header", header); err != nil {
				return err
			}
			file, err := mcpConfigFile(project)
			if err != nil {
				return err
			}
			if err := editConfig(file, []string{"mcp", name}, s); err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "Added %s to %s. Try it: pillion mcp test %s\n", name, file, name)
			return nil
		},
	}
	c.Flags().StringVar(&address, "url", "", "address of a remote server")
	c.Flags().BoolVar(&sse, "sse", false, "the remote server speaks the older SSE transport")
	c.Flags().StringArrayVar(&env, "env", nil, "NAME=VALUE for the command's environment; VALUE may be {env:OTHER}")
	c.Flags().StringArrayVar(&header, "header", nil, "NAME=VALUE sent to a remote server; VALUE may hold {env:OTHER}")
	c.Flags().BoolVar(&project, "project", false, "write to the project's pillion.jsonc instead of your own")
	return c
}

// mcpRemove is `pillion mcp remove`. It fails for a server that the file does not have, which may be in another
// file.
func mcpRemove() *cobra.Command {
	var project bool
	c := &cobra.Command{
		Use: "remove NAME", Short: "Remove an MCP server from your configuration", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			file, err := mcpConfigFile(project)
			if err != nil {
				return err
			}
			if err := editConfig(file, []string{"mcp", args[0]}, nil); err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "Removed %s from %s.\n", args[0], file)
			return nil
		},
	}
	c.Flags().BoolVar(&project, "project", false, "in the project's pillion.jsonc instead of your own")
	return c
}

// pairs reads NAME=VALUE flags; nil when there are none, so that the key is left out of the configuration.
func pairs(flag string, list []string) (map[string]string, error) {
	var out map[string]string
	for _, p := range list {
		k, v, ok := strings.Cut(p, "=")
		if !ok || k == "" {
			return nil, usagef("%s needs NAME=VALUE, not %q", flag, p)
		}
		if out == nil {
			out = map[string]string{}
		}
		out[k] = v
	}
	return out, nil
}

// mcpConfigFile is the file that servers are written to: the person's configuration, or that of the project's
// worktree. It need not exist. An existing file is preferred, so that a second one does not hide it.
func mcpConfigFile(project bool) (string, error) {
	dir := app.NewWorkplace(version).User
	if project {
		cwd, err := app.Directory("")
		if err != nil {
			return "", err
		}
		dir = paths.Worktree(cwd)
	}
	for _, name := range []string{"pillion.jsonc", "pillion.json"} {
		file := filepath.Join(dir, name)
		if _, err := os.Stat(file); err == nil {
			return file, nil
		}
	}
	return filepath.Join(dir, "pillion.jsonc"), nil
}

// editConfig sets the value at a path of a JSONC file, or removes it when value is nil. The rest of the file stays as
// it is written, comments included; missing objects on the path are created. A new file is readable by its owner
// only, since headers may hold secrets.
func editConfig(file string, at []string, value any) error {
	src, err := os.ReadFile(file)
	// A missing file is created with the server in it.
	if os.IsNotExist(err) {
		src, err = []byte("{}\n"), nil
	}
	if err != nil {
		return err
	}
	v, err := hujson.Parse(src)
	if err != nil {
		return fmt.Errorf("%s cannot be read as JSON with comments: %w; fix it first (pillion config check)", file, err)
	}
	// Names of servers may contain "/" and "~", which RFC 6901 escapes.
	pointer := func(keys []string) string { // RFC 6901
		p := ""
		for _, k := range keys {
			p += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(k)
		}
		return p
	}
	type op struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value,omitempty"`
	}
	// A JSON Patch (RFC 6902) is what hujson can apply without losing comments; "add" replaces a value that exists.
	var ops []op
	// An "add" below an object that does not exist fails, so each missing one is added first.
	for i := 1; i < len(at); i++ {
		if v.Find(pointer(at[:i])) == nil {
			ops = append(ops, op{"add", pointer(at[:i]), map[string]any{}})
		}
	}
	switch {
	case value != nil:
		ops = append(ops, op{"add", pointer(at), value})
	case v.Find(pointer(at)) == nil:
		return fmt.Errorf("%s has no %s", file, strings.Join(at, "."))
	default:
		ops = []op{{Op: "remove", Path: pointer(at)}}
	}
	patch, err := json.Marshal(ops)
	if err != nil {
		return err
	}
	if err := v.Patch(patch); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	// Format only lays out; comments stay.
	v.Format()
	// Without it, the write would replace the link by a file, and the original would stay as it was.
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real // a linked configuration (dotfiles) stays a link
	}
	// Headers and environment may hold secrets; an existing file keeps the mode that its owner chose.
	mode := os.FileMode(0o600)
	if info, err := os.Stat(file); err == nil {
		mode = info.Mode().Perm()
	}
	return whole.Write(file, v.Pack(), mode)
}
