package main

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/sidecar/terminal"
)

func mcpCommand() *cobra.Command {
	var cwd, approve, listen string
	var offered []string
	c := &cobra.Command{
		Use:   "mcp",
		Short: "Lend Pillion's tools to other agents over MCP, and manage the MCP servers it uses itself",
		Long: `Serve Pillion's file, search, edit and language-server tools to any MCP client.

Without --http it speaks on standard input and output: put "pillion mcp" where the client wants a command. What would
be asked is asked through the client (MCP's elicitation); a client that cannot ask gets a refusal that says so, unless
--approve all. Every edit is checked and applied as if Pillion's own agent had made it.

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
			for _, p := range offered {
				if _, err := path.Match(p, ""); err != nil {
					return usagef("--tools: %q is no name or pattern", p)
				}
			}
			return serveMCP(c.Context(), dir, how, offered, listen)
		},
	}
	c.Flags().StringVarP(&cwd, "cwd", "C", "", "project directory (default: this one)")
	c.Flags().StringVar(&approve, "approve", "ask", approveHelp)
	c.Flags().StringSliceVar(&offered, "tools", mcpOffered, "tools to lend; * is a wildcard")
	c.Flags().StringVar(&listen, "http", "", "serve HTTP on this loopback address, such as 127.0.0.1:7777 (port 0: any free one)")
	c.AddCommand(mcpList(), mcpAdd(), mcpRemove(), mcpTest(), mcpLogin(), mcpLogout())
	return c
}

// serveMCP serves until the client goes away or the context ends.
func serveMCP(ctx context.Context, dir string, how terminal.Approve, offered []string, listen string) error {
	survivePipes()
	p := app.NewWorkplace(version)
	log, done := p.Logger()
	defer done()
	l := &mcpLender{dir: dir, approve: how, tools: offered, log: log, clients: map[string]*sdk.ServerSession{}}
	l.app = app.New(app.Options{Place: p, Asker: l, Ephemeral: true, Log: log, Verdict: verdictMode(how)})
	defer l.app.Close()
	if listen != "" {
		return l.serveHTTP(ctx, listen)
	}
	s, err := l.server(ctx)
	if err != nil {
		return err
	}
	err = s.Run(ctx, &sdk.StdioTransport{})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

const (
	tokenVariable = "PILLION_MCP_TOKEN"
	clientIdle    = 2 * time.Hour // a client that says nothing for so long has gone
	httpBody      = 16 << 20      // bytes of one request
)

func (l *mcpLender) serveHTTP(ctx context.Context, listen string) error {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return usagef("--http wants an address such as 127.0.0.1:7777: %v", err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return usagef("--http serves this machine only: %s is no loopback address; use 127.0.0.1", host)
	}
	token := os.Getenv(tokenVariable)
	made := token == ""
	if made {
		token = rand.Text() + rand.Text()
	} else if len(token) < 16 {
		return usagef("%s is too short to keep anybody out: use 16 characters or more", tokenVariable)
	}
	if _, err := l.server(ctx); err != nil { // say now what would fail for every client
		return err
	}
	ln, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server {
		s, err := l.server(ctx)
		if err != nil {
			l.log.Error("mcp", "err", err)
			return nil
		}
		return s
	}, &sdk.StreamableHTTPOptions{Logger: l.log, SessionTimeout: clientIdle, MaxRequestBodyBytes: httpBody})
	srv := &http.Server{Handler: http.NewCrossOriginProtection().Handler(bearer(token, handler)), ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	fmt.Fprintf(os.Stderr, "pillion: MCP on http://%s/\n", ln.Addr())
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

// bearer lets through who has the token.
func bearer(token string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok || subtle.ConstantTimeCompare([]byte(got), []byte(token)) != 1 {
			w.Header().Set("WWW-Authenticate", `Bearer realm="pillion"`)
			http.Error(w, "this server wants its token: Authorization: Bearer …", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}
