package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// gitFiles are git's folders and files for a worktree. All paths are absolute, with links resolved.
type gitFiles struct {
	dirs     []string // folders of the repository: .git, or the common folder of a linked worktree
	writable []string // outside the root: the common folder, and other linked worktrees; not the main worktree, which should not change
	readOnly []string // hooks and configuration, since git runs the programs in them
	hooks    []string // folders of hooks, which may not exist yet; makeHooks adds them to readOnly
	pinned   []string // folders that may not be renamed: a copy with other hooks could take their place
}

// makeHooks creates missing folders of hooks, as git init does, and adds all of them to readOnly. Otherwise the command could
// create the folder with a hook in it, which the person's next commit would run.
func (g *gitFiles) makeHooks() {
	for _, dir := range g.hooks {
		if missing(dir) {
			_ = os.Mkdir(dir, 0o755)
		}
	}
	g.readOnly = append(g.readOnly, existing(g.hooks)...)
}

// gitPlaces finds git's folders and files for the worktree at root. A .git file in the project can name any folder
// ("gitdir: /home/me/other"), which must not become writable. So a folder outside the root counts only if it names this
// worktree in turn, or is where git keeps the repositories of submodules.
func gitPlaces(root string) gitFiles {
	var g gitFiles
	root = realDir(root)
	dot := filepath.Join(root, ".git")
	info, err := os.Lstat(dot)
	switch {
	case err != nil:
		return g
	case info.IsDir():
		g.common(dot)
	// A linked worktree or a submodule: .git is a file that names the folder (gitrepository-layout(5)).
	case info.Mode().IsRegular():
		g.readOnly = append(g.readOnly, dot)
		dir, ok := pointer(dot, "gitdir: ", root)
		if !ok {
			return g
		}
		common, ok := pointer(filepath.Join(dir, "commondir"), "", dir)
		back, ok2 := pointer(filepath.Join(dir, "gitdir"), "", dir)
		switch {
		// A linked worktree (git-worktree(1)): the folder is in .git/worktrees of its repository, and its file gitdir names this .git.
		case ok && ok2 && realDir(filepath.Dir(back)) == root && filepath.Base(back) == ".git" && filepath.Dir(dir) == filepath.Join(common, "worktrees"):
			g.writable = append(g.writable, common)
			g.common(common)
		case submoduleOf(root, dir):
			g.writable = append(g.writable, dir)
			g.common(dir)
		}
	}
	// Paths below the root are writable already.
	g.writable = slices.DeleteFunc(g.writable, func(p string) bool { return below(root, p) })
	return g
}

// common adds the folder of a repository, its hooks and settings, and those of its other worktrees and its submodules.
// info/attributes is read-only because it decides for which files git runs filters.
func (g *gitFiles) common(dir string) {
	g.dirs = append(g.dirs, dir)
	g.pinned = append(g.pinned, dir)
	g.hooks = append(g.hooks, filepath.Join(dir, "hooks"))
	g.readOnly = append(g.readOnly, existing([]string{filepath.Join(dir, "config"), filepath.Join(dir, "config.worktree"), filepath.Join(dir, "info", "attributes")})...)
	trees, _ := os.ReadDir(filepath.Join(dir, "worktrees"))
	for _, t := range trees {
		own := filepath.Join(dir, "worktrees", t.Name())
		g.readOnly = append(g.readOnly, existing([]string{filepath.Join(own, "config.worktree")})...)
		dot, ok := pointer(filepath.Join(own, "gitdir"), "", own)
		if !ok {
			continue
		}
		// As for root, another worktree counts only if its .git names this folder in turn.
		if back, ok := pointer(dot, "gitdir: ", filepath.Dir(dot)); ok && back == own {
			g.writable = append(g.writable, filepath.Dir(dot))
			g.readOnly = append(g.readOnly, dot)
		}
	}
	// The repositories of submodules have hooks and settings of their own.
	modules, _ := filepath.Glob(filepath.Join(dir, "modules", "*"))
	for _, m := range modules {
		g.pinned = append(g.pinned, existing([]string{m})...)
		g.readOnly = append(g.readOnly, existing([]string{filepath.Join(m, "hooks"), filepath.Join(m, "config")})...)
	}
}

// pointer reads the path in one of git's one-line files, after prefix, and resolves its links. A relative path starts at base.
// A file longer than 16 KiB is not such a file.
func pointer(file, prefix, base string) (string, bool) {
	info, err := os.Lstat(file)
	if err != nil || !info.Mode().IsRegular() || info.Size() > 1<<14 {
		return "", false
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return "", false
	}
	path, ok := strings.CutPrefix(strings.TrimRight(string(b), "\r\n"), prefix)
	if !ok || path == "" {
		return "", false
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(base, path)
	}
	real, err := filepath.EvalSymlinks(path)
	return real, err == nil
}

// submoduleOf reports whether dir is below .git/modules of a folder above root, which is where git keeps the repository of a
// submodule. It tries every folder up to the root of the file system.
func submoduleOf(root, dir string) bool {
	for at := filepath.Dir(root); ; at = filepath.Dir(at) {
		if below(filepath.Join(at, ".git", "modules"), dir) {
			return true
		}
		if at == filepath.Dir(at) {
			return false
		}
	}
}
