package sandbox

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// defaultProcesses is the limit of processes and threads: enough for a parallel build, whose programs start several threads for
// each processor (Go, Java, Node), and low enough to stop a fork bomb. RLIMIT_NPROC and pids.max both count threads.
func defaultProcesses() int { return 768 + 64*runtime.NumCPU() }

// tempPlaces are the temporary folders of the system. /dev/shm is for POSIX semaphores and shared memory (shm_overview(7)), which
// Python and browsers need.
func tempPlaces(getenv func(string) string) []string {
	if runtime.GOOS == "windows" {
		return []string{os.TempDir()}
	}
	return []string{getenv("TMPDIR"), "/tmp", "/var/tmp", "/dev/shm"}
}

// cachePlaces are the caches of build tools and package managers. Folders of programs on PATH (~/go/bin, ~/.cargo/bin) are not
// among them.
func cachePlaces(home string, getenv func(string) string) []string {
	var out []string
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "npm_config_cache", "YARN_CACHE_FOLDER", "PIP_CACHE_DIR", "UV_CACHE_DIR", "CCACHE_DIR", "SCCACHE_DIR", "DENO_DIR", "BUN_INSTALL_CACHE_DIR", "NUGET_PACKAGES"} {
		if v := getenv(name); filepath.IsAbs(v) {
			out = append(out, v)
		}
	}
	for _, d := range filepath.SplitList(getenv("GOPATH")) {
		out = append(out, filepath.Join(d, "pkg"))
	}
	if v := getenv("CARGO_HOME"); filepath.IsAbs(v) {
		out = append(out, filepath.Join(v, "registry"), filepath.Join(v, "git"))
	}
	if home == "" {
		return out
	}
	cache := getenv("XDG_CACHE_HOME")
	if !filepath.IsAbs(cache) {
		cache = filepath.Join(home, ".cache")
		if runtime.GOOS == "darwin" {
			cache = filepath.Join(home, "Library", "Caches")
		}
	}
	makeCaches(home, cache, getenv)
	for _, name := range []string{
		"go-build", "golangci-lint", "gopls", "staticcheck", "goimports", "pip", "uv", "pypoetry", "pipenv", "virtualenv", "pre-commit", "mypy", "ruff", "yarn", "pnpm", "node", "node-gyp", "deno", "bun",
		"typescript", "turbo", "ms-playwright", "Cypress", "electron", "ccache", "sccache", "bazel", "zig", "composer", "helm", "hardhat", "coursier", "fontconfig", "Homebrew",
	} {
		out = append(out, filepath.Join(cache, name))
	}
	for _, name := range []string{
		"go/pkg", ".npm", ".pnpm-store", ".local/share/pnpm/store", ".yarn/cache", ".yarn/berry", ".bun/install/cache", ".cargo/registry", ".cargo/git", ".gradle/caches", ".gradle/daemon", ".gradle/native", ".gradle/wrapper",
		".m2/repository", ".ivy2/cache", ".sbt/boot", ".nuget/packages", ".gem/cache", ".bundle/cache", ".hex", ".mix/archives", ".cabal/packages", ".stack/pantry", ".opam/download-cache", ".pub-cache/hosted", ".swiftpm/cache", ".terraform.d/plugin-cache",
	} {
		out = append(out, filepath.Join(home, name))
	}
	return out
}

// makeCaches creates the default cache folders of installed tools. In the sandbox a tool could not create its own on first use,
// and most fail without it.
func makeCaches(home, cache string, getenv func(string) string) {
	if _, err := os.Stat(home); err != nil {
		return
	}
	for _, c := range [...]struct{ program, variable, dir string }{
		{"go", "GOCACHE", filepath.Join(cache, "go-build")},
		{"go", "GOPATH", filepath.Join(home, "go", "pkg")},
		{"npm", "npm_config_cache", filepath.Join(home, ".npm")},
		{"pip", "PIP_CACHE_DIR", filepath.Join(cache, "pip")},
		{"uv", "UV_CACHE_DIR", filepath.Join(cache, "uv")},
		{"yarn", "YARN_CACHE_FOLDER", filepath.Join(cache, "yarn")},
		{"cargo", "CARGO_HOME", filepath.Join(home, ".cargo", "registry")},
	} {
		// If the variable is set, the tool uses another folder, which is the person's responsibility.
		if getenv(c.variable) != "" {
			continue
		}
		if _, err := os.Stat(c.dir); err == nil {
			continue
		}
		if _, err := exec.LookPath(c.program); err == nil {
			_ = os.MkdirAll(c.dir, 0o700)
		}
	}
}

// ownTemp creates a temporary folder in the home folder if the system's is not writable in the sandbox, for example because the home
// folder is below /tmp (see outermost). It is empty when none is needed or none can be created.
func ownTemp(home string, writable []string, getenv func(string) string) string {
	if runtime.GOOS == "windows" || home == "" {
		return ""
	}
	at := getenv("TMPDIR")
	if at == "" {
		at = os.TempDir()
	}
	at = realDir(at)
	if slices.ContainsFunc(writable, func(w string) bool { return w == at || below(w, at) }) {
		return ""
	}
	own := filepath.Join(realDir(home), ".cache", "pillion-sandbox-tmp")
	if os.MkdirAll(own, 0o700) != nil {
		return ""
	}
	return own
}

// expandHome replaces a leading "~/" by the home folder. Relative paths are dropped, since there is no folder they could start at.
func expandHome(paths []string, home string) []string {
	out := []string{}
	for _, p := range paths {
		if rest, ok := strings.CutPrefix(p, "~/"); ok && home != "" {
			p = filepath.Join(home, rest)
		}
		if filepath.IsAbs(p) {
			out = append(out, p)
		}
	}
	return out
}

// existing resolves the links of the paths that exist, and drops the others. The lists of a Box need resolved paths because
// below compares them as strings.
func existing(paths []string) []string {
	var out []string
	for _, p := range paths {
		if p == "" {
			continue
		}
		if real, err := filepath.EvalSymlinks(p); err == nil && !slices.Contains(out, real) {
			out = append(out, real)
		}
	}
	return out
}

// resolveAll resolves the links of the paths that exist and keeps the others, since an allowed path may not exist yet.
func resolveAll(paths []string) []string {
	var out []string
	for _, p := range paths {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			p = real
		}
		out = append(out, filepath.Clean(p))
	}
	return out
}

// realDir is the path with its links resolved, or dir itself if it does not exist.
func realDir(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}

// missing reports whether nothing exists at p, not even a dangling link.
func missing(p string) bool {
	_, err := os.Lstat(p)
	return err != nil
}

// outermost sorts the paths and drops those inside others, and those that would make too much writable: the root, the home folder
// and the folders above it.
func outermost(paths []string, home string) []string {
	real := realDir(home)
	var out []string
	for _, p := range paths {
		// TMPDIR or a cache variable that names the home folder must not make all of it writable.
		if p == "/" || home != "" && below(p, real) || home != "" && p == real {
			if len(out) > 0 || p == "/" { // only the project itself, which comes first, may be the home folder
				continue
			}
		}
		if !slices.ContainsFunc(out, func(o string) bool { return o == p || below(o, p) }) {
			out = slices.DeleteFunc(out, func(o string) bool { return below(p, o) })
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return out
}

// sockets lists the Unix sockets on which other programs listen, at most 256, from /proc/net/unix. A command could ask tmux,
// Docker, the session bus or an editor to do what it may not do itself. With a network, databases stay reachable (see reachable).
// The fourth field has the flags, of which 00010000 (__SO_ACCEPTCON) marks a listener (proc_net(5)).
func sockets(network bool, writable []string) []string {
	f, err := os.Open("/proc/net/unix")
	if err != nil {
		return nil
	}
	defer f.Close()
	var out []string
	for s := bufio.NewScanner(f); s.Scan() && len(out) < 256; {
		fields := strings.Fields(s.Text())
		if len(fields) < 8 || fields[3] != "00010000" || !strings.HasPrefix(fields[7], "/") {
			continue // not listening, or without a path
		}
		path := strings.Join(fields[7:], " ")
		if reachable(path, network) {
			continue
		}
		if real, err := filepath.EvalSymlinks(path); err == nil && !slices.Contains(out, real) {
			out = append(out, real)
		}
	}
	return out
}

// reachable reports whether a command may connect to this socket outside the sandbox: name services always, local databases only
// if the command has the network.
func reachable(path string, network bool) bool {
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(path, w) })
	}
	return has("/run/nscd/", "/run/systemd/resolve/") || network && has("postgres", "PGSQL", "mysql", "redis", "memcached")
}
