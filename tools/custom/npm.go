package custom

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/guard"
)

// packageName matches what npm allows as a package's name, with or without a scope. Anything else could be an option, a URL or a path
// on npm's command line.
var packageName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(@[a-z0-9~-][a-z0-9._~-]*/)?[a-z0-9~-][a-z0-9._~-]*$`)
})

// Resolve returns the entry file of a configured plugin. spec is a path (./x.ts, /x.ts, file:///x.ts, a folder), relative to dir, or an
// npm package as name or name@version. A package is installed into the cache once, without running its scripts, and stays as installed
// with its lock file: a newer "latest" is not fetched, as code that a person has accepted must not change by itself. Errors are for the
// person and name the spec. installing is called before an installation, which takes seconds; it may be nil.
func Resolve(ctx context.Context, spec, dir, cache string, installing func()) (file string, err error) {
	if rest, ok := strings.CutPrefix(spec, "file://"); ok {
		u, err := url.Parse(spec)
		if err != nil {
			return "", fmt.Errorf("%q is no file address", rest)
		}
		spec = filepath.FromSlash(u.Path)
	}
	if strings.HasPrefix(spec, ".") || filepath.IsAbs(spec) {
		if !filepath.IsAbs(spec) {
			spec = filepath.Join(dir, spec)
		}
		if info, err := os.Stat(spec); err == nil && info.IsDir() { // a package, or a folder with an index file
			return folderEntry(spec)
		}
		if stampOf(spec) == "" {
			return "", fmt.Errorf("there is no file %s", spec)
		}
		return spec, nil
	}
	root, err := packageRoot(ctx, spec, cache, installing)
	if err != nil {
		return "", err
	}
	return entry(root)
}

// packageRoot is the folder of an npm package, name or name@version, in the cache, where it is installed if it is not yet.
func packageRoot(ctx context.Context, spec, cache string, installing func()) (string, error) {
	// The first @ of a scoped name (@scope/name@1.2.3) belongs to the name, so the last one counts, and only behind the first byte.
	name, version := spec, "latest"
	if i := strings.LastIndexByte(spec, '@'); i > 0 {
		name, version = spec[:i], spec[i+1:]
	}
	// A version may be a range or a tag. Slashes and colons are refused, because with them npm accepts a Git address, a URL or a folder,
	// whose code does not come from a registry.
	if !packageName().MatchString(name) || version == "" || strings.HasPrefix(version, "-") || strings.ContainsAny(version, " \t\n;|&$`/:") {
		return "", fmt.Errorf("%q is neither a path nor an npm package", spec)
	}
	// A folder for each name and version, so that plugins may need different versions of a package.
	home := filepath.Join(cache, "plugins", toolID(name)+"@"+toolID(version))
	root := filepath.Join(home, "node_modules", filepath.FromSlash(name))
	if _, err := os.Stat(filepath.Join(root, "package.json")); err != nil {
		if installing != nil {
			installing()
		}
		if err := install(ctx, home, name+"@"+version); err != nil {
			return "", fmt.Errorf("%s could not be installed: %w", spec, err)
		}
	}
	return root, nil
}

// install runs npm in a folder of the package's own. With --ignore-scripts the installation runs no code of the package, and "--" keeps
// spec from being read as an option. There is no limit but ctx for a registry that does not answer. The error includes npm's output, cut
// to 500 bytes.
func install(ctx context.Context, home, spec string) error {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return errors.New("npm is not on PATH")
	}
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	// Without a package.json npm would install into the nearest folder above that has one.
	if err := os.WriteFile(filepath.Join(home, "package.json"), []byte("{\"private\": true}\n"), 0o600); err != nil {
		return err
	}
	cmd := guard.CommandContext(ctx, guard.Helper, npm, "install", "--ignore-scripts", "--no-audit", "--no-fund", "--save-exact", "--loglevel=error", "--", spec)
	cmd.Dir, cmd.WaitDelay = home, endGrace
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, tools.Cut(strings.TrimSpace(out.String()), 500))
	}
	return nil
}

// folderEntry is the file that an import of a folder loads: the entry of its package.json, else its index file.
func folderEntry(dir string) (string, error) {
	if _, err := os.Stat(filepath.Join(dir, "package.json")); err == nil {
		return entry(dir)
	}
	for _, name := range []string{"index.ts", "index.js", "index.mjs", "index.mts"} {
		if path := filepath.Join(dir, name); stampOf(path) != "" {
			return path, nil
		}
	}
	return "", fmt.Errorf("the folder %s has neither package.json nor index.ts", dir)
}

// entry is the file of a package that holds its plugin. It must be in the package and exist. A package that has plugins for several
// surfaces names that of the agent in exports["./server"], as OpenCode does; otherwise it is the file that an import of the package loads, whose
// fields are tried in the order that bundlers use: exports, module, main.
func entry(root string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(root, "package.json"))
	if err != nil {
		return "", err
	}
	var p struct {
		Exports json.RawMessage
		Module  string
		Main    string
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return "", fmt.Errorf("%s: %w", root, err)
	}
	for _, name := range []string{exported(p.Exports, "./server"), exported(p.Exports, "."), p.Module, p.Main, "index.js", "index.mjs", "index.ts"} {
		if name == "" {
			continue
		}
		path := filepath.Join(root, filepath.FromSlash(name))
		// A package that names ../../x as its entry would load a file that is not part of what was installed.
		if rel, err := filepath.Rel(root, path); err == nil && !strings.HasPrefix(rel, "..") && stampOf(path) != "" {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s has no entry", root)
}

// exported is the file of a subpath ("." is the package itself) in the exports field of a package.json, for an import; "" if there is none. The
// field is a string, an object of conditions that may be nested, or an object of subpaths with one of the two for each.
func exported(raw json.RawMessage, subpath string) string {
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) == nil {
		for key := range m {
			if strings.HasPrefix(key, ".") {
				return conditional(m[subpath])
			}
		}
	}
	if subpath != "." {
		return ""
	}
	return conditional(raw)
}

// conditional is the file that the conditions of an import in Node lead to. Only these are followed, in this order, whereas Node uses the
// order in the file; see "Conditional exports" in Node's documentation of packages.
func conditional(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil {
		return ""
	}
	for _, key := range []string{"import", "node", "default"} {
		if found := conditional(m[key]); found != "" {
			return found
		}
	}
	return ""
}
