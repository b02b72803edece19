package acp

import (
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/sidecar/protocol"
)

func TestTheModelIsToldWhichLinesAResourceIs(t *testing.T) {
	text := "x\n"
	for uri, want := range map[string]string{
		"file:///p/a.go":                       "Content of /p/a.go:",
		"file:///p/a.go#L2-L4":                 "Content of /p/a.go, lines 2-4:",
		"file:///p/a.go#L7:9":                  "Content of /p/a.go, lines 7-9:",
		"file:///p/a.go#L3":                    "Content of /p/a.go, line 3:",
		"file:///p/a.go#L3-L3":                 "Content of /p/a.go, line 3:",
		"file:///p/a.go#title":                 "Content of /p/a.go:",
		"file:///p/%23L5.md":                   "Content of /p/#L5.md:",
		"https://example.com/x#L1-L2":          "Content of https://example.com/x#L1-L2, lines 1-2:",
		"zed:///agent/selection?path=a#L10:12": "Content of zed:///agent/selection?path=a#L10:12, lines 10-12:",
	} {
		parts, err := promptParts([]protocol.ContentBlock{
			{Type: "resource", Value: &protocol.EmbeddedResource{Resource: protocol.EmbeddedResourceResource{URI: uri, Text: &text}}},
			{Type: "resource_link", Value: &protocol.ResourceLink{URI: uri, Name: "n"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if got, _, _ := strings.Cut(parts[0].Text, "\n"); got != want {
			t.Errorf("%s: %q, want %q", uri, got, want)
		}
		if link, want := parts[1].Text, strings.TrimSuffix(strings.Replace(want, "Content of", "See", 1), ":"); !strings.HasPrefix(link, want) {
			t.Errorf("link %s: %q, want %q", uri, link, want)
		}
	}
}

func TestWhatIsNoPictureIsSaid(t *testing.T) {
	data, empty := "AAEC", ""
	parts, err := promptParts([]protocol.ContentBlock{
		{Type: "resource", Value: &protocol.EmbeddedResource{Resource: protocol.EmbeddedResourceResource{URI: "file:///p/x.bin", Blob: &data}}},
		{Type: "resource", Value: &protocol.EmbeddedResource{Resource: protocol.EmbeddedResourceResource{URI: "file:///p/x.zip", Blob: &data, MimeType: "application/zip"}}},
	})
	if err != nil || parts[0].Text != "(/p/x.bin is a binary file, 3 bytes; its content was not sent)" || parts[1].Text != "(/p/x.zip is a binary file, application/zip, 3 bytes; its content was not sent)" {
		t.Errorf("%v %+v", err, parts)
	}
	for _, b := range []protocol.ContentBlock{
		{Type: "image", Value: &protocol.ImageContent{MimeType: "image/png", Data: ""}},
		{Type: "resource", Value: &protocol.EmbeddedResource{Resource: protocol.EmbeddedResourceResource{URI: "file:///p/x.png", Blob: &empty, MimeType: "image/png"}}},
	} {
		if _, err := promptParts([]protocol.ContentBlock{b}); err == nil || !strings.Contains(err.Error(), "is empty") {
			t.Errorf("%s: %v", b.Type, err)
		}
	}
}
