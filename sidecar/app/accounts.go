package app

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/sidecar/keys"
	"github.com/pillion-dev/pillion/sidecar/models"
	"github.com/pillion-dev/pillion/tools/custom"
)

// pluginAccounts implements custom.Accounts with the person's stored keys. An account goes to its owner only.
type pluginAccounts struct{ app *App }

// Account implements custom.Accounts.
func (p pluginAccounts) Account(provider, owner string) json.RawMessage {
	if a, ok := p.app.Place.Keys().Accounts()[provider]; ok && a.Owner == owner {
		return a.Value
	}
	return nil
}

// SetAccount implements custom.Accounts. A plugin that renews its tokens must not put them in the place of another one's, or of a key.
func (p pluginAccounts) SetAccount(provider, owner string, account json.RawMessage) error {
	if a, ok := p.app.Place.Keys().Accounts()[provider]; !ok || a.Owner != owner {
		return fmt.Errorf("%s is not signed in to with the plugin %s; run: pillion auth login %s", provider, owner, provider)
	}
	return p.app.KeepAccount(provider, owner, account)
}

// KeepAccount keeps an account, and hides its tokens from now on.
func (a *App) KeepAccount(provider, owner string, account json.RawMessage) error {
	_, err := a.Place.Keys().SetAccount(provider, owner, account)
	if err == nil {
		for _, k := range a.Place.Keys().Secrets() {
			a.Place.secrets.Add(k.Value)
		}
	}
	return err
}

// signingIn implements custom.Accounts while the person signs in: what comes replaces what is kept.
type signingIn struct{ pluginAccounts }

// SetAccount implements custom.Accounts.
func (s signingIn) SetAccount(provider, owner string, account json.RawMessage) error {
	return s.app.KeepAccount(provider, owner, account)
}

// SignIns returns the sign-ins that a directory's plugins have for a provider, for a person who signs in now. close ends the plugins.
func (c *Plugins) SignIns(ctx context.Context, cwd, provider string) (found []custom.SignIn, close func()) {
	conf := c.app.ConfigOf(cwd)
	if len(conf.Plugin) == 0 && !holdsAny(c.dirs(cwd, conf), "plugin", "plugins") {
		return nil, func() {}
	}
	o := c.options(cwd, conf)
	o.Accounts = signingIn{pluginAccounts{c.app}}
	h := custom.New(o)
	for _, in := range h.SignIns(ctx) {
		if in.Provider == provider {
			found = append(found, in)
		}
	}
	return found, h.Close
}

// access implements models.Access.
type access struct{ app *App }

// Access implements models.Access: it asks the plugin that the account belongs to, if it is not one of Pillion's own.
func (x access) Access(ctx context.Context, cwd, id string, account keys.Account, known []provider.Model) (models.Accessed, error) {
	if account.Owner == models.DeviceOwner {
		return x.app.Models.DeviceAccess(ctx, cwd, id, account, func(renewed json.RawMessage) error { return x.app.KeepAccount(id, models.DeviceOwner, renewed) })
	}
	h := x.app.Plugins.of(cwd)
	if h == nil {
		return models.Accessed{}, fmt.Errorf("the account of %s belongs to the plugin %s, which is not used in this folder", id, account.Owner)
	}
	a, err := h.Account(ctx, id, account.Owner, shownProvider(id, known))
	if err != nil {
		return models.Accessed{}, err
	}
	// A key that the plugin got from its maker is as secret as the account.
	x.app.Place.secrets.Add(a.Key)
	for name, v := range a.Headers {
		if secretName(name) {
			x.app.Place.secrets.Add(v)
		}
	}
	return models.Accessed{Key: a.Key, BaseURL: a.BaseURL, Headers: maps.Clone(a.Headers), Transport: a.Transport, Version: a.Version}, nil
}

// shownProvider is a provider as loaders of plugins see it, in OpenCode's shape.
func shownProvider(id string, known []provider.Model) map[string]any {
	list := map[string]any{}
	for _, m := range known {
		list[m.ID] = map[string]any{"id": m.ID, "providerID": id, "name": m.Name, "limit": map[string]int{"context": m.Context, "output": m.Output}, "options": map[string]any{}, "headers": map[string]any{},
			"capabilities": map[string]bool{"toolcall": true, "reasoning": m.Thinking, "attachment": m.Images}, "api": map[string]string{"id": m.ID},
			"cost": map[string]any{"input": m.CostIn, "output": m.CostOut, "cache": map[string]float64{"read": m.CostRead, "write": m.CostWrite}}}
	}
	return map[string]any{"id": id, "name": id, "source": "custom", "env": []string{}, "options": map[string]any{}, "models": list}
}
