package custom

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// kind says what a file is. It decides how the file is loaded and whether its hooks are called.
type kind int

const (
	toolFile kind = iota
	pluginFile
	manifestFile
)

// file is a tool, plugin or manifest that scan found. If it finds a path twice, the first counts, so a plugin in the configuration keeps its
// options when a folder contains it too.
type file struct {
	path    string // identifies the file in all maps of this package
	kind    kind
	options map[string]any // a plugin's, from the configuration
	name    string         // for people
	owner   string         // the plugin, whichever version of it: to whom accounts belong
}

// folders are the places in each of Options.Dirs. The names are OpenCode's, which has used both the singular and the plural.
var folders = []struct {
	name string
	kind kind
}{{"tool", toolFile}, {"tools", toolFile}, {"plugin", pluginFile}, {"plugins", pluginFile}}

// maxFiles bounds the entries of one folder, as every step of a turn stats them all. Entries are sorted by name, so it is always the
// same ones that are left out.
const maxFiles = 200

// scan finds the plugins of the configuration and the files of all folders; of tools with equal names, the later one wins. npm packages are
// installed the first time. The caller holds load, which guards resolved.
func (h *Host) scan(ctx context.Context) []file {
	o := h.o
	var out []file
	seen := map[string]bool{}
	// add skips paths that were found before, and files that do not exist.
	add := func(f file) {
		if seen[f.path] {
			return
		}
		if stampOf(f.path) != "" {
			seen[f.path] = true
			out = append(out, f)
		}
	}
	for _, p := range o.Plugins {
		path, ok := h.resolved[p.Spec]
		if !ok {
			var err error
			// An installation takes seconds, so the result is kept, even a failure: without a network, a retry in every step would stall
			// each turn.
			if path, err = Resolve(ctx, p.Spec, p.Dir, o.CacheDir, func() { h.notice("info", "Installing the plugin "+p.Spec+" from npm …") }); err != nil && ctx.Err() != nil {
				continue // cancelled, so nothing is known of the plugin; the next scan tries again
			} else if err != nil {
				h.notice("warning", "The plugin "+p.Spec+" is left out: "+err.Error())
			}
			h.resolved[p.Spec] = path
		}
		if path != "" {
			add(file{path: path, kind: pluginFile, options: p.Options, name: p.Spec, owner: ownerOf(p.Spec, path)})
		}
	}
	for _, dir := range o.Dirs {
		for _, in := range folders {
			entries, err := os.ReadDir(filepath.Join(dir, in.name))
			if err != nil {
				continue
			}
			for _, e := range entries[:min(len(entries), maxFiles)] {
				path := filepath.Join(dir, in.name, e.Name())
				switch filepath.Ext(e.Name()) {
				case ".js", ".ts", ".mjs", ".mts":
					// Type declarations hold no code, and a test file would run its tests when it is loaded.
					if !strings.HasSuffix(e.Name(), ".d.ts") && !strings.Contains(e.Name(), ".test.") {
						add(file{path: path, kind: in.kind, name: e.Name(), owner: path})
					}
				case ".json":
					if in.kind == toolFile && e.Name() != "package.json" && e.Name() != "package-lock.json" && e.Name() != "tsconfig.json" {
						add(file{path: path, kind: manifestFile, name: e.Name()})
					}
				}
			}
		}
	}
	return out
}

// ownerOf identifies a plugin of the configuration: a package by its name without the version, anything else by its file.
func ownerOf(spec, path string) string {
	name := spec
	if i := strings.LastIndexByte(spec, '@'); i > 0 {
		name = spec[:i]
	}
	if packageName().MatchString(name) && !strings.HasPrefix(spec, ".") && !strings.HasPrefix(spec, "file:") {
		return name
	}
	return path
}

// stampOf is a file's size in bytes and time of modification in nanoseconds; empty if it is not a regular file. Symbolic links are
// followed, so a change of the target counts.
func stampOf(path string) string {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return fmt.Sprintf("%d %d", info.Size(), info.ModTime().UnixNano())
}

// stampAll is the combined stamp of a file and all that was bundled into it; the order of the paths does not matter. A missing file is an
// empty line, so creating it changes the stamp.
func stampAll(paths []string) string {
	paths = slices.Clone(paths)
	slices.Sort(paths)
	var b strings.Builder
	for _, p := range paths {
		b.WriteString(stampOf(p) + "\n")
	}
	return b.String()
}
