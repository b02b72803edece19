package lspbridge

import (
	"path/filepath"
	"strings"

	"go.lsp.dev/uri"
)

// pathURI names a file for a server.
func pathURI(path string) uri.URI { return uri.File(path) }

// uriPath is the file a server names; "" when it names none. Servers escape differently, so keys are paths, never URIs.
func uriPath(s string) string {
	if !strings.HasPrefix(s, "file:") {
		return ""
	}
	u, err := uri.Parse(s)
	if err != nil {
		return ""
	}
	p := filepath.Clean(u.FsPath())
	if !filepath.IsAbs(p) {
		return ""
	}
	return p
}

// inside reports whether path is dir or lies below it.
func inside(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}
