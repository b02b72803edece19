package models

import (
	"context"
	"maps"
	"slices"
	"sort"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/agent/provider/quickfix"
)

// Info is a usable model.
type Info struct {
	ID      string         `json:"id"` // provider/model
	Name    string         `json:"name"`
	Origin  string         `json:"origin"` // the key, file or address that makes it usable
	Default bool           `json:"default"`
	Model   provider.Model `json:"model"`
}

// List returns the usable models of a directory, the default first. With local it also asks the model servers on this
// machine, which takes up to 0.2 s.
func (m *Models) List(ctx context.Context, cwd string, local bool) []Info {
	def, _ := m.Default(cwd)
	var out []Info
	// The first one of an id counts: configured models come before the catalogue's, with the person's settings.
	add := func(model provider.Model, key, origin string) {
		id := model.Provider + "/" + key
		if slices.ContainsFunc(out, func(i Info) bool { return i.ID == id }) {
			return
		}
		name := model.Name
		if name == "" {
			name = key
		}
		out = append(out, Info{ID: id, Name: name, Origin: origin, Default: id == def, Model: model})
	}
	for _, s := range m.providers(cwd) {
		if !s.usable {
			continue
		}
		keys := make([]string, 0, len(s.models))
		for k := range s.models {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		if s.fallback != "" {
			keys = append([]string{s.fallback}, keys...)
		}
		// A compatible server may have any models; the catalogue's would be guesses. A deployment at Azure has its model's name unless its
		// owner chose another one.
		if s.cfg.Cloud != "" {
			for _, known := range provider.HostedModels(string(s.cfg.Cloud)) {
				keys = append(keys, known.ID)
			}
		} else if s.cfg.Kind != provider.KindCompatible {
			for _, known := range provider.Models(s.id) {
				keys = append(keys, known.ID)
			}
		} else if h, ok := hosted[s.id]; ok && s.cfg.BaseURL == h.base {
			for _, known := range provider.HostedModels(s.id) {
				keys = append(keys, known.ID)
			}
		}
		for _, k := range keys {
			add(s.model(k), k, s.origin)
		}
	}
	if local {
		for _, server := range m.findLocal(ctx) {
			if turnedOff(m.config(cwd), server.ID) != "" {
				continue
			}
			for _, model := range server.Models {
				model.Provider = server.ID
				add(model, model.ID, server.BaseURL)
			}
		}
	}
	if m.External != nil {
		for _, x := range m.External.Agents(cwd) {
			add(x.Model, x.Model.ID, x.Origin)
		}
	}
	// Last, as it is only what remains when nothing else can be used; the sort below keeps this order behind the
	// default.
	add(quickfix.Model, quickfix.Model.ID, "built in")
	sort.SliceStable(out, func(i, j int) bool { return out[i].Default && !out[j].Default })
	return out
}

// findLocal asks the usual ports of this machine, and keeps the answers for resolveLocal.
func (m *Models) findLocal(ctx context.Context) []provider.LocalServer {
	found := m.Local(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.local = found
	return found
}

// resolveLocal finds a model of a server on this machine. It asks the servers if that has not happened yet; a model
// that they do not list is used all the same, since some load on demand.
// mu is not held while the servers are asked: they may take their whole 0.2 s.
func (m *Models) resolveLocal(ctx context.Context, pid, mid string) (provider.Provider, provider.Model, bool) {
	m.mu.Lock()
	known := m.local
	m.mu.Unlock()
	if known == nil {
		known = m.findLocal(ctx)
	}
	for _, s := range known {
		if s.ID != pid {
			continue
		}
		p, err := m.provider(s.Config())
		if err != nil {
			return nil, provider.Model{}, false
		}
		model := provider.Lookup(s.ID, mid)
		model.Provider, model.ID = s.ID, mid
		return p, model, true
	}
	return nil, provider.Model{}, false
}

// Choice is a model that a person can select, as editors show it.
type Choice struct {
	ID          string // provider/model
	Name        string
	Description string
	Efforts     []string // thinking efforts it knows, e.g. low, medium, high, then the person's own variants; empty: none
}

// Choices lists the models that can be selected in a directory. It does not ask local servers: editors call it for
// each session.
func (m *Models) Choices(ctx context.Context, cwd string) []Choice {
	var out []Choice
	for _, x := range m.List(ctx, cwd, false) {
		c := Choice{ID: x.ID, Name: x.Name, Description: x.Origin}
		// Every thinking model is offered these three; the person's own variants follow.
		if x.Model.Thinking {
			c.Efforts = []string{"low", "medium", "high"}
		}
		for _, v := range slices.Sorted(maps.Keys(x.Model.Variants)) {
			if !slices.Contains(c.Efforts, v) {
				c.Efforts = append(c.Efforts, v)
			}
		}
		out = append(out, c)
	}
	return out
}
