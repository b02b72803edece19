package builtin

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"unicode/utf8"

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

// maxListed is how many names of a folder links reads to know what is not there: with more of them, asking for each name is as fast.
const maxListed = 256

// links returns a test: is any part of a path below base a symbolic link? Nearly all names that are asked for do not exist, so that reading
// the folder once takes the place of a hundred questions. It remembers what it has seen of the folders below, because many names begin with
// the same few. base itself must have no links.
func links(base string) func(rel string) bool {
	const absent, plain, link = 1, 2, 3
	seen := map[string]int{}
	here, listed := entries(base)
	var look func(rel string) int
	look = func(rel string) int {
		if rel == "." {
			return plain
		}
		if is, ok := seen[rel]; ok {
			return is
		}
		dir := filepath.Dir(rel)
		is := look(dir)
		if listed && dir == "." && !here[strings.ToLower(rel)] {
			is = absent
		}
		if is == plain {
			switch there, linked := files.Look(filepath.Join(base, rel)); {
			case !there:
				is = absent
			case linked:
				is = link
			}
		}
		seen[rel] = is
		return is
	}
	return func(rel string) bool { return look(rel) == link }
}

// entries are the names in a folder, in lower case for file systems that do not tell the cases apart. all is false where they do not say
// what is absent: for a folder that cannot be read or has more than maxListed of them, and when one is not in ASCII, because some file
// systems take ß for ss.
func entries(dir string) (in map[string]bool, all bool) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	list, err := f.Readdirnames(maxListed)
	if err != nil && err != io.EOF || len(list) == maxListed {
		return nil, false
	}
	in = make(map[string]bool, len(list))
	for _, name := range list {
		if strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf }) {
			return nil, false
		}
		in[strings.ToLower(name)] = true
	}
	return in, true
}
