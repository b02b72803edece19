package provider

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// CatalogDate is when catalog.tsv was written.
const CatalogDate = "2026-11-20"

//go:embed catalog.tsv
var catalogText string

// catalogEntry is a model and its price for long prompts.
type catalogEntry struct {
	Model
	longAt          int     // tokens of prompt above which the whole request costs more; 0: never
	longIn, longOut float64 // factors
}

// catalog is parsed at the first use (5 KB, about 50 µs), not when the program starts: most commands of the binary need no model.
var catalog = sync.OnceValue(func() []catalogEntry { return parseCatalog(catalogText) })

// catalogOf is the table by provider: each session asks several times.
var catalogOf = sync.OnceValue(func() map[string][]*catalogEntry { return byProvider(catalog()) })

// byProvider are the entries of a table by provider, in the table's order.
func byProvider(table []catalogEntry) map[string][]*catalogEntry {
	out := map[string][]*catalogEntry{}
	for i := range table {
		e := &table[i]
		out[e.Provider] = append(out[e.Provider], e)
	}
	return out
}

// parseCatalog reads a table; see the comment at the top of catalog.tsv.
func parseCatalog(text string) []catalogEntry {
	var out []catalogEntry
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimRight(line, "\n"), "\t")
		// A line that begins with # is a comment; a row has eleven columns or more.
		if strings.HasPrefix(line, "#") || len(f) < 11 {
			continue
		}
		e := catalogEntry{Model: Model{
			Provider: f[0], ID: f[1], Name: f[2],
			// letters of the sixth column: i images, p PDF, t thinking
			Images: strings.Contains(f[5], "i"), PDF: strings.Contains(f[5], "p"), Thinking: strings.Contains(f[5], "t"),
			CostIn: price(f[6]), CostOut: price(f[7]), CostRead: price(f[8]), CostWrite: price(f[9]),
		}}
		e.Context, _ = strconv.Atoi(f[3])
		e.Output, _ = strconv.Atoi(f[4])
		// tokens/factor of input/factor of output
		if long := strings.Split(f[10], "/"); len(long) == 3 {
			e.longAt, _ = strconv.Atoi(long[0])
			e.longIn, e.longOut = price(long[1]), price(long[2])
		}
		out = append(out, e)
	}
	return out
}

// price is USD per million tokens; an empty column is 0, which means unknown.
func price(s string) float64 {
	v, _ := strconv.ParseFloat(s, 64)
	return v
}

// Limits that are assumed of a model that is not in the catalogue. Too small a context only compacts earlier than necessary;
// too large a one fails in the middle of a turn.
const (
	unknownContext = 128_000 // tokens
	localContext   = 32_768  // tokens; model servers on small machines
	unknownOutput  = 8_192   // tokens
)

// localProviders are the ids Discover gives.
var localProviders = []string{"ollama", "lmstudio", "llamacpp", "vllm", "local"}

// Lookup is what is known of a model. provider is the configuration's id. An id with a date or "-latest" finds its base
// (claude-haiku-4-5-20251001), and a gateway's id finds the maker's model (openrouter: anthropic/claude-sonnet-5.5), without prices,
// which the gateway sets. An unknown model gets cautious limits and no price. The result keeps the id that was asked for, because that is
// the one the API knows.
func Lookup(provider, id string) Model {
	if e := find(provider, id); e != nil {
		m := e.Model
		m.ID = id
		return m
	}
	name := id
	// Gateways put the maker before the name, as in anthropic/claude-….
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		name = name[i+1:]
	}
	name, _, _ = strings.Cut(name, ":")                    // openrouter's :free, bedrock's :0
	if _, its, ok := strings.Cut(name, "anthropic."); ok { // bedrock's us.anthropic.claude-…-v1
		name = strings.TrimSuffix(its, "-v1")
	}
	for _, maker := range []string{"anthropic", "openai", "google"} {
		for _, candidate := range []string{name, strings.ReplaceAll(name, ".", "-")} {
			// OpenRouter writes 4.5 where Anthropic writes 4-5.
			if e := find(maker, candidate); e != nil {
				m := e.Model
				m.Provider, m.ID = provider, id
				// the gateway's own prices apply, and they are not known here
				m.CostIn, m.CostOut, m.CostRead, m.CostWrite = 0, 0, 0, 0
				return m
			}
		}
	}
	// Not in the catalogue: a guess from the provider and the name.
	m := Model{Provider: provider, ID: id, Name: id, Context: unknownContext, Output: unknownOutput}
	lower := strings.ToLower(id)
	switch {
	case provider == "anthropic" || strings.Contains(lower, "claude-"): // every Claude of the last years
		m.Context, m.Images, m.PDF, m.Thinking = 200_000, true, true, true
	case provider == "openai" || strings.Contains(lower, "gemini-"):
		m.Images, m.PDF = true, true
		m.Thinking = isGPT5(lower) || strings.Contains(lower, "gemini-")
	case strings.Contains(lower, "grok-4"):
		m.Context, m.Images, m.Thinking = 256_000, true, true
	case slices.Contains(localProviders, provider):
		// 0: the server's own limit applies
		m.Context, m.Output = localContext, 0
	}
	return m
}

// find is the catalogue's entry of a model, by its id as written, without "-latest", or without a date; nil when there is none.
func find(provider, id string) *catalogEntry {
	if provider == "gemini" {
		provider = "google"
	}
	// Gemini's API lists its models with this prefix.
	id = strings.TrimPrefix(id, "models/")
	// What was read from the makers' own pages is newer than the snapshot of all services.
	if e := findIn(catalogOf()[provider], id); e != nil {
		return e
	}
	return findIn(hosted().by[hostedService(provider)], id)
}

// findIn is find among the entries of one provider.
func findIn(list []*catalogEntry, id string) *catalogEntry {
	for _, candidate := range []string{id, strings.TrimSuffix(id, "-latest"), withoutDate(id)} {
		for _, e := range list {
			if e.ID == candidate {
				return e
			}
		}
	}
	return nil
}

// withoutDate cuts -20251001, -2025-08-07 or @20251001 off an id.
func withoutDate(id string) string {
	for _, n := range []int{len("-2006-01-02"), len("-20060102")} {
		// With no more bytes than a date, nothing would be left of the id.
		if len(id) <= n {
			continue
		}
		tail := id[len(id)-n:]
		if (tail[0] == '-' || tail[0] == '@') && strings.HasPrefix(tail[1:], "20") && strings.Trim(tail[1:], "0123456789-") == "" {
			return id[:len(id)-n]
		}
	}
	return id
}

// Models are the catalogue's models of a provider in the order of catalog.tsv: the newest and best first.
func Models(provider string) []Model {
	if provider == "gemini" {
		provider = "google"
	}
	var out []Model
	for _, e := range catalogOf()[provider] {
		out = append(out, e.Model)
	}
	return out
}

// DefaultModel is the model id to use where a provider is configured and no model is; "" for unknown providers.
func DefaultModel(provider string) string {
	switch provider {
	case "anthropic":
		return "claude-sonnet-5-5"
	case "openai":
		return "gpt-6.1-sol"
	case "google", "gemini":
		return "gemini-3.8-flash"
	}
	return ""
}

// SmallModel is a cheap model for titles and summaries. Empty: the caller uses the session's own model, since a small model of an unknown
// provider cannot be guessed.
func SmallModel(provider string) string {
	switch provider {
	case "anthropic":
		return "claude-haiku-5-5"
	case "openai":
		return "gpt-6-luna"
	case "google", "gemini":
		return "gemini-3.5-flash-lite"
	}
	return ""
}

// DefaultKind is the wire format of a well-known provider id; all others are OpenAI-compatible. A caller that points openai at another
// base URL uses KindOpenAI instead: few other servers know the Responses API.
func DefaultKind(provider string) Kind {
	switch provider {
	case "anthropic":
		return KindAnthropic
	case "openai":
		return KindResponses
	case "google", "gemini":
		return KindGemini
	case "azure":
		return KindOpenAI
	case "bedrock":
		return KindAnthropic
	case "google-vertex":
		return KindGemini
	}
	return KindCompatible
}

// isGPT5 reports GPT-5 and later by an id in lower case, which may carry a gateway's prefix. The gpt-oss models share the name but not
// the settings.
func isGPT5(id string) bool {
	if strings.Contains(id, "oss") {
		return false
	}
	_, rest, ok := strings.Cut(id, "gpt-")
	if !ok {
		return false
	}
	end := 0
	// the number may be followed by a minor version (gpt-5.2) or a name
	for end < len(rest) && rest[end] >= '0' && rest[end] <= '9' {
		end++
	}
	major, err := strconv.Atoi(rest[:end])
	return err == nil && major >= 5
}

// Priced reports whether Cost can tell what a model's requests cost. Models on this machine, and the built-in one, cost nothing.
func Priced(m Model) bool {
	return m.CostIn > 0 || m.CostOut > 0 || m.Provider == "builtin" || slices.Contains(localProviders, m.Provider)
}

// Cost of a request in USD, by the model's prices and, for a model of the catalogue, its surcharge for long prompts.
// The factors apply to the whole request, as the providers bill it, not to the tokens beyond the limit.
func Cost(m Model, u Usage) float64 {
	in, out := 1.0, 1.0
	if e := find(m.Provider, m.ID); e != nil && e.longAt > 0 && u.Input+u.CacheRead+u.CacheWrite > e.longAt &&
		// Prices that the person has configured count as they are, without the catalogue's surcharge.
		e.CostIn == m.CostIn && e.CostOut == m.CostOut {
		in, out = e.longIn, e.longOut
	}
	write := m.CostWrite
	if write == 0 {
		write = m.CostIn // no extra price for writing
	}
	read := m.CostRead
	if read == 0 {
		read = m.CostIn
	}
	// prices are per million tokens; thoughts are billed as output
	return (in*(float64(u.Input)*m.CostIn+float64(u.CacheRead)*read+float64(u.CacheWrite)*write) +
		out*float64(u.Output+u.Reasoning)*m.CostOut) / 1e6
}
