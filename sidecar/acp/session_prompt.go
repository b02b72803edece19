package acp

import (
	"encoding/base64"
	"fmt"
	"path"
	"regexp"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/editors"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/sidecar/slash"
)

// promptParts turns ACP's content blocks into parts of a message. A resource becomes text that begins with its path
// or URI, so that the model knows what it reads. It fails with InvalidParams for what is empty or not supported.
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
			// A model cannot read other binary files; the note keeps it from believing that nothing was attached.
			case r.Blob != nil:
				kind := ""
				if r.MimeType != "" {
					kind = r.MimeType + ", "
				}
				text(fmt.Sprintf("(%s is a binary file, %s%d bytes; its content was not sent)", displayPath(r.URI), kind, base64.StdEncoding.DecodedLen(len(*r.Blob))))
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

// attachment is a file whose bytes came as base64. It fails for an empty one: providers would refuse every further
// prompt of the session.
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
		name = path.Base(displayPath(uri))
	}
	return provider.Part{Type: provider.PartFile, Files: []provider.File{{Mime: mime, Name: name, Data: raw}}}, nil
}

// displayPath is a URI as people and tools name it: a file by its path.
func displayPath(uri string) string {
	if p, ok := editors.URIPath(uri); ok {
		return p
	}
	return uri
}

// lineRange describes the lines that a URI points to (#L2, #L2-L4, #L2:4); "" for the whole file.
func lineRange(uri string) string {
	m := lineAnchor().FindStringSubmatch(uri)
	switch {
	case m == nil:
		return ""
	case m[2] == "" || m[2] == m[1]:
		return ", line " + m[1]
	}
	return ", lines " + m[1] + "-" + m[2]
}

// lineAnchor is the fragment for lines that editors and GitHub use: #L2, #L2-L4 and #L2:4. Lines count from 1.
var lineAnchor = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`#L(\d+)(?:[-:]L?(\d+))?$`) })

// linkText mentions a resource without its content; the model reads it with a tool. A name that the URI ends with
// already is not repeated.
func linkText(l *protocol.ResourceLink) string {
	s := "See " + displayPath(l.URI) + lineRange(l.URI)
	if name := l.Name; name != "" && !strings.HasSuffix(l.URI, name) {
		s += " (" + name + ")"
	}
	return s
}

// resourceText is the content of a resource as a code block. The fence is longer than any in the text, so that the
// text cannot end its block.
func resourceText(uri, text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	end := ""
	if !strings.HasSuffix(text, "\n") {
		end = "\n"
	}
	return "Content of " + displayPath(uri) + lineRange(uri) + ":\n" + fence + "\n" + text + end + fence
}

// promptReader turns the prompt of an editor into the one that the session gets. One is shared by all sessions of a
// connection, because the selection is the editor's and not a session's.
type promptReader struct {
	commands  *commandList
	selection *selection
}

// prepare expands a slash command at the start of a prompt, and adds what is selected now where the prompt says
// @selection. cwd is the session's directory.
func (in *promptReader) prepare(cwd string, parts []provider.Part) []provider.Part {
	if c, args, ok := slash.Parse(parts, in.commands.of(cwd)); ok && c.Expand != nil {
		parts[0].Text = c.Expand(args)
	}
	// Only words of the person count: a file that was attached may hold "@selection" too.
	for _, p := range parts {
		if p.Type == provider.PartText && !p.Synthetic && atSelection().MatchString(p.Text) {
			return append(parts, provider.Part{Type: provider.PartText, Synthetic: true, Text: in.selection.selected(cwd)})
		}
	}
	return parts
}
