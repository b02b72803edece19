package lspbridge

import (
	"os"
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

// findRoot is the nearest directory at or above path's that holds one of the markers (globs allowed), not above top.
// Without one it is top, or path's own directory when path is not inside top.
func findRoot(path, top string, markers []string) string {
	if !inside(top, path) {
		top = ""
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if hasMarker(dir, markers) {
			return dir
		}
		if dir == top || dir == filepath.Dir(dir) {
			break
		}
	}
	if top == "" {
		return filepath.Dir(path)
	}
	return top
}

func hasMarker(dir string, markers []string) bool {
	for _, m := range markers {
		if strings.ContainsAny(m, "*?[") {
			if found, _ := filepath.Glob(filepath.Join(dir, m)); len(found) > 0 {
				return true
			}
		} else if _, err := os.Lstat(filepath.Join(dir, m)); err == nil {
			return true
		}
	}
	return false
}
