package acp

import (
	"context"

	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/protocol"
)

// authMethods answer _pillion/auth/*.
type authMethods struct{ auth Auth }

// authList lists where the keys come from, never a key.
func (m *authMethods) authList(ctx context.Context, _ *protocol.AuthListRequest) (*protocol.AuthListResponse, error) {
	return &protocol.AuthListResponse{Providers: m.auth.Providers(ctx)}, nil
}

// authSet takes a key from the editor's secret store. It is kept in memory until this process ends. An empty key
// takes the lent one back. The answer shows where each key comes from after that.
func (m *authMethods) authSet(ctx context.Context, p *protocol.AuthSetRequest) (*protocol.AuthSetResponse, error) {
	if err := m.auth.Lend(p.Provider, p.Key); err != nil {
		return nil, rpc.InvalidParams("%v", err)
	}
	return &protocol.AuthSetResponse{Providers: m.auth.Providers(ctx)}, nil
}

// Auth is what editors may learn and set about keys. Package main implements it. Lend keeps a key until the process
// ends, and fails for one that cannot be a key.
type Auth interface {
	Providers(ctx context.Context) []protocol.AuthProvider
	Lend(provider, key string) error
}
