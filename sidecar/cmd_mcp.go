package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/sidecar/lend"
	"github.com/pillion-dev/pillion/sidecar/terminal"
	"github.com/pillion-dev/pillion/tools/mcp"
	"github.com/pillion-dev/pillion/tools/permission"
)

// mcpCommand is `pillion mcp`: alone it is an MCP server; its subcommands manage the servers that Pillion itself
// uses.
func mcpCommand() *cobra.Command {
	var cwd, approve, listen string
	var offered []string
	c := &cobra.Command{
		Use:   "mcp",
		Short: "Serve Pillion's tools to other agents over MCP, and manage the MCP servers it uses itself",
		Long: `Serve Pillion's file, search, edit and language-server tools to any MCP client.

Without --http it speaks on standard input and output: put "pillion mcp" where the client wants a command. Approval
requests go to the client (MCP elicitation). For a client without elicitation they go to the editor in which you have
this folder open with Pillion; without one they are refused, unless --approve all. Every edit is checked and applied
as if Pillion's own agent had made it.

With --http it serves streamable HTTP on a loopback address, to holders of a token: PILLION_MCP_TOKEN, or one that is
made at the start and printed on standard error.`,
		Example: `  pillion mcp --approve all
  pillion mcp --tools read,grep,'symbol_*'
  pillion mcp --http 127.0.0.1:7777
  pillion mcp add files -- npx -y @modelcontextprotocol/server-filesystem .
  pillion mcp add docs --url https://mcp.example.com/mcp
  pillion mcp list`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			how, err := parseApprove(approve)
			if err != nil {
				return err
			}
			dir, err := app.Directory(cwd)
			if err != nil {
				return err
			}
			// A bad pattern matches nothing, and the client would silently get no tools.
			for _, p := range offered {
				if _, err := path.Match(p, ""); err != nil {
					return usagef("--tools: %q is not a tool name or pattern", p)
				}
			}
			return serveMCP(c.Context(), dir, how, offered, listen)
		},
	}
	c.Flags().StringVarP(&cwd, "cwd", "C", "", "project directory (default: this one)")
	c.Flags().StringVar(&approve, "approve", "ask", approveHelp)
	c.Flags().StringSliceVar(&offered, "tools", lend.DefaultTools, "tools to serve; * is a wildcard")
	c.Flags().StringVar(&listen, "http", "", "serve HTTP on this loopback address, such as 127.0.0.1:7777 (port 0: any free one)")
	c.AddCommand(mcpList(), mcpAdd(), mcpRemove(), mcpTest(), mcpLogin(), mcpLogout())
	return c
}

// serveMCP serves until the client closes the connection or ctx ends. Standard output belongs to the protocol, so
// logs go to a file.
func serveMCP(ctx context.Context, dir string, how terminal.Approve, offered []string, listen string) error {
	// A client that closes the pipe must not end the process before calls are finished and stored.
	surviveBrokenPipes()
	p := app.NewWorkplace(version)
	log, done := p.Logger()
	defer done()
	// Each client gets a session, with approval requests of its own.
	l := lend.New(lend.Options{App: app.Options{Place: p, Log: log, Verdict: verdictMode(how)}, Dir: dir, Approve: how, Tools: offered, Version: version,
		Editor: func(ctx context.Context, program string, r permission.Request) (permission.Reply, error) {
			return askEditors(ctx, dir, program, r)
		}})
	defer l.Close()
	if listen != "" {
		return serveMCPOverHTTP(ctx, l, listen)
	}
	return l.Run(ctx, &sdk.StdioTransport{})
}

// tokenVariable holds the token of --http, so that a client's configuration need not change at every start.
const tokenVariable = "PILLION_MCP_TOKEN"

// serveMCPOverHTTP serves streamable HTTP until ctx ends. It refuses an address that is not on the loopback
// interface: whoever holds the token can read and edit the project, and the connection is not encrypted. Loopback
// alone is not protection: other users and every web page that is open can reach it, hence the token.
func serveMCPOverHTTP(ctx context.Context, l *lend.Server, listen string) error {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return usagef("--http needs an address such as 127.0.0.1:7777: %v", err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return usagef("--http serves this machine only: %s is not a loopback address; use 127.0.0.1", host)
	}
	// A token from the environment stays the same, so it may be in a client's configuration.
	token := os.Getenv(tokenVariable)
	made := token == ""
	if made {
		token = mcp.Token()
		// Other users of the machine can reach the port, and a short token can be guessed.
	} else if len(token) < 16 {
		return usagef("%s is too short; use at least 16 characters", tokenVariable)
	}
	if _, err := l.ForClient(ctx); err != nil { // report at the start what would fail for every client
		return err
	}
	// Before anything is printed: a port that is taken must not look like a running server.
	ln, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	// ReadHeaderTimeout bounds connections that are opened and left; bodies and answers may take as long as a tool
	// does.
	srv := &http.Server{Handler: l.Handler(ctx, token), ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	fmt.Fprintf(os.Stderr, "pillion: MCP on http://%s/\n", ln.Addr())
	// Printed only when it was made here: a token from the environment is known, and logs should not have it.
	if made {
		fmt.Fprintf(os.Stderr, "pillion: clients send the header Authorization: Bearer %s\n", token)
	}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
