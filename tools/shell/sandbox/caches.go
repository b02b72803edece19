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

// All projects of a person share the caches of build tools and package managers. If a command could write to them, the next
// build of another project would run what it wrote, outside the sandbox. So each project gets private caches: an overlay
// over the person's cache where the system offers overlays (Support.Overlay), else a folder that is named to the tools in
// environment variables (cacheVariables), while the person's caches stay read-only.

// layer is an overlay mount over a cache: the command sees the contents of Place, and its writes go to Upper.
type layer struct {
	Place string `json:"place"`
	Upper string `json:"upper"`
	Work  string `json:"work"` // the work folder of overlayfs, which must be on the same file system as Upper
}

// cacheAge is how long a project's private caches are kept after their last use, which is the modification time of their folder:
// lockFolder sets it.
const cacheAge = 30 * 24 * time.Hour

// privateCaches sets up the private caches of the project at root, in a folder below base, and makes them writable for the
// command. A cache for which this fails stays read-only: builds are slower then, but the person's cache cannot change.
func (b *Box) privateCaches(base, root string, caches []string) {
	caches = slices.DeleteFunc(slices.Clone(caches), func(c string) bool { // caches in writable places (project, /tmp) need no private copy
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
	// Two overlay mounts must not share an upper or work folder: the result is undefined (kernel documentation,
	// filesystems/overlayfs, "Sharing and copying layers"). So while one command uses the project's caches, a second one gets
	// temporary caches, which are removed after it.
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
			continue // mount options cannot hold such names; the cache stays read-only
		}
		b.Caches = append(b.Caches, l)
		b.Writable = append(b.Writable, c)
	}
}

// cacheVariables maps the environment variables in which tools look for their cache folder to folders below Box.Private.
var cacheVariables = map[string]string{
	"GOCACHE": "go-build", "npm_config_cache": "npm", "PIP_CACHE_DIR": "pip", "UV_CACHE_DIR": "uv", "YARN_CACHE_FOLDER": "yarn", "CCACHE_DIR": "ccache", "SCCACHE_DIR": "sccache",
	"DENO_DIR": "deno", "BUN_INSTALL_CACHE_DIR": "bun", "GOLANGCI_LINT_CACHE": "golangci-lint", "RUFF_CACHE_DIR": "ruff", "MYPY_CACHE_DIR": "mypy",
}

// withPrivate adds cacheVariables to the environment where there are no overlays.
func (b *Box) withPrivate(env []string) []string {
	if b.Private == "" {
		return env
	}
	for name, dir := range cacheVariables {
		env = append(env, name+"="+filepath.Join(b.Private, dir))
	}
	return env
}

// shortHash turns a path into a folder name of 16 characters.
func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:8])
}

// sweepCaches removes caches that were not used for cacheAge, temporary ones that a crash left behind included.
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

// removeOverlay removes a folder with upper and work folders. overlayfs leaves a folder of mode 0 in each work folder, which
// RemoveAll cannot read, so its mode is changed first.
func removeOverlay(dir string) {
	work, _ := filepath.Glob(filepath.Join(dir, "*", "work", "work"))
	for _, w := range work {
		_ = os.Chmod(w, 0o700)
	}
	_ = os.RemoveAll(dir)
}
