package main

import (
	"slices"

	"github.com/pillion-dev/pillion/sidecar/protocol"
)

// Client is what an editor said about itself in initialize. Methods that it did not announce are never called.
type Client struct {
	name, version string
	caps          protocol.ClientCapabilities
	pillion       protocol.Capabilities // zero for a generic ACP editor
	quirks        quirks
	trusted       *bool // what it says about its folders (workspace trust); nil: nothing
}

// NewClient reads an initialize request.
func NewClient(p protocol.InitializeRequest) *Client {
	c := &Client{}
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
func (c *Client) does(method string) bool { return slices.Contains(c.pillion.Methods, method) }

// liveBuffers: the editor tells what it has open.
func (c *Client) liveBuffers() bool { return c.pillion.Buffers }

func (c *Client) readsFiles() bool {
	return c.caps.Fs != nil && c.caps.Fs.ReadTextFile && !c.quirks.readsDisk
}

func (c *Client) writesFiles() bool {
	return c.readsFiles() && c.caps.Fs.WriteTextFile && !c.quirks.overwritesBuffers
}

func (c *Client) asksForms() bool {
	return c.caps.Elicitation != nil && c.caps.Elicitation.Form != nil
}

func (c *Client) showsNotices() bool { return c.caps.Session != nil && c.caps.Session.Notices != nil }

// trustIn reads _meta.pillion.trusted; nil when the editor says nothing.
func trustIn(meta map[string]any) *bool {
	tree, ok := meta["pillion"].(map[string]any)
	if !ok {
		return nil
	}
	said, ok := tree["trusted"].(bool)
	if !ok {
		return nil
	}
	return &said
}
