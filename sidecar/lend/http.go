package lend

import (
	"context"
	"crypto/subtle"
	"net/http"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	clientIdle  = 2 * time.Hour // a client that has sent nothing for so long has gone: HTTP does not say when one ends
	maxHTTPBody = 16 << 20      // bytes of one request; a write of a large file must fit
)

// Handler serves streamable HTTP to requests that carry token, each client with a server of its own. Requests that a
// web page makes from another origin are refused: a browser on this machine reaches loopback addresses too.
func (l *Server) Handler(ctx context.Context, token string) http.Handler {
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server {
		s, err := l.ForClient(ctx)
		if err != nil {
			l.log.Error("mcp", "err", err)
			return nil
		}
		return s
	}, &sdk.StreamableHTTPOptions{Logger: l.log, SessionTimeout: clientIdle, MaxRequestBodyBytes: maxHTTPBody})
	return http.NewCrossOriginProtection().Handler(bearer(token, handler))
}

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
