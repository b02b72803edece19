package acp

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/protocol"
)

// inOrder answers a request that changes a session's settings or queue, in the order of the wire: after earlier such
// requests and before later prompts. A model chosen before a prompt was sent must be the one that answers it. The
// chain is es.order: each request waits for the one before and is waited for by the next one.
func inOrder[P, R any](t *sessionTable, id func(*P) string, f func(context.Context, *editorSession, *P) (R, error)) method {
	return func(ctx context.Context, r *rpc.Request) (any, error) {
		p, err := decode[P](r)
		if err != nil {
			return nil, err
		}
		es, found := t.lookupWaiting(id(p))
		// Without the session there is no order to keep.
		if es == nil {
			_, err := found(ctx)
			return nil, err
		}
		mine := make(chan struct{})
		// Deferred, so that a request that fails does not hold up the next one.
		defer close(mine)
		es.mu.Lock()
		before := es.order
		es.order = mine
		es.mu.Unlock()
		r.Async()
		<-before
		if _, err := found(ctx); err != nil {
			return nil, err
		}
		return result(f(ctx, es, p))
	}
}

// settings answer the methods that change what a session runs with.
type settings struct{ choices *sessionOptions }

// setMode answers session/set_mode, the older form of the option "mode".
func (m *settings) setMode(ctx context.Context, es *editorSession, p *protocol.SetSessionModeRequest) (*protocol.SetSessionModeResponse, error) {
	if p.ModeID == modeAuto && !slices.Contains(m.choices.modeNames(es.Info().Cwd), modeAuto) {
		return &protocol.SetSessionModeResponse{}, es.SetPermission(agent.PermissionAuto)
	}
	if err := m.setAgent(ctx, es, "modeId", p.ModeID); err != nil {
		return nil, err
	}
	// An editor with modes only shows one of them: leaving auto must lead back to asking.
	if err := es.SetPermission(agent.PermissionAsk); err != nil {
		return nil, err
	}
	return &protocol.SetSessionModeResponse{}, nil
}

// setAgent changes the agent; param is the parameter that an error names. Without any agent that can lead a session
// every name is passed on.
func (m *settings) setAgent(ctx context.Context, es *editorSession, param, name string) error {
	if names := m.choices.modeNames(es.Info().Cwd); len(names) > 0 && !slices.Contains(names, name) {
		return rpc.InvalidParams("%s: unknown mode %q; known are %s", param, name, strings.Join(names, ", "))
	}
	return es.SetAgent(name)
}

// setConfigOption answers session/set_config_option with all options, since one may change others.
func (m *settings) setConfigOption(ctx context.Context, es *editorSession, p *protocol.SetSessionConfigOptionRequest) (*protocol.SetSessionConfigOptionResponse, error) {
	// Any JSON is allowed on the wire; all options of this side are lists to choose from, whose values are strings.
	var value string
	if err := json.Unmarshal(p.Value, &value); err != nil {
		return nil, rpc.InvalidParams("value: want one of the option's value ids, a string")
	}
	var err error
	switch p.ConfigID {
	case optionMode:
		err = m.setAgent(ctx, es, "value", value)
	case optionModel:
		if err = m.choices.knownModel(es.Info(), value); err == nil {
			err = es.SetModel(value)
		}
	case optionEffort:
		if value == effortDefault {
			value = ""
		} else if !slices.Contains(m.choices.efforts(es.Info()), value) {
			return nil, rpc.InvalidParams("value: unknown thought level %q", value)
		}
		err = es.SetEffort(value)
	case optionReview:
		if !slices.Contains(agent.ReviewStyles, value) {
			return nil, rpc.InvalidParams("value: unknown review style %q; known are %s", value, strings.Join(agent.ReviewStyles, ", "))
		}
		err = es.SetReview(value)
	case optionAsk:
		if value != agent.PermissionAsk && value != agent.PermissionAuto {
			return nil, rpc.InvalidParams("value: unknown way to ask %q; known are %s, %s", value, agent.PermissionAsk, agent.PermissionAuto)
		}
		err = es.SetPermission(value)
	default:
		if own, ok := strings.CutPrefix(p.ConfigID, agentOption); ok {
			err = m.choices.folders.ChooseForAgent(ctx, es.Info(), own, value)
			break
		}
		return nil, rpc.InvalidParams("configId: unknown option %q; known are %s, %s, %s, %s, %s", p.ConfigID, optionMode, optionModel, optionEffort, optionAsk, optionReview)
	}
	if err != nil {
		return nil, err
	}
	return &protocol.SetSessionConfigOptionResponse{ConfigOptions: m.choices.configOptions(es.Info())}, nil
}
