package acp

import (
	"context"

	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/protocol"
)

// authMethods are the methods about keys of model providers.
type authMethods struct{ auth Auth }

// authList tells where keys come from; never a key.
func (m *authMethods) authList(ctx context.Context, _ *protocol.AuthListRequest) (*protocol.AuthListResponse, error) {
	return &protocol.AuthListResponse{Providers: m.auth.Providers(ctx)}, nil
}

// authSet takes a key out of an editor's secret store, for as long as this process lives.
func (m *authMethods) authSet(ctx context.Context, p *protocol.AuthSetRequest) (*protocol.AuthSetResponse, error) {
	if err := m.auth.Lend(p.Provider, p.Key); err != nil {
		return nil, rpc.InvalidParams("%v", err)
	}
	return &protocol.AuthSetResponse{Providers: m.auth.Providers(ctx)}, nil
}

// Auth is what an editor may know and say about keys.
type Auth interface {
	Providers(ctx context.Context) []protocol.AuthProvider
	Lend(provider, key string) error
}
