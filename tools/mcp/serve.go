package mcp

import (
	"crypto/rand"
	"crypto/subtle"
	"log/slog"
	"net/http"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pillion-dev/pillion/tools"
)

const (
	clientIdle  = 2 * time.Hour // a client that has sent nothing for so long has gone: HTTP does not say when one ends
	maxHTTPBody = 16 << 20      // bytes of one request; a write of a large file must fit
)

// Handler serves streamable HTTP to requests that carry token, each client with a server of its own; nil from server refuses the client.
// Requests that a web page makes from another origin are refused: a browser on this machine reaches loopback addresses too.
func Handler(token string, server func() *sdk.Server, log *slog.Logger) http.Handler {
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server() },
		&sdk.StreamableHTTPOptions{Logger: log, SessionTimeout: clientIdle, MaxRequestBodyBytes: maxHTTPBody})
	return http.NewCrossOriginProtection().Handler(bearer(token, handler))
}

// Offer describes a tool for an MCP server.
func Offer(t tools.Tool) *sdk.Tool {
	openWorld := false // an absent openWorldHint means true (MCP, ToolAnnotations), so false is sent as a pointer
	return &sdk.Tool{Name: t.ID, Description: t.Description, InputSchema: t.Parameters, Annotations: &sdk.ToolAnnotations{ReadOnlyHint: t.ReadOnly, OpenWorldHint: &openWorld}}
}

// Token returns a new token for Handler: twice 130 random bits, because other users of the machine can reach a port too.
func Token() string { return rand.Text() + rand.Text() }

// bearer answers 401 to requests without the token. The comparison takes constant time, so that the time of a refusal
// tells nothing about the token.
func bearer(token string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok || subtle.ConstantTimeCompare([]byte(got), []byte(token)) != 1 {
			w.Header().Set("WWW-Authenticate", `Bearer realm="pillion"`)
			http.Error(w, "this server needs its token: Authorization: Bearer …", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}
