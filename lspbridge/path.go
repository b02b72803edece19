package lspbridge

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"go.lsp.dev/uri"
)

// pathURI returns the file URI of a path.
func pathURI(path string) uri.URI { return uri.File(path) }

// uriPath returns the path of a file URI; "" for other URIs and for files of another machine. Servers escape differently, so compare files
// by path, never by URI.
func uriPath(s string) string {
	if len(s) < len("file:") || !strings.EqualFold(s[:len("file:")], "file:") {
		return ""
	}
	if s = s[len("file:"):]; strings.Trim(s, "/") == "" {
		return "" // no file has this name
	}
	if rest, ok := strings.CutPrefix(s, "//"); ok {
		host, path, _ := strings.Cut(rest, "/")
		switch {
		case strings.EqualFold(host, "localhost"):
			s = "///" + path
		case host != "" && runtime.GOOS != "windows": // another machine's
			return ""
		}
	}
	// Some servers escape nothing. If a file with the # or ? in its name exists, they are part of the name.
	if i := strings.IndexAny(s, "#?"); i >= 0 {
		if p := fsPath("file:" + strings.NewReplacer("#", "%23", "?", "%3F").Replace(s)); exists(p) {
			return p
		}
	}
	return fsPath("file:" + s)
}

// exists reports whether path exists, without following a symbolic link: a broken link exists.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// fsPath returns the path of a well-formed file URI; "" when it is not absolute or contains NUL.
func fsPath(s string) string {
	u, err := uri.Parse(s)
	if err != nil {
		return ""
	}
	p := filepath.Clean(u.FsPath())
	if !filepath.IsAbs(p) || strings.ContainsRune(p, 0) {
		return ""
	}
	return p
}
