package builtin

import (
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/pillion-dev/pillion/tools/files"
)

// repairPath corrects the spellings of a path that models use: a URL (file:///…), the home folder (~/…), blanks or quotes around a name,
// accents in the other Unicode normal form (macOS stores NFD, models write NFC). Without it, `write ~/x` would create a folder "~"
// in the project. A path that exists is not changed. The rules judge the result like any path, so the correction gives no rights.
func (w workspace) repairPath(path string) string {
	// there does not follow links, so a link without a target exists too. It looks at no name that will be refused.
	there := func(p string) bool {
		if files.CheckName(p, w.root()) != nil {
			return false
		}
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
		p = u.Path
	}
	if runtime.GOOS == "windows" {
		p = windowsPath(p)
	}
	for _, home := range [...]string{"~", "$HOME", "${HOME}"} {
		if rest, ok := strings.CutPrefix(p, home); ok && w.Home != "" && (rest == "" || rest[0] == '/' || runtime.GOOS == "windows" && rest[0] == '\\') {
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

// windowsPath returns the path on Windows that is meant by one with a drive in the form of a URL (/C:/x) or of Git Bash (/c/x).
func windowsPath(p string) string {
	if len(p) < 2 || p[0] != '/' || !('a' <= p[1]|0x20 && p[1]|0x20 <= 'z') {
		return p
	}
	switch rest := p[2:]; {
	case strings.HasPrefix(rest, ":/"), strings.HasPrefix(rest, `:\`):
		return p[1:]
	case rest == "", rest[0] == '/':
		return strings.ToUpper(p[1:2]) + ":/" + strings.TrimPrefix(rest, "/")
	}
	return p
}
