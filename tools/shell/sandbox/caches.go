package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// The caches of build tools and package managers belong to all of a person's projects: what a command of one writes there
// is run by the next build of another, outside of the sandbox. So a command gets a copy of its project's own: an overlay
// over the person's cache where the system has them (Support.Overlay), else a folder that the tools are sent to by their
// variables, with the person's caches read-only beside it.

// layer is a private view of a cache: place is seen as it is, and what is written to it goes to upper.
type layer struct {
	Place string `json:"place"`
	Upper string `json:"upper"`
	Work  string `json:"work"` // overlayfs's own, on the same file system as upper
}

// cacheAge is how long a project's private caches are kept after its last command.
// The time is that of the folder, which lockFolder sets at each use.
const cacheAge = 30 * 24 * time.Hour

// privateCaches makes the project's copies of caches below base, and adds them to what the command may write.
// Whatever fails leaves a cache read-only: the build is slower then, and nothing of the person's changes.
func (b *Box) privateCaches(base, root string, caches []string) {
	caches = slices.DeleteFunc(slices.Clone(caches), func(c string) bool { // those inside the project or a temporary folder are its own
		return slices.ContainsFunc(b.Writable, func(w string) bool { return w == c || below(w, c) || below(c, w) })
	})
	if base == "" || len(caches) == 0 {
		return
	}
	own := filepath.Join(base, shortHash(root))
	if os.MkdirAll(own, 0o700) != nil {
		return
	}
	sweepCaches(base)
	if !b.Support.Overlay {
		b.Private = own
		b.Writable = append(b.Writable, realDir(own))
		return
	}
	// Two mounts must not share an upper folder: a command beside another one gets a copy that ends with it.
	// overlayfs leaves the result undefined when two mounts share an upper or work folder (kernel documentation,
	// filesystems/overlayfs, "Sharing and copying layers").
	if free := lockFolder(own); free != nil {
		b.unlock = sync.OnceFunc(free)
	} else {
		extra, err := os.MkdirTemp(base, "beside-")
		if err != nil {
			return
		}
		own = extra
		b.unlock = sync.OnceFunc(func() { removeOverlay(extra) })
	}
	for _, c := range caches {
		l := layer{Place: c, Upper: filepath.Join(own, shortHash(c), "upper"), Work: filepath.Join(own, shortHash(c), "work")}
		if strings.ContainsAny(c+own, `,:\`) || os.MkdirAll(l.Upper, 0o700) != nil || os.MkdirAll(l.Work, 0o700) != nil {
			continue // such names cannot be written into the options of a mount; the cache stays read-only
		}
		b.Caches = append(b.Caches, l)
		b.Writable = append(b.Writable, c)
	}
}

// cacheVariables are those by which tools find their caches.
// The values are folders below Box.Private.
var cacheVariables = map[string]string{
	"GOCACHE": "go-build", "npm_config_cache": "npm", "PIP_CACHE_DIR": "pip", "UV_CACHE_DIR": "uv", "YARN_CACHE_FOLDER": "yarn", "CCACHE_DIR": "ccache", "SCCACHE_DIR": "sccache",
	"DENO_DIR": "deno", "BUN_INSTALL_CACHE_DIR": "bun", "GOLANGCI_LINT_CACHE": "golangci-lint", "RUFF_CACHE_DIR": "ruff", "MYPY_CACHE_DIR": "mypy",
}

// withPrivate sends tools to the private folder, where there is no overlay.
func (b *Box) withPrivate(env []string) []string {
	if b.Private == "" {
		return env
	}
	for name, dir := range cacheVariables {
		env = append(env, name+"="+filepath.Join(b.Private, dir))
	}
	return env
}

// shortHash is a folder name of 16 characters: paths are too long for one, and hold slashes.
func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:8])
}

// sweepCaches removes what no command has used for long, and what a crash left of commands beside others.
func sweepCaches(base string) {
	entries, _ := os.ReadDir(base)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !e.IsDir() || time.Since(info.ModTime()) < cacheAge {
			continue
		}
		path := filepath.Join(base, e.Name())
		if unlock := lockFolder(path); unlock != nil { // no command uses it
			removeOverlay(path)
			unlock()
		}
	}
}

// removeOverlay removes upper and work folders: overlayfs leaves a folder of mode 0 in work, which RemoveAll could
// not look into.
func removeOverlay(dir string) {
	work, _ := filepath.Glob(filepath.Join(dir, "*", "work", "work"))
	for _, w := range work {
		_ = os.Chmod(w, 0o700)
	}
	_ = os.RemoveAll(dir)
}
