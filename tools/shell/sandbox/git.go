package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// gitFiles are the folders and files of git for a worktree. All paths are absolute and resolved.
type gitFiles struct {
	dirs     []string // folders of the repository: .git, or the common folder of a linked worktree
	writable []string // outside the root: the common folder of a linked worktree, other linked ones (not the main one: whoever works in a linked one does not expect it to change)
	readOnly []string // hooks and configuration: git runs what they name
	hooks    []string // the folders of hooks, to be read-only as well; some are not there
	pinned   []string // folders that may not be moved away: the hooks and settings in them would go along
}

// makeHooks makes the folders of hooks that are not there, as git does, so that they can be kept read-only.
// Otherwise the command could make the folder with a hook in it, which the person's next commit would run.
func (g *gitFiles) makeHooks() {
	for _, dir := range g.hooks {
		if missing(dir) {
			_ = os.Mkdir(dir, 0o755)
		}
	}
	g.readOnly = append(g.readOnly, existing(g.hooks)...)
}

// gitPlaces finds git's folders of a worktree. A file in the project could name any folder as git's, so nothing
// outside counts unless it points back.
// The attack is a .git file that says "gitdir: /home/me/other": its folder would become writable.
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
		// A linked worktree: the folder must name this .git in turn and be among the worktrees of its repository.
		case ok && ok2 && realDir(filepath.Dir(back)) == root && filepath.Base(back) == ".git" && filepath.Dir(dir) == filepath.Join(common, "worktrees"):
			g.writable = append(g.writable, common)
			g.common(common)
		case submoduleOf(root, dir):
			g.writable = append(g.writable, dir)
			g.common(dir)
		}
	}
	// What is in the root is writable already.
	g.writable = slices.DeleteFunc(g.writable, func(p string) bool { return below(root, p) })
	return g
}

// common adds the folder of a repository, its hooks and settings, and those of its other worktrees and its submodules.
// info/attributes is read-only because it decides on which files git runs filters.
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
		// Another worktree counts only when it points back, like the one at root.
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

// pointer reads a path out of one of git's one-line files, resolved; relative ones start at base.
// 16 KiB are more than any path; a longer file is something else.
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

// submoduleOf reports that dir is among the submodules of a repository around root (.git/modules), where git keeps the
// repository of a submodule at root. It goes up to the root of the file system.
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
