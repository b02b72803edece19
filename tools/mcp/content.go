package mcp

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/shell/visible"
)

// maxAttachment is the largest image or document that is attached, in bytes; OpenCode's figure.
const maxAttachment = 10 << 20

// seen are the media types that are attached to a result; models cannot read others.
var seen = map[string]bool{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true, "application/pdf": true}

// convert turns a server's content into a result: texts one after the other, images and PDF files as attachments. Anything else is replaced
// by a note, so that the model does not believe that it has seen it. Structured content is written as JSON only if there is no text:
// servers should send both (MCP, "Structured Content"), and the model would pay twice. Texts pass visible.Output, because control
// characters could hide or move text on the person's terminal.
//
// Of a text that went to a file (long) only the beginning is here. The texts of long may be nil.
func convert(content []sdk.Content, structured any, long *longTexts) tools.Result {
	var texts []string
	var out tools.Result
	text := func(s string, with func(string) string) {
		s, whole := long.take(s)
		s = visible.Output([]byte(with(s)))
		switch {
		case whole != nil && len(content) == 1:
			out.Whole = whole
		case whole != nil: // its own hint, in a share of what the model sees
			s = tools.Cap(s, tools.CapOptions{Whole: whole, MaxBytes: tools.MaxBytes / 2 / len(content), MaxLines: max(1, tools.MaxLines/2/len(content))}).Text
		}
		texts = append(texts, s)
	}
	attach := func(mime, name string, data []byte) {
		switch {
		case !seen[mime]:
			texts = append(texts, fmt.Sprintf("[%s of %d bytes left out: this type cannot be shown]", orUnknown(mime), len(data)))
		case len(data) > maxAttachment:
			texts = append(texts, fmt.Sprintf("[%s of %d bytes left out: over %d bytes]", mime, len(data), maxAttachment))
		default:
			out.Attachments = append(out.Attachments, tools.Attachment{Mime: mime, Name: name, Data: data})
		}
	}
	for _, c := range content {
		switch c := c.(type) {
		case *sdk.TextContent:
			text(c.Text, func(s string) string { return s })
		case *sdk.ImageContent:
			attach(c.MIMEType, "", c.Data)
		case *sdk.AudioContent:
			texts = append(texts, fmt.Sprintf("[audio of %d bytes left out]", len(c.Data)))
		case *sdk.ResourceLink:
			texts = append(texts, visible.Output([]byte(strings.TrimSpace(fmt.Sprintf("Resource %s: %s %s", c.Name, c.URI, c.Description)))))
		case *sdk.EmbeddedResource:
			r := c.Resource
			switch {
			case r == nil:
			case r.Blob != nil:
				attach(r.MIMEType, path.Base(r.URI), r.Blob)
			default:
				text(r.Text, func(s string) string { return resourceText(r, s) })
			}
		default:
			texts = append(texts, fmt.Sprintf("[content of kind %T left out]", c))
		}
	}
	if len(texts) == 0 && structured != nil {
		if raw, err := json.MarshalIndent(structured, "", "  "); err == nil {
			texts = append(texts, string(raw))
		}
	}
	// The result is stored and sent as JSON, whose text is UTF-8 (RFC 8259, section 8.1).
	out.Output = strings.ToValidUTF8(strings.Join(texts, "\n\n"), "\uFFFD")
	if structured != nil {
		out.Metadata = map[string]any{"structured": structured}
	}
	return out
}

// ownWords is what a server says of itself, at most n bytes long. It goes into requests to the model and onto the person's screen, and so
// it loses its control characters, as results do.
func ownWords(text string, n int) string {
	return tools.Cut(strings.TrimSpace(visible.Output([]byte(text))), n)
}

// resourceText returns a text resource under a header with its URI and type, so that the model can tell it from the server's own text. The
// URI is the server's and not checked.
func resourceText(r *sdk.ResourceContents, text string) string {
	head := "Resource: " + r.URI
	if r.MIMEType != "" {
		head += "\nMIME: " + r.MIMEType
	}
	return head + "\n" + text
}

// orUnknown returns a media type, or "data" when there is none.
func orUnknown(mime string) string {
	if mime == "" {
		return "data"
	}
	return mime
}
