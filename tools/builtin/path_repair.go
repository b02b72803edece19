package builtin

import (
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// repairPath is the path that a model means by what it wrote: a URL (file:///…), the home folder (~/…), blanks or quotes around a name,
// accents in the other of Unicode's two normal forms (macOS stores NFD, models write NFC). Without it, `write ~/x` creates a folder "~"
// in the project. A path that exists is taken literally. The result is judged like any path: repairing grants nothing.
func (w workspace) repairPath(path string) string {
	// there looks at the name itself, so a dangling link counts as well.
	there := func(p string) bool {
		if !filepath.IsAbs(p) {
			p = filepath.Join(w.Cwd, p)
		}
		_, err := os.Lstat(p)
		return err == nil
	}
	if there(path) {
		return path
	}
	p := strings.TrimSpace(path)
	if n := len(p); n > 2 && p[0] == p[n-1] && strings.IndexByte("\"'`", p[0]) >= 0 {
		p = p[1 : n-1]
	}
	if u, err := url.Parse(p); err == nil && strings.EqualFold(u.Scheme, "file") && (u.Host == "" || u.Host == "localhost") && u.Path != "" {
		if p = u.Path; runtime.GOOS == "windows" {
			p = strings.TrimPrefix(p, "/") // file:///C:/x
		}
	}
	for _, home := range [...]string{"~", "$HOME", "${HOME}"} {
		if rest, ok := strings.CutPrefix(p, home); ok && w.Home != "" && (rest == "" || rest[0] == '/') {
			p = w.Home + rest
		}
	}
	if p == "" {
		return path
	}
	for _, form := range [...]norm.Form{norm.NFC, norm.NFD} {
		if q := form.String(p); q != p && !there(p) && there(q) {
			return q
		}
	}
	return p
}
