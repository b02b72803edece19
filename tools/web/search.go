package web

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/tools/guard"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// Engine is a configured search engine. The key comes from the person's settings; only send uses it.
type Engine struct {
	Provider string // exa, brave, tavily, searxng
	URL      string // "": the provider's own address; searxng has no default
	Key      string // if the provider needs one
	// Reason names the setting that configures the engine; package guard checks it for each request.
	Reason guard.Reason
}

// Query says what to search for.
type Query struct {
	Text       string
	Results    int    // 0: 8
	Type       string // auto, fast, deep; exa, and tavily for deep
	LiveCrawl  string // fallback, preferred; exa only
	Characters int    // characters of text in all results together; 0: 10,000
	Code       bool   // search for code examples; exa only
	Tokens     int    // the length of the answer to a Code query; 0: 5,000
}

const (
	searchTimeout = 25 * time.Second
	codeTimeout   = 30 * time.Second
	maxAnswer     = 4 << 20 // bytes
)

// ErrNoEngine means that no search engine is configured, or that its provider is unknown.
var ErrNoEngine = errors.New("no search engine is configured; the user sets one in pillion.jsonc, such as \"websearch\": {\"provider\": \"brave\", \"key\": \"{env:BRAVE_API_KEY}\"}")

// Search asks the engine and returns at most 50 results as text for a model. Unlike in Fetch, the engine's address may be on this
// machine, because the person configured it. The error is ErrNoEngine for an unknown provider. Errors are written for a model.
func (e Engine) Search(ctx context.Context, q Query) (string, error) {
	q.Results, q.Characters = min(cmp.Or(q.Results, 8), 50), cmp.Or(q.Characters, 10_000)
	limit := searchTimeout
	if q.Code {
		limit = codeTimeout
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%s did not answer within %s", e.Provider, limit))
	defer cancel()
	ask := map[string]func(context.Context, Query) (string, error){"exa": e.exa, "brave": e.brave, "tavily": e.tavily, "searxng": e.searxng}[e.Provider]
	if ask == nil {
		return "", ErrNoEngine
	}
	if q.Code && e.Provider != "exa" {
		return "", fmt.Errorf("%s cannot search for code; only exa can", e.Provider)
	}
	text, err := ask(ctx, q)
	if err != nil && context.Cause(ctx) != nil {
		return "", context.Cause(ctx)
	}
	return text, err
}

// hit is one result; title, date and text come from the page and are not trusted.
type hit struct{ title, url, date, text string }

// list renders the results, about q.Characters characters in all and at least 200 for each. Less than 200 characters, about two
// sentences, say nothing about a page.
func list(hits []hit, q Query) string {
	if len(hits) > q.Results {
		hits = hits[:q.Results]
	}
	if len(hits) == 0 {
		return "Nothing was found. Try other words."
	}
	each := max(200, q.Characters/len(hits))
	var b strings.Builder
	for i, h := range hits {
		if i > 0 {
			b.WriteString("\n\n")
		}
		fmt.Fprintf(&b, "Title: %s\nURL: %s", h.title, h.url)
		if h.date != "" {
			b.WriteString("\nDate: " + h.date)
		}
		if text := strings.TrimSpace(h.text); text != "" {
			b.WriteString("\n" + textutil.Shorten(text, each+1)) // each characters and the mark
		}
	}
	return b.String()
}

// exa uses MCP over HTTP: one call, answered as an event stream or as JSON. The key is part of the address; that is why send
// removes addresses from errors.
func (e Engine) exa(ctx context.Context, q Query) (string, error) {
	name, args := "web_search_exa", map[string]any{"query": q.Text, "numResults": q.Results, "type": cmp.Or(q.Type, "auto"), "livecrawl": cmp.Or(q.LiveCrawl, "fallback"), "contextMaxCharacters": q.Characters}
	if q.Code {
		name, args = "get_code_context_exa", map[string]any{"query": q.Text, "tokensNum": cmp.Or(q.Tokens, 5000)}
	}
	body, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": name, "arguments": args}})
	at := cmp.Or(e.URL, "https://mcp.exa.ai/mcp")
	if e.Key != "" {
		u, err := url.Parse(at)
		if err != nil {
			return "", err
		}
		v := u.Query()
		v.Set("exaApiKey", e.Key)
		u.RawQuery = v.Encode()
		at = u.String()
	}
	raw, err := e.send(ctx, http.MethodPost, at, body, map[string]string{"Accept": "application/json, text/event-stream"})
	if err != nil {
		return "", err
	}
	var answer struct {
		Result *struct {
			Content []struct{ Type, Text string }
			IsError bool
		}
		Error *struct{ Message string }
	}
	for _, data := range events(raw) {
		if json.Unmarshal(data, &answer) == nil && (answer.Result != nil || answer.Error != nil) {
			break
		}
	}
	switch {
	case answer.Error != nil:
		return "", fmt.Errorf("exa: %s", answer.Error.Message)
	case answer.Result == nil:
		return "", errors.New("exa: an answer that cannot be read")
	}
	var text []string
	for _, c := range answer.Result.Content {
		if c.Type == "text" {
			text = append(text, c.Text)
		}
	}
	if answer.Result.IsError {
		return "", fmt.Errorf("exa: %s", strings.Join(text, "\n"))
	}
	if len(text) == 0 {
		return "Nothing was found. Try other words.", nil
	}
	return strings.Join(text, "\n\n"), nil
}

// events returns the data of an event stream; if the text is not an event stream, the whole text. The format is that of server-sent
// events in the HTML standard; fields other than data are ignored.
func events(raw []byte) [][]byte {
	if b := bytes.TrimSpace(raw); len(b) > 0 && b[0] == '{' {
		return [][]byte{b}
	}
	var out [][]byte
	var data []byte
	s := bufio.NewScanner(bytes.NewReader(raw))
	s.Buffer(nil, maxAnswer+1)
	for s.Scan() {
		line := s.Text()
		if more, ok := strings.CutPrefix(line, "data:"); ok {
			data = append(append(data, strings.TrimPrefix(more, " ")...), '\n')
		} else if line == "" && data != nil {
			out, data = append(out, data), nil
		}
	}
	if data != nil {
		out = append(out, data)
	}
	return out
}

// brave asks the Brave Search API. Its results are the web results with their extra snippets. The API returns at most 20 results
// for a request.
func (e Engine) brave(ctx context.Context, q Query) (string, error) {
	v := url.Values{"q": {q.Text}, "count": {strconv.Itoa(min(q.Results, 20))}}
	raw, err := e.send(ctx, http.MethodGet, cmp.Or(e.URL, "https://api.search.brave.com/res/v1/web/search")+"?"+v.Encode(), nil, map[string]string{"Accept": "application/json", "X-Subscription-Token": e.Key})
	if err != nil {
		return "", err
	}
	var r struct {
		Web struct {
			Results []struct {
				Title, URL, Description string
				Age                     string
				Snippets                []string `json:"extra_snippets"`
			}
		}
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return "", errors.New("brave: an answer that cannot be read")
	}
	var hits []hit
	for _, x := range r.Web.Results {
		hits = append(hits, hit{plainText(x.Title), x.URL, x.Age, plainText(strings.Join(append([]string{x.Description}, x.Snippets...), "\n"))})
	}
	return list(hits, q), nil
}

// tavily asks Tavily; "deep" selects its advanced depth, which costs two credits.
func (e Engine) tavily(ctx context.Context, q Query) (string, error) {
	depth := "basic"
	if q.Type == "deep" {
		depth = "advanced"
	}
	body, _ := json.Marshal(map[string]any{"query": q.Text, "max_results": min(q.Results, 20), "search_depth": depth})
	raw, err := e.send(ctx, http.MethodPost, cmp.Or(e.URL, "https://api.tavily.com/search"), body, map[string]string{"Authorization": "Bearer " + e.Key})
	if err != nil {
		return "", err
	}
	var r struct {
		Results []struct {
			Title, URL, Content string
			Date                string `json:"published_date"`
		}
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return "", errors.New("tavily: an answer that cannot be read")
	}
	var hits []hit
	for _, x := range r.Results {
		hits = append(hits, hit{x.Title, x.URL, x.Date, x.Content})
	}
	return list(hits, q), nil
}

// searxng asks an instance of SearXNG, whose settings must allow JSON.
func (e Engine) searxng(ctx context.Context, q Query) (string, error) {
	if e.URL == "" {
		return "", errors.New("searxng needs the address of an instance: \"websearch\": {\"provider\": \"searxng\", \"url\": \"http://127.0.0.1:8080\"}")
	}
	v := url.Values{"q": {q.Text}, "format": {"json"}}
	raw, err := e.send(ctx, http.MethodGet, strings.TrimSuffix(strings.TrimSuffix(e.URL, "/"), "/search")+"/search?"+v.Encode(), nil, map[string]string{"Accept": "application/json"})
	if err != nil {
		return "", err
	}
	var r struct {
		Results []struct {
			Title, URL, Content string
			Date                string `json:"publishedDate"`
		}
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return "", errors.New("searxng did not answer with JSON; enable the json format in the instance's settings (search.formats)")
	}
	var hits []hit
	for _, x := range r.Results {
		hits = append(hits, hit{x.Title, x.URL, x.Date, x.Content})
	}
	return list(hits, q), nil
}

// plainText removes HTML from a snippet: Brave's snippets have entities, and tags around the words that were searched for.
func plainText(s string) string {
	if !strings.ContainsAny(s, "<&") {
		return s
	}
	p, err := (&Page{}).render(s, Text)
	if err != nil {
		return s
	}
	return p.Text
}

// send makes one request. Its errors never contain the engine's address, which may contain the key. An answer longer than maxAnswer
// is cut off and then fails to parse; that is better than an incomplete list that looks complete.
func (e Engine) send(ctx context.Context, method, at string, body []byte, headers map[string]string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, at, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%s: its address is not a web address", e.Provider)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for k, v := range headers {
		if v != "" {
			req.Header.Set(k, v)
		}
	}
	// No redirects: the key must not go to another host.
	client := guard.Client(e.Reason, guard.Network{Tune: func(t *http.Transport) { t.DisableKeepAlives = true }})
	client.CheckRedirect = guard.NoRedirects
	resp, err := client.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // without the address, which contains the key
		}
		return nil, fmt.Errorf("%s: %w", e.Provider, err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	switch {
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		return nil, fmt.Errorf("%s does not accept the key (%s); the user must correct websearch.key", e.Provider, resp.Status)
	case resp.StatusCode == http.StatusTooManyRequests:
		return nil, fmt.Errorf("%s: too many searches for now; continue without it, or try later", e.Provider)
	case resp.StatusCode/100 != 2:
		return nil, fmt.Errorf("%s answers %s", e.Provider, resp.Status)
	case err != nil:
		return nil, fmt.Errorf("%s broke off: %w", e.Provider, err)
	}
	return raw, nil
}
