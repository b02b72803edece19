package builtin

import (
	"os"
	"path/filepath"
	"sync"

	"github.com/pillion-dev/pillion/tools/files"
	"github.com/pillion-dev/pillion/tools/paths"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/shell/sandbox"
)

// protector returns a test for real paths, for one operation: a path is protected by its name, or because a setting or a link elsewhere
// leads to it, so that another program acts on it. The second kind is looked up once, at the first path that its name does not
// protect, because it reads Git's configuration.
func (w workspace) protector() func(real string) (reason string, ok bool) {
	led := sync.OnceValue(w.ledTo)
	return func(real string) (string, bool) {
		if reason, ok := w.protected(real, w.home()); ok {
			return reason, true
		}
		for place, reason := range led() {
			if paths.Within(place, real) {
				return reason, true
			}
		}
		return "", false
	}
}

// ledTo are places that are protected though their names do not say so, each with the reason: what git's settings and
// hooks lead to, and the targets of links with protected names in the home folder and at the top of the project
// (~/.bashrc that is kept in a project, .vscode/tasks.json that is shared).
func (w workspace) ledTo() map[string]string {
	out := map[string]string{}
	for _, place := range sandbox.GitRuns(w.root(), w.home()) {
		out[place] = "git's settings or hooks lead to it"
	}
	for _, dir := range []string{w.home(), w.root()} {
		if dir == "" {
			continue
		}
		base, err := files.Real(dir)
		if err != nil {
			continue
		}
		linked := links(base)
		for _, name := range permission.ProtectedPaths() {
			name = filepath.FromSlash(name)
			if !linked(name) {
				continue
			}
			path := filepath.Join(base, name)
			real, err := filepath.EvalSymlinks(path)
			if err != nil || real == path || real == base || paths.Within(real, base) {
				continue // not there, no link, or one to a folder that holds everything
			}
			if reason, ok := permission.Protected(path, w.home(), ""); ok {
				out[real] = filepath.ToSlash(relTo(base, path)) + " is a link to it: " + reason
			}
		}
	}
	return out
}

// links returns a test: is any part of a path below base a symbolic link? It remembers what it has seen of each folder, because nearly all
// names that are asked for begin with the same few folders, and most of these do not exist. base itself must have no links.
func links(base string) func(rel string) bool {
	const absent, plain, link = 1, 2, 3
	seen := map[string]int{}
	var look func(rel string) int
	look = func(rel string) int {
		if rel == "." {
			return plain
		}
		if is, ok := seen[rel]; ok {
			return is
		}
		is := look(filepath.Dir(rel))
		if is == plain {
			switch fi, err := os.Lstat(filepath.Join(base, rel)); {
			case err != nil:
				is = absent
			case fi.Mode()&os.ModeSymlink != 0:
				is = link
			}
		}
		seen[rel] = is
		return is
	}
	return func(rel string) bool { return look(rel) == link }
}
