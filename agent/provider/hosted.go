package provider

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// hostedText is what is publicly known of the models of hosted services, as it was when this program was built; scripts/models writes it.
//
//go:embed hosted.tsv
var hostedText string

// HostedServices are the services of which a table of hosted models has rows, under the names of models.dev.
var HostedServices = []string{"amazon-bedrock", "anthropic", "azure", "cerebras", "deepinfra", "deepseek", "fireworks-ai", "google", "google-vertex", "groq",
	"huggingface", "mistral", "moonshotai", "nvidia", "openai", "openrouter", "togetherai", "xai", "zai"}

// HostedRow is a model's row in a table of hosted models, without the end of the line.
func HostedRow(m Model) string {
	abilities := ""
	for letter, able := range map[string]bool{"i": m.Images, "p": m.PDF, "t": m.Thinking} {
		if able {
			abilities += letter
		}
	}
	letters := strings.Split(abilities, "")
	slices.Sort(letters) // i, p, t, as the tables are written
	return strings.Join([]string{m.Provider, m.ID, m.Name, strconv.Itoa(m.Context), strconv.Itoa(m.Output), strings.Join(letters, ""), usd(m.CostIn), usd(m.CostOut), usd(m.CostRead), usd(m.CostWrite), ""}, "\t")
}

// usd is a price; "" where none is known.
func usd(price float64) string {
	if price == 0 {
		return ""
	}
	return strconv.FormatFloat(price, 'f', -1, 64)
}

// Hosted is a table of hosted models.
type Hosted struct {
	Date    time.Time // when it was fetched; of the one in this program: the day in its head
	entries []catalogEntry
	by      map[string][]*catalogEntry // by service
}

// ParseHosted reads a table of hosted models.
func ParseHosted(text string, date time.Time) *Hosted {
	h := &Hosted{Date: date, entries: parseCatalog(text)}
	h.by = byProvider(h.entries)
	return h
}

// Len is the number of models.
func (h *Hosted) Len() int { return len(h.entries) }

// Services are the models by service, in the table's order. They are copies.
func (h *Hosted) Services() map[string][]Model {
	out := map[string][]Model{}
	for _, e := range h.entries {
		out[e.Provider] = append(out[e.Provider], e.Model)
	}
	return out
}

// ShippedHosted is the table in this program, parsed at the first use (60 KB, below a millisecond).
var ShippedHosted = sync.OnceValue(func() *Hosted {
	var date time.Time
	if _, rest, ok := strings.Cut(hostedText, "\n# date "); ok {
		day, _, _ := strings.Cut(rest, "\n")
		date, _ = time.Parse(time.DateOnly, day)
	}
	return ParseHosted(hostedText, date)
})

// inUse is the table that counts; nil: hosted asks for it. laterHosted finds a table that was fetched; nil: there is none.
var (
	inUse       atomic.Pointer[Hosted]
	laterHosted atomic.Pointer[func() *Hosted]
)

// FindHosted sets where a table that was fetched is found. find is called at the next use of the table, not here, and may return nil.
func FindHosted(find func() *Hosted) {
	laterHosted.Store(&find)
	inUse.Store(nil)
}

// UseHosted makes a table count from now on, for sessions that are open too. An older one than the program's own does not.
func UseHosted(h *Hosted) {
	if h == nil || h.Date.Before(ShippedHosted().Date) {
		h = ShippedHosted()
	}
	inUse.Store(h)
}

// hosted is the table that counts.
func hosted() *Hosted {
	if h := inUse.Load(); h != nil {
		return h
	}
	var later *Hosted
	if find := laterHosted.Load(); find != nil {
		later = (*find)()
	}
	UseHosted(later)
	return inUse.Load()
}

// hostedService is the name of a provider in the table.
func hostedService(provider string) string {
	if service, ok := services[Cloud(provider)]; ok {
		return service
	}
	return provider
}

// HostedModels are the models of a hosted service that are known, in the order of their ids; of a cloud, those that can be asked for at the
// addresses that this package uses.
func HostedModels(service string) []Model {
	var out []Model
	all := hosted().by[hostedService(service)]
	for _, e := range all {
		if Cloud(service).serves(e.ID, all) {
			out = append(out, e.Model)
		}
	}
	return out
}
