package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/permission"
)

// maxResources limits a listing: a server may have a resource for each row of a database, and the list goes into the model's context.
const maxResources = 200

// listInput is the input of the two tools that list.
type listInput struct {
	Server string `json:"server,omitempty" jsonschema:"only this server's"`
}

// readInput is the input of read_mcp_resource.
type readInput struct {
	Server string `json:"server" jsonschema:"the server's name"`
	URI    string `json:"uri" jsonschema:"the resource's URI, as list_mcp_resources gives it"`
}

// Resource is a document, record or page that a server offers (MCP, "Resources"), or a template of their URIs.
type Resource struct {
	Server      string `json:"server"`
	URI         string `json:"uri"`
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
	Mime        string `json:"mimeType,omitempty"`
	Template    bool   `json:"template,omitempty"` // URI has {parts} to fill in
}

// resourceTools returns the tools for the servers' resources; their names are OpenCode's. Listing needs no approval. Reading a resource
// needs the permission read, like a file, with the pattern mcp:SERVER:URI.
func (s *Set) resourceTools() []tools.Tool {
	list := func(id, text string, template bool) tools.Tool {
		t := tools.New(id, text, func(ctx context.Context, p listInput, call *tools.Call) (tools.Result, error) {
			var found []Resource
			for _, r := range s.Resources(ctx, p.Server) {
				if r.Template == template {
					found = append(found, r)
				}
			}
			raw, err := json.MarshalIndent(found, "", "  ")
			if err != nil {
				return tools.Result{}, err
			}
			// The JSON of a nil slice is null, which a model could take for a failure.
			if len(found) == 0 {
				raw = []byte("none")
			}
			return tools.Result{Title: p.Server, Output: string(raw), Metadata: map[string]any{"count": len(found)}}, nil
		})
		t.Permission, t.ReadOnly, t.Kind = "read", true, tools.KindRead
		return t
	}
	// "Always" grants all resources of the server, because their URIs rarely repeat.
	read := tools.New("read_mcp_resource", "Reads one resource of a connected MCP server.",
		func(ctx context.Context, p readInput, call *tools.Call) (tools.Result, error) {
			err := ask(ctx, call, permission.Request{
				Permission: "read", Patterns: []string{"mcp:" + p.Server + ":" + p.URI}, Always: []string{"mcp:" + p.Server + ":*"},
				Title: "Read " + p.URI + " of " + p.Server,
			})
			if err != nil {
				return tools.Result{}, err
			}
			r, err := s.ReadResource(ctx, p.Server, p.URI)
			r.Title = p.URI
			return r, err
		})
	read.Permission, read.ReadOnly, read.Kind = "read", true, tools.KindRead
	return []tools.Tool{
		list("list_mcp_resources", "Lists the resources (documents, records, pages) that connected MCP servers can show. Read one with read_mcp_resource.", false),
		list("list_mcp_resource_templates", "Lists the address patterns of resources that connected MCP servers can show; fill in the {parts} and read one with read_mcp_resource.", true),
		read,
	}
}

// Resources requests the resources of every connected server, or of the named one, and returns at most 200. A server that does not answer
// within its timeout is left out.
func (s *Set) Resources(ctx context.Context, server string) []Resource {
	var out []Resource
	for _, v := range s.servers {
		if server == "" || v.Name == server {
			list, _ := v.resources(ctx)
			out = append(out, list...)
		}
	}
	return out[:min(len(out), maxResources)]
}

// resources requests this server's resources. With an error it also returns what it got before.
func (v *server) resources(ctx context.Context) (out []Resource, err error) {
	if _, caps := v.listing(); caps == nil || caps.Resources == nil {
		return nil, nil
	}
	session, err := v.connected(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, v.Timeout)
	defer cancel()
	for r, err := range session.Resources(ctx, nil) {
		if err != nil {
			return out, err
		}
		if len(out) == maxResources {
			break
		}
		// Descriptions are the server's text and go to the model, so they are cut.
		out = append(out, Resource{Server: v.Name, URI: r.URI, Name: ownWords(r.Name, 300), Description: ownWords(r.Description, 300), Mime: r.MIMEType})
	}
	// An error here does not lose the resources found above.
	for r, err := range session.ResourceTemplates(ctx, nil) {
		if err != nil || len(out) == maxResources {
			break // many servers without templates answer with an error
		}
		out = append(out, Resource{Server: v.Name, URI: r.URITemplate, Name: ownWords(r.Name, 300), Description: ownWords(r.Description, 300), Mime: r.MIMEType, Template: true})
	}
	return out, nil
}

// ReadResource reads one resource of a server. It does not ask for permission; the tool read_mcp_resource does so before the call. The
// error is a *tools.Error for an unknown server and for an error answer.
func (s *Set) ReadResource(ctx context.Context, server, uri string) (tools.Result, error) {
	v := s.find(server)
	if v == nil {
		var names []string
		for _, x := range s.servers {
			names = append(names, x.Name)
		}
		return tools.Result{}, &tools.Error{Kind: "not_found", Message: fmt.Sprintf("No MCP server %q; there are %s.", server, strings.Join(names, ", "))}
	}
	session, err := v.connected(ctx)
	if err != nil {
		return tools.Result{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, v.Timeout)
	defer cancel()
	r, err := session.ReadResource(ctx, &sdk.ReadResourceParams{URI: uri})
	if err != nil {
		return tools.Result{}, &tools.Error{Kind: "mcp", Message: fmt.Sprintf("%s: %v", server, err), Err: err}
	}
	content := make([]sdk.Content, 0, len(r.Contents))
	for _, c := range r.Contents {
		content = append(content, &sdk.EmbeddedResource{Resource: c})
	}
	out := convert(content, nil, nil)
	out.Title = path.Base(uri)
	return out, nil
}
