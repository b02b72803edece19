package acp

import (
	"encoding/base64"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/editors"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/sidecar/slash"
)

// promptParts turns an editor's content blocks into parts of a message. What came as a resource becomes text that names
// its uri, so that the model knows what it reads.
func promptParts(blocks []protocol.ContentBlock) ([]provider.Part, error) {
	var out []provider.Part
	text := func(s string) { out = append(out, provider.Part{Type: provider.PartText, Text: s}) }
	for i, b := range blocks {
		switch v := b.Value.(type) {
		case *protocol.TextContent:
			if v.Text != "" {
				text(v.Text)
			}
		case *protocol.ImageContent:
			f, err := attachment(fmt.Sprintf("prompt[%d].data", i), v.Data, v.MimeType, v.URI)
			if err != nil {
				return nil, err
			}
			out = append(out, f)
		case *protocol.ResourceLink:
			out = append(out, provider.Part{Type: provider.PartText, Text: linkText(v), Name: v.URI})
		case *protocol.EmbeddedResource:
			r := v.Resource
			switch {
			case r.Text != nil:
				text(resourceText(r.URI, *r.Text))
			case r.Blob != nil && (strings.HasPrefix(r.MimeType, "image/") || r.MimeType == "application/pdf"):
				f, err := attachment(fmt.Sprintf("prompt[%d].resource.blob", i), *r.Blob, r.MimeType, r.URI)
				if err != nil {
					return nil, err
				}
				out = append(out, f)
			case r.Blob != nil:
				kind := ""
				if r.MimeType != "" {
					kind = r.MimeType + ", "
				}
				text(fmt.Sprintf("(%s is a binary file, %s%d bytes; its content was not sent)", place(r.URI), kind, base64.StdEncoding.DecodedLen(len(*r.Blob))))
			default:
				return nil, rpc.InvalidParams("prompt[%d].resource: has neither text nor blob", i)
			}
		case *protocol.AudioContent:
			return nil, rpc.InvalidParams("prompt[%d]: audio is not supported (promptCapabilities.audio is false)", i)
		}
	}
	if len(out) == 0 {
		return nil, rpc.InvalidParams("prompt: is empty")
	}
	return out, nil
}

func attachment(where, data, mime, uri string) (provider.Part, error) {
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return provider.Part{}, rpc.InvalidParams("%s: is not base64: %v", where, err)
	}
	if len(raw) == 0 { // a provider would refuse every prompt of the session from then on
		return provider.Part{}, rpc.InvalidParams("%s: is empty", where)
	}
	name := ""
	if uri != "" {
		name = path.Base(place(uri))
	}
	return provider.Part{Type: provider.PartFile, Files: []provider.File{{Mime: mime, Name: name, Data: raw}}}, nil
}

// place is a uri as a person and the tools name it: files by path.
func place(uri string) string {
	if p, ok := editors.URIPath(uri); ok {
		return p
	}
	return uri
}

// part is the lines that a uri points to (#L2, #L2-L4, #L2:4), in words; empty: the whole file.
func part(uri string) string {
	m := lineAnchor.FindStringSubmatch(uri)
	switch {
	case m == nil:
		return ""
	case m[2] == "" || m[2] == m[1]:
		return ", line " + m[1]
	}
	return ", lines " + m[1] + "-" + m[2]
}

var lineAnchor = regexp.MustCompile(`#L(\d+)(?:[-:]L?(\d+))?$`)

func linkText(l *protocol.ResourceLink) string {
	s := "See " + place(l.URI) + part(l.URI)
	if name := l.Name; name != "" && !strings.HasSuffix(l.URI, name) {
		s += " (" + name + ")"
	}
	return s
}

func resourceText(uri, text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	end := ""
	if !strings.HasSuffix(text, "\n") {
		end = "\n"
	}
	return "Content of " + place(uri) + part(uri) + ":\n" + fence + "\n" + text + end + fence
}

// expandCommand replaces "/name args" at the start of a prompt by what the command stands for.
func (es *editorSession) expandCommand(parts []provider.Part) []provider.Part {
	if c, args, ok := slash.Parse(parts, es.slash.of(es.Info().Cwd)); ok && c.Expand != nil {
		parts[0].Text = c.Expand(args)
	}
	return parts
}
