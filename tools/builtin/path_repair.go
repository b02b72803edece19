package builtin

import (
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// repairPath corrects the spellings of a path that models use: a URL (file:///…), the home folder (~/…), blanks or quotes around a name,
// accents in the other Unicode normal form (macOS stores NFD, models write NFC). Without it, `write ~/x` would create a folder "~"
// in the project. A path that exists is not changed. The rules judge the result like any path, so the correction gives no rights.
func (w workspace) repairPath(path string) string {
	// there does not follow links, so a link without a target exists too.
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
