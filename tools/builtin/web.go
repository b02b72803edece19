package builtin

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/web"
)

// WebOptions are what the web tools work with.
type WebOptions struct {
	Client *web.Client // nil: the web is not fetched from, and webfetch is not offered
	Engine web.Engine  // without a provider websearch and codesearch are not offered
}

// privatePlace is the permission to fetch from this machine or a private network. It is one of its own: a rule that allows
// webfetch for all addresses must not open the router's page.
const privatePlace = "webfetch_private"

//go:embed webfetch.txt
var webfetchText string

// webfetchParams has the names of OpenCode's tool. Timeout is in seconds and may be a fraction; the client bounds it.
type webfetchParams struct {
	URL     string  `json:"url"`
	Format  string  `json:"format,omitempty"`
	Timeout float64 `json:"timeout,omitempty" jsonschema:"seconds, at most 120"`
}

// WebFetch reads a web page. The address is asked about before anything is looked up: even a name server would learn of it.
func WebFetch(env Env) tools.Tool {
	return tools.New("webfetch", webfetchText, func(ctx context.Context, p webfetchParams, call *tools.Call) (tools.Result, error) {
		format := web.Format(p.Format)
		switch format {
		case "":
			format = web.Markdown
		case web.Markdown, web.Text, web.HTML:
		default:
			return tools.Result{}, &tools.Error{Kind: "invalid", Message: fmt.Sprintf("format is markdown, text or html, not %q", p.Format)}
		}
		u, err := web.Clean(p.URL)
		if err != nil {
			return tools.Result{}, &tools.Error{Kind: "bad_url", Message: err.Error()}
		}
		if p.Timeout < 0 {
			return tools.Result{}, &tools.Error{Kind: "invalid", Message: "timeout is in seconds, from 1 to 120"}
		}
		if err := askPage(ctx, call, u.String(), ""); err != nil {
			return tools.Result{}, err
		}
		call.Report(tools.Update{Title: u.String()})
		r := web.Request{URL: u.String(), Format: format, Timeout: time.Duration(p.Timeout * float64(time.Second)),
			// An allowed page may redirect anywhere, and an address can carry what was read to another server.
			Redirect: func(ctx context.Context, from, to string) error { return askPage(ctx, call, to, from) }}
		page, err := fetch(ctx, env.Web.Client, call, r)
		if err != nil {
			return tools.Result{}, err
		}
		return pageResult(page), nil
	}, tools.WithKind(tools.KindFetch), tools.WithReadOnly(), fetchNames)
}

// fetch fetches a page and asks when it meets a private address, at first or by a redirect. Only the client can tell, because it resolves
// the names. The addresses of cloud metadata services, which hand out keys (169.254.169.254 …), are never asked about: they must be
// configured.
func fetch(ctx context.Context, client *web.Client, call *tools.Call, r web.Request) (*web.Page, error) {
	for {
		page, err := client.Fetch(ctx, r)
		var private *web.PrivateError
		// Ten private hosts in one chain of redirects are an attack, not a page.
		if err == nil || !errors.As(err, &private) || private.Metadata() || len(r.Allow) >= 10 {
			return page, pageError(err)
		}
		err = ask(ctx, call, permission.Request{
			Permission: privatePlace, Patterns: []string{private.Host}, Always: []string{private.Host}, Added: true,
			Title: "Fetch from " + private.Host, Why: fmt.Sprintf("%s is %s: this machine or a private network.", private.Host, private.IP),
		})
		if err != nil {
			return nil, err
		}
		// By host, so the loop ends: each round adds a host or returns.
		r.Allow = append(r.Allow, private.Host)
	}
}

// pageError returns a person's rejection unchanged, because it ends the turn; other errors become results for the model.
func pageError(err error) error {
	var private *web.PrivateError
	switch {
	case err == nil, errors.Is(err, permission.ErrDenied), errors.Is(err, permission.ErrRejected), errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &private):
		return &tools.Error{Kind: "private", Message: private.Error(), Err: err}
	}
	return &tools.Error{Kind: "fetch", Message: err.Error(), Err: err}
}

// askPage asks for an address; "always" is for its host. Each redirect to another host is asked again.
func askPage(ctx context.Context, call *tools.Call, to, from string) error {
	why := ""
	if from != "" {
		why = from + " redirects there."
	}
	always := []string{to}
	// "Always" covers the host with its scheme and port: the next page of a manual should not ask again.
	if u, err := url.Parse(to); err == nil {
		always = []string{u.Scheme + "://" + u.Host + "/*"}
	}
	return ask(ctx, call, permission.Request{
		Permission: "webfetch", Patterns: []string{to}, Always: always, Title: "Fetch " + to, Why: why, Metadata: map[string]any{"url": to},
	})
}

// pageResult is the page as text, an image or a PDF as an attachment. A page without text says so, or the model would fetch it again.
func pageResult(p *web.Page) tools.Result {
	r := tools.Result{Title: fmt.Sprintf("%s (%s)", p.URL, p.Mime), Output: p.Text, Metadata: map[string]any{"url": p.URL, "mime": p.Mime, "bytes": p.Bytes, "title": p.Title}}
	switch {
	case p.Data != nil:
		kind := "Image"
		if p.Mime == "application/pdf" {
			kind = "PDF"
		}
		r.Output = kind + " fetched successfully"
		r.Attachments = []tools.Attachment{{Mime: p.Mime, Name: path.Base(p.URL), Data: p.Data}}
	case strings.TrimSpace(p.Text) == "":
		r.Output = "The page has no text. It may be built by scripts, which are not run; look for its data or documentation elsewhere."
	}
	return r
}

//go:embed websearch.txt
var websearchText string

// websearchParams has the names of OpenCode's tool, which are Exa's; other engines use what they have.
type websearchParams struct {
	Query   string `json:"query" jsonschema:"what to search for"`
	Results int    `json:"numResults,omitempty" jsonschema:"how many results; 8 by default"`
	Crawl   string `json:"livecrawl,omitempty" jsonschema:"fallback or preferred: whether pages are read anew"`
	Type    string `json:"type,omitempty" jsonschema:"auto, fast or deep"`
	Max     int    `json:"contextMaxCharacters,omitempty" jsonschema:"how much text in all; 10000 by default"`
}

// WebSearch asks the configured search engine.
func WebSearch(env Env) tools.Tool {
	return searchTool(env, "websearch", websearchText, func(p websearchParams) web.Query {
		return web.Query{Text: p.Query, Results: p.Results, Type: p.Type, LiveCrawl: p.Crawl, Characters: p.Max}
	})
}

//go:embed codesearch.txt
var codesearchText string

// codesearchParams: the number of tokens is brought into its bounds, not refused.
type codesearchParams struct {
	Query  string `json:"query" jsonschema:"what to find examples of"`
	Tokens int    `json:"tokensNum,omitempty" jsonschema:"how much context, 1000 to 50000 tokens; 5000 by default"`
}

// CodeSearch finds code examples. Only Exa has such a search; see webTools.
func CodeSearch(env Env) tools.Tool {
	return searchTool(env, "codesearch", codesearchText, func(p codesearchParams) web.Query {
		if p.Tokens != 0 {
			p.Tokens = min(max(p.Tokens, 1000), 50_000)
		}
		return web.Query{Text: p.Query, Code: true, Tokens: p.Tokens}
	})
}

// searchTool makes the two search tools. The query leaves this machine, so it is what is asked about.
func searchTool[P any](env Env, id, text string, query func(P) web.Query) tools.Tool {
	return tools.New(id, text, func(ctx context.Context, p P, call *tools.Call) (tools.Result, error) {
		q := query(p)
		if strings.TrimSpace(q.Text) == "" {
			return tools.Result{}, &tools.Error{Kind: "invalid", Message: "query is empty; say what to search for"}
		}
		err := ask(ctx, call, permission.Request{
			Permission: id, Patterns: []string{q.Text}, Always: []string{"*"}, Title: "Search for " + q.Text, Metadata: map[string]any{"query": q.Text, "provider": env.Web.Engine.Provider},
		})
		if err != nil {
			return tools.Result{}, err
		}
		found, err := env.Web.Engine.Search(ctx, q)
		if err != nil {
			if errors.Is(err, context.Canceled) {
				return tools.Result{}, err
			}
			return tools.Result{}, &tools.Error{Kind: "search", Message: err.Error(), Err: err}
		}
		return tools.Result{Title: q.Text, Output: found, Metadata: map[string]any{"provider": env.Web.Engine.Provider}}, nil
	}, tools.WithKind(tools.KindFetch), tools.WithReadOnly())
}

// webTools are the web tools for which something is configured: a client, a search engine, Exa for code.
func webTools(env Env) []tools.Tool {
	var out []tools.Tool
	if env.Web.Client != nil {
		out = append(out, WebFetch(env))
	}
	if env.Web.Engine.Provider != "" {
		out = append(out, WebSearch(env))
	}
	if env.Web.Engine.Provider == "exa" {
		out = append(out, CodeSearch(env))
	}
	return out
}
