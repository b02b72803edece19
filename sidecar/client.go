package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.lsp.dev/jsonrpc2"

	"github.com/pillion-dev/pillion/sidecar/protocol"
)

// dataTimeout limits every question to an editor that a program answers, not a person.
const dataTimeout = 10 * time.Second

// client is what the editor said about itself in initialize. Nothing that is not announced here is ever called.
type client struct {
	name, version string
	caps          protocol.ClientCapabilities
	pillion       protocol.Capabilities // zero for a generic ACP editor
	quirks        quirks
	trusted       *bool // what it says about its folders (workspace trust); nil: nothing
}

func newClient(p protocol.InitializeRequest) *client {
	c := &client{}
	if p.ClientInfo != nil {
		c.name, c.version = p.ClientInfo.Name, p.ClientInfo.Version
	}
	if p.ClientCapabilities != nil {
		c.caps = *p.ClientCapabilities
	}
	for _, meta := range []map[string]any{c.caps.Meta, p.Meta} {
		if tree, ok := meta["pillion"]; ok && c.pillion.Version == 0 {
			if protocol.Assign(tree, &c.pillion) != nil {
				c.pillion = protocol.Capabilities{} // a version we cannot read: treat the editor as a generic one
			}
		}
	}
	for _, meta := range []map[string]any{p.Meta, c.caps.Meta} {
		if c.trusted == nil {
			c.trusted = trustIn(meta)
		}
	}
	c.quirks = quirksOf(c.name)
	return c
}

// does reports whether the editor answers a _pillion method.
func (c *client) does(method string) bool { return slices.Contains(c.pillion.Methods, method) }

// liveBuffers: the editor tells what it has open.
func (c *client) liveBuffers() bool { return c.pillion.Buffers }

func (c *client) readsFiles() bool {
	return c.caps.Fs != nil && c.caps.Fs.ReadTextFile && !c.quirks.readsDisk
}

func (c *client) writesFiles() bool {
	return c.readsFiles() && c.caps.Fs.WriteTextFile && !c.quirks.overwritesBuffers
}

func (c *client) asksForms() bool {
	return c.caps.Elicitation != nil && c.caps.Elicitation.Form != nil
}

func (c *client) showsNotices() bool { return c.caps.Session != nil && c.caps.Session.Notices != nil }

// errNoAnswer: the editor did not answer in time.
var errNoAnswer = errors.New("the editor did not answer in time")

// ask calls the editor for data, within dataTimeout.
func (s *Server) ask(ctx context.Context, method string, params, result any) error {
	limited, cancel := context.WithTimeout(ctx, s.dataLimit)
	defer cancel()
	err := s.call(limited, method, params, result)
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w (%s)", method, errNoAnswer, s.dataLimit)
	}
	return err
}

// call asks the editor without a limit of its own: for what a person answers. The answer is checked against its type.
func (s *Server) call(ctx context.Context, method string, params, result any) error {
	var raw rawMessage
	if err := s.wire.peer.Call(ctx, method, params, &raw); err != nil {
		var answer *jsonrpc2.Error
		if ctx.Err() == nil && !errors.As(err, &answer) {
			// Not an answer: the connection is ending. Who asked must find that out, not a failed question.
			select {
			case <-s.ctx.Done():
			case <-ctx.Done():
			case <-time.After(dataTimeout):
			}
		}
		return err
	}
	if result == nil {
		return nil
	}
	if err := protocol.Decode(raw, result); err != nil {
		return fmt.Errorf("the editor's answer to %s is malformed: %w", method, err)
	}
	return nil
}
