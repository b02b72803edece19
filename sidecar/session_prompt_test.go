package main

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
