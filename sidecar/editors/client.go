package editors

import (
	"slices"

	"github.com/pillion-dev/pillion/sidecar/protocol"
)

// Client is what an editor said about itself in initialize. Methods that it did not announce are never called.
type Client struct {
	Name, Version string
	Caps          protocol.ClientCapabilities
	Pillion       protocol.Capabilities // zero for a generic ACP editor
	Profile       Profile
	Trusted       *bool // what it says about its folders (workspace trust); nil: nothing
}

// NewClient reads an initialize request.
func NewClient(p protocol.InitializeRequest) *Client {
	c := &Client{}
	if p.ClientInfo != nil {
		c.Name, c.Version = p.ClientInfo.Name, p.ClientInfo.Version
	}
	if p.ClientCapabilities != nil {
		c.Caps = *p.ClientCapabilities
	}
	for _, meta := range []map[string]any{c.Caps.Meta, p.Meta} {
		if tree, ok := meta["pillion"]; ok && c.Pillion.Version == 0 {
			if protocol.Assign(tree, &c.Pillion) != nil {
				// A version that cannot be read makes a generic editor. Its word on hunks stays: the plugin that reviews for
				// another Neovim client announces hunks alone, without a version's methods.
				c.Pillion = protocol.Capabilities{}
				if m, ok := tree.(map[string]any); ok {
					c.Pillion.Hunks, _ = m["hunks"].(bool)
				}
			}
		}
	}
	for _, meta := range []map[string]any{p.Meta, c.Caps.Meta} {
		if c.Trusted == nil {
			c.Trusted = TrustIn(meta)
		}
	}
	c.Profile = profileOf(c.Name)
	return c
}

// Does reports whether the editor answers a _pillion method.
func (c *Client) Does(method string) bool { return slices.Contains(c.Pillion.Methods, method) }

// ShowsHunks reports whether the client shows a permission request with everything that _meta.pillion says of it, whatever its name.
func (c *Client) ShowsHunks() bool { return c.Pillion.Version > 0 || c.Pillion.Hunks }

// liveBuffers reports whether the editor sends its open documents and their changes: then Editor.Buffers is their mirror, and tools read that
// instead of asking.
func (c *Client) liveBuffers() bool { return c.Pillion.Buffers }

// readsFiles reports whether fs/read_text_file tells what the person sees. A client that answers with the disk's text
// is not asked: it would hide unsaved lines behind an answer that looks like one.
func (c *Client) readsFiles() bool {
	return c.Caps.Fs != nil && c.Caps.Fs.ReadTextFile && !c.Profile.ReadsDisk
}

// writesFiles reports whether a file may be written through the client. One that cannot say what is unsaved may not
// write either: nobody could tell whether its write replaces lines that the person has not saved.
func (c *Client) writesFiles() bool {
	return c.readsFiles() && c.Caps.Fs.WriteTextFile && !c.Profile.OverwritesBuffers
}

// AsksForms reports whether the editor shows forms (ACP's elicitation); else questions are put as permission requests.
func (c *Client) AsksForms() bool {
	return c.Caps.Elicitation != nil && c.Caps.Elicitation.Form != nil
}

// ShowsNotices reports whether the editor shows session notices; others get the text as a thought, which every editor shows.
func (c *Client) ShowsNotices() bool { return c.Caps.Session != nil && c.Caps.Session.Notices != nil }

// TrustIn reads _meta.pillion.trusted; nil when the editor says nothing.
func TrustIn(meta map[string]any) *bool {
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
