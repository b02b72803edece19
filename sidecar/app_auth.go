package main

import (
	"context"

	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/sidecar/protocol"
)

// appAuth answers the authentication methods of editors from the keys that Pillion stores.
type appAuth struct{ app *app.App }

// Lend implements acp.Auth: the key is kept in memory only, because the editor has its own secret store.
func (a appAuth) Lend(provider, key string) error { return a.app.Place.Keys().Lend(provider, key) }

// Providers implements acp.Auth. An editor asks before it opens a folder, so the working directory decides which
// project's configuration is read; without one it is the home folder.
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
