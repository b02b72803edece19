package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pillion-dev/pillion/tools"
)

// opened is the label of the answer by which the person says that they have been to a page; anything else is a no.
const opened = "I have been there"

// elicitURL tells the person which page a server wants them to visit. Pillion does not open the page: the address is a
// stranger's and may be a forged sign-in, so the person reads it and opens it themselves. accept means only that the
// person says they were there: what they did on the page is between them and the server.
func (v *server) elicitURL(ctx context.Context, r *running, p *sdk.ElicitParams) (*sdk.ElicitResult, error) {
	address, host := page(p.URL)
	if address == "" {
		v.set.o.Log.Warn("mcp: an address that is not shown", "server", v.Name, "url", tools.Cut(p.URL, 200))
		return &sdk.ElicitResult{Action: "decline"}, nil
	}
	no := false
	text := fmt.Sprintf("The MCP server %s asks you to visit a page of %s: %s\n%s\nNothing was opened. If you trust it, open it in your browser, and answer when you are done there.",
		v.Name, host, tools.Cut(strings.TrimSpace(p.Message), 1000), address)
	answers, err := r.ask(ctx, []tools.Question{{Question: text, Header: tools.Cut(v.Name, 30), Custom: &no, Options: []tools.Option{{Label: opened}, {Label: "No"}}}})
	switch {
	case errors.Is(err, tools.ErrDismissed):
		return &sdk.ElicitResult{Action: "cancel"}, nil
	case err != nil:
		return nil, err
	case len(answers) > 0 && slices.Contains(answers[0], opened):
		return &sdk.ElicitResult{Action: "accept"}, nil
	}
	return &sdk.ElicitResult{Action: "decline"}, nil
}

// page returns an address that may be shown, and its host, or "": https, or http to this machine; ASCII without spaces, at
// most 2,000 bytes and without user@, because such addresses can look like another place than they lead to. ASCII only: a
// look-alike letter in a host would pass for a known name. A punycode host is ASCII and is shown as it is written.
func page(raw string) (address, host string) {
	u, err := url.Parse(raw)
	if err != nil || len(raw) > 2000 || u.User != nil || u.Hostname() == "" {
		return "", ""
	}
	host = u.Hostname()
	ip := net.ParseIP(host)
	local := host == "localhost" || ip != nil && ip.IsLoopback()
	if u.Scheme != "https" && !(u.Scheme == "http" && local) {
		return "", ""
	}
	address = u.String()
	if strings.ContainsFunc(address+host, func(c rune) bool { return c > unicode.MaxASCII || c <= ' ' }) {
		return "", ""
	}
	return address, host
}

// wantedPages are the pages that a server wants visited before it does what it was called for, nil for any other error.
// More pages than maxElicit count as a plain error, since a list that long is no honest request.
func wantedPages(err error) []*sdk.ElicitParams {
	var e *jsonrpc.Error
	if !errors.As(err, &e) || e.Code != sdk.CodeURLElicitationRequired {
		return nil
	}
	var data struct {
		Elicitations []*sdk.ElicitParams `json:"elicitations"`
	}
	if json.Unmarshal(e.Data, &data) != nil || len(data.Elicitations) > maxElicit {
		return nil
	}
	return data.Elicitations
}

// visit reports whether the person has been to all the pages; then the call is made again, once. Where no person can be
// asked the call ends with the server's own error.
func (v *server) visit(ctx context.Context, r *running, pages []*sdk.ElicitParams) bool {
	if r.call.Host.Questions == nil {
		return false
	}
	for _, p := range pages {
		if got, err := v.elicitURL(ctx, r, p); err != nil || got.Action != "accept" {
			return false
		}
	}
	return true
}
