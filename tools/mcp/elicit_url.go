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

// opened is the label of the answer by which the person confirms that they have visited a page; any other answer declines.
const opened = "I have been there"

// elicitURL shows the person which page a server wants them to visit. Pillion does not open the page, because it may be a forged sign-in:
// the person reads the address and opens it. "accept" means only that the person has confirmed the visit; what they did on the page stays
// between them and the server.
func (v *server) elicitURL(ctx context.Context, r *running, p *sdk.ElicitParams) (*sdk.ElicitResult, error) {
	address, host := page(p.URL)
	if address == "" {
		v.set.o.Log.Warn("mcp: an address that is hidden", "server", v.Name, "url", tools.Cut(p.URL, 200))
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

// page returns an address that may be shown to the person, and its host; "" for any other. Allowed are https, and http to this machine, in
// at most 2,000 bytes. user@ is refused because it can look like the host, and anything but ASCII because a look-alike letter could imitate
// a known name. A punycode host is ASCII and shown as it is.
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

// wantedPages returns the pages in a server's error that must be visited before it executes the call (MCP, URLElicitationRequired); nil for
// any other error, and for more than maxElicit pages, which no person would visit.
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

// visit asks the person to visit the pages, one after the other, and reports whether they confirmed all; the caller then repeats the call
// once. It returns false if no user is connected.
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
