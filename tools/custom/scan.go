package custom

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// kind tells what a file is, which decides how it is loaded and whether its hooks are called.
type kind int

const (
	toolFile kind = iota
	pluginFile
	manifestFile
)

// file is a file that was found. Of one path the first find counts, so a plugin that the configuration names keeps its
// options although a folder holds it, too.
type file struct {
	path    string // what identifies it
	kind    kind
	options map[string]any // a plugin's, from the configuration
	name    string         // for people
}

// The names are OpenCode's; both the singular and the plural are in use.
var folders = []struct {
	name string
	kind kind
}{{"tool", toolFile}, {"tools", toolFile}, {"plugin", pluginFile}, {"plugins", pluginFile}}

// maxFiles bounds how many entries of one folder are looked at: every step of a turn stats them all. Entries come sorted
// by name, so it is always the same ones.
const maxFiles = 200

// scan finds the files of all folders, in the order in which later ones count. Packages are installed the first time.
// Callers hold load, which guards resolved.
func (h *Host) scan(ctx context.Context) []file {
	o := h.o
	var out []file
	seen := map[string]bool{}
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
			// An installation takes seconds, so its result is kept, a failure included: retrying at every step would
			// stall each turn while there is no network.
			if path, err = Resolve(ctx, p.Spec, p.Dir, o.CacheDir); err != nil && ctx.Err() != nil {
				continue // another time
			} else if err != nil {
				h.notice("warning", "The plugin "+p.Spec+" is left out: "+err.Error())
			}
			h.resolved[p.Spec] = path
		}
		if path != "" {
			add(file{path: path, kind: pluginFile, options: p.Options, name: p.Spec})
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
					// Declarations hold no code, and tests would run at load time.
					if !strings.HasSuffix(e.Name(), ".d.ts") && !strings.Contains(e.Name(), ".test.") {
						add(file{path: path, kind: in.kind, name: e.Name()})
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

// stampOf is a file's size and times; empty where it is no regular file. A symbolic link is followed, so a change of what
// it leads to counts.
func stampOf(path string) string {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return fmt.Sprintf("%d %d", info.Size(), info.ModTime().UnixNano())
}

// stampAll is the stamp of a file with all that was bundled into it; the order of the paths does not matter. A missing
// file has an empty line of its own: making it changes the stamp.
func stampAll(paths []string) string {
	paths = slices.Clone(paths)
	slices.Sort(paths)
	var b strings.Builder
	for _, p := range paths {
		b.WriteString(stampOf(p) + "\n")
	}
	return b.String()
}
