package main

import (
	"context"

	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/sidecar/protocol"
)

// appAuth is Auth over the kept keys.
type appAuth struct{ app *app.App }

// Lend implements Auth.
func (a appAuth) Lend(provider, key string) error { return a.app.Place.Keys().Lend(provider, key) }

// Providers implements Auth.
func (a appAuth) Providers(ctx context.Context) []protocol.AuthProvider {
	dir, err := app.Directory("")
	if err != nil {
		dir = a.app.Place.Home
	}
	out := []protocol.AuthProvider{}
	for _, p := range providers(ctx, a.app.Models, dir, true) {
		out = append(out, protocol.AuthProvider{ID: p.ID, Name: p.Name, Source: p.Source, Env: p.Env, Local: p.Local, BaseURL: p.BaseURL})
	}
	return out
}
