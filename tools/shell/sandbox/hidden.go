package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// HiddenFiles finds the files of a project whose reading needs approval. The search runs before every command that runs without
// approval, so it caches the entries of each folder and reads only changed folders again. In a large project the kernel says which have
// changed (folderWatch); elsewhere the times of all folders are compared. The zero value is ready to use; it is safe for concurrent use.
type HiddenFiles struct {
	mu      sync.Mutex             // guards all fields
	key     string                 // ContainOptions.Rules when folders was filled; another key empties it
	folders map[string]*seenFolder // by absolute path
	left    int                    // entries that the present search may still read
	watch   *folderWatch           // nil: none
	alone   bool                   // the system watches no folders
	last    answer
}

// answer is what the last search found, while every change would be an event.
type answer struct {
	roots    []string
	suspects []string
	watched  bool // all of it: no folder must be looked at again
}

// fewFolders are compared by their times in less than a tenth of a millisecond, and are not worth a queue of the kernel.
const fewFolders = 64

// seenFolder is the cached result of reading a folder.
type seenFolder struct {
	info     fs.FileInfo
	settled  bool     // its modification time was older than timeGrain, so any later change gives it another time
	dirs     []string // paths of the folders in it; nil in the entry for a whole dependencies folder
	suspects []string // files in it (in a dependencies folder, below it) that Quiet does not cover, so Hidden must be called
	watched  bool     // every change since it was read is an event
}

// maxLook is how many entries one search reads, which takes seconds at most. Folders that it does not reach are not readable for
// the command; the next search continues with them, since the others are cached.
const maxLook = 400_000

// timeGrain is the coarsest resolution of modification times in a file system (FAT: 2 s). A folder that changed more recently is
// read again, because a second change might leave its time as it is.
const timeGrain = 2 * time.Second

// dependencies are folders with thousands of files that a package manager wrote. They are searched completely once, and again only
// when the time of the top folder changes: checking every folder in them would take longer than most commands.
var dependencies = []string{"node_modules", "vendor", "target", ".venv", "__pycache__"}

// find returns the files below the roots for which hidden is true, and the folders that it could not search. quiet, which may
// be nil, is called once for each file and key. hidden is called for files for which quiet is false, in every search, since
// a grant may have changed its answer.
func (h *HiddenFiles) find(roots []string, hidden, quiet func(string) bool, key string) (found, unseen []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	suspects, unseen := h.suspects(roots, quiet, key)
	for _, path := range suspects {
		if hidden(path) {
			found = append(found, path)
		}
	}
	return append(found, h.otherNames(roots, found)...), unseen
}

// suspects returns the files below the roots for which quiet is false, and the folders that it could not search. mu is held.
func (h *HiddenFiles) suspects(roots []string, quiet func(string) bool, key string) (suspects, unseen []string) {
	if h.folders == nil || h.key != key {
		h.folders, h.key, h.last = map[string]*seenFolder{}, key, answer{}
	}
	if quiet == nil {
		quiet = func(string) bool { return false }
	}
	h.left = maxLook
	still := h.catchUp()
	at := make([]place, len(roots))
	for i, root := range roots {
		at[i] = place{root: root, watched: h.watches(root)}
		still = still && at[i].watched
	}
	if still && h.last.watched && slices.Equal(h.last.roots, roots) {
		return h.last.suspects, nil
	}
	h.last = answer{roots: slices.Clone(roots), watched: h.watch != nil}
	for i, root := range roots {
		if slices.ContainsFunc(roots, func(other string) bool { return below(other, root) }) {
			continue // searched as part of the other root
		}
		s, u := h.look(root, at[i], quiet)
		suspects, unseen = append(suspects, s...), append(unseen, u...)
	}
	h.last.suspects, h.last.watched = slices.Clip(suspects), h.last.watched && len(unseen) == 0
	return suspects, unseen
}

// catchUp forgets what is no longer so, as far as folders are watched. still reports that all that is watched is as it was.
func (h *HiddenFiles) catchUp() (still bool) {
	if h.watch == nil {
		if h.alone || len(h.folders) < fewFolders {
			return false
		}
		if h.watch = openFolderWatch(); h.watch == nil {
			h.alone = true
			return false
		}
	}
	changed, gone, ok := h.watch.catchUp()
	if !ok { // nothing is known: all are compared by their times once, and watched anew
		for _, f := range h.folders {
			f.watched = false
		}
		h.watch.close()
		h.watch = openFolderWatch()
		h.alone = h.watch == nil
		return false
	}
	for dir := range changed {
		delete(h.folders, dir)
	}
	h.forget(gone)
	return len(changed)+len(gone) == 0
}

// forget drops folders and all below them.
func (h *HiddenFiles) forget(gone map[string]bool) {
	if len(gone) == 0 {
		return
	}
	for dir := range h.folders {
		if within(gone, dir) {
			delete(h.folders, dir)
		}
	}
	h.watch.forget(gone)
}

// watches reports whether a root can be watched; what was below another folder of its name is forgotten.
func (h *HiddenFiles) watches(root string) bool {
	if h.watch == nil {
		return false
	}
	ok, moved := h.watch.root(root)
	if moved {
		h.forget(map[string]bool{root: true})
		h.last = answer{}
	}
	return ok
}

// place is where a folder is: below which root, and whether a folder of its path that was replaced would be an event.
type place struct {
	root    string
	watched bool
	inside  bool // of a dependencies folder
}

// within reports whether a folder or one above it is in the set.
func within(set map[string]bool, dir string) bool {
	for {
		if set[dir] {
			return true
		}
		up := filepath.Dir(dir)
		if up == dir {
			return false
		}
		dir = up
	}
}

// Linked returns a function that lists the other names of a file for which rules may ask, hard links of it below the roots: what may not
// be read as .env may not be read as notes.txt. For quiet and rules see ContainOptions. The function looks at the project at its first
// call for a file with several names, which is rare, and keeps what it found.
func (h *HiddenFiles) Linked(roots []string, quiet func(string) bool, rules string) func(real string) []string {
	type name struct {
		path string
		info fs.FileInfo
	}
	look := sync.OnceValue(func() (names []name) {
		h.mu.Lock()
		suspects, _ := h.suspects(existing(roots), quiet, rules)
		h.mu.Unlock()
		for _, path := range suspects {
			if info, err := os.Lstat(path); err == nil {
				names = append(names, name{path, info})
			}
		}
		return names
	})
	return func(real string) (paths []string) {
		info, err := os.Lstat(real)
		if err != nil || !info.Mode().IsRegular() || !hasOtherNames(info) {
			return nil
		}
		for _, n := range look() {
			if n.path != real && os.SameFile(n.info, info) {
				paths = append(paths, n.path)
			}
		}
		return paths
	}
}

// otherNames lists the other hard links of the found files, through which the same contents could be read. It searches the whole
// project, but only if a found file has more than one link, which is rare.
func (h *HiddenFiles) otherNames(roots, found []string) (names []string) {
	var linked []fs.FileInfo
	for _, path := range found {
		if info, err := os.Lstat(path); err == nil && hasOtherNames(info) {
			linked = append(linked, info)
		}
	}
	if len(linked) == 0 {
		return nil
	}
	left := maxLook
	for _, root := range roots {
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if left--; left < 0 {
				return fs.SkipAll
			}
			if err != nil || !d.Type().IsRegular() {
				return nil
			}
			info, err := d.Info()
			if err == nil && hasOtherNames(info) && !slices.Contains(found, path) && slices.ContainsFunc(linked, func(l fs.FileInfo) bool { return os.SameFile(l, info) }) {
				names = append(names, path)
			}
			return nil
		})
	}
	return names
}

// look returns the suspects below a folder, and the folders that could not be read or exceeded maxLook.
func (h *HiddenFiles) look(dir string, at place, quiet func(string) bool) (suspects, unseen []string) {
	f, err := h.folder(dir, at, quiet)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil: // a folder that cannot be listed may hold files that can be read by name
		return nil, []string{dir}
	}
	suspects, h.last.watched = f.suspects, h.last.watched && (f.watched || at.inside)
	if at.watched = f.watched; slices.Contains(dependencies, filepath.Base(dir)) {
		at.watched, at.inside = false, true // only the top of it counts
	}
	for _, sub := range f.dirs {
		whole := slices.Contains(dependencies, filepath.Base(sub))
		if seen := h.folders[sub]; whole && seen != nil && seen.dirs == nil && h.still(seen, sub, at) {
			h.last.watched = h.last.watched && (seen.watched || at.inside)
			suspects = append(slices.Clip(suspects), seen.suspects...)
			continue
		}
		s, u := h.look(sub, at, quiet)
		suspects, unseen = append(slices.Clip(suspects), s...), append(unseen, u...)
		// One cache entry for everything below a dependencies folder, so that the folders in it are not checked again.
		if top := h.folders[sub]; whole && len(u) == 0 && top != nil {
			h.folders[sub] = &seenFolder{info: top.info, settled: top.settled, suspects: s, watched: top.watched}
		}
	}
	return suspects, unseen
}

// still reports whether a folder is as it was read, and watches it from then on where that can be.
func (h *HiddenFiles) still(f *seenFolder, dir string, at place) bool {
	if f.watched && at.watched {
		return true
	}
	watched := at.watched && h.watch.add(dir, at.root) // first: what changes meanwhile is an event
	if !f.same(dir) {
		return false
	}
	f.watched = watched
	return true
}

// errTooMany is returned by folder once the search has read maxLook entries.
var errTooMany = errors.New("too many files to look at before one command")

// folder reads a folder, or returns the cached result if the folder has not changed.
func (h *HiddenFiles) folder(dir string, at place, quiet func(string) bool) (*seenFolder, error) {
	f := h.folders[dir]
	if f != nil && h.still(f, dir, at) {
		return f, nil
	}
	// Watched before it is read: what changes meanwhile is an event of the next search.
	watched := at.watched && h.watch.add(dir, at.root)
	if h.left <= 0 {
		return nil, errTooMany
	}
	// The time must be taken before reading: a change during the read then makes the folder's time newer than the cached one.
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	h.left -= len(entries) + 1
	f = &seenFolder{info: info, settled: time.Since(info.ModTime()) > timeGrain, dirs: []string{}, watched: watched}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case e.IsDir():
			if e.Name() != ".git" { // git's own data
				f.dirs = append(f.dirs, path)
			}
		case e.Type().IsRegular() && !quiet(path):
			f.suspects = append(f.suspects, path)
		}
	}
	h.folders[dir] = f
	return f, nil
}

// same reports whether the folder is still the one that was read, with the same entries.
func (f *seenFolder) same(dir string) bool {
	if !f.settled {
		return false
	}
	now, err := os.Lstat(dir)
	return err == nil && os.SameFile(now, f.info) && now.ModTime().Equal(f.info.ModTime())
}

// HiddenOptions says what a command that runs without approval in a Box may not read. For Hidden, Quiet, Rules and Files see
// ContainOptions.
type HiddenOptions struct {
	Hidden func(realPath string) bool
	Quiet  func(realPath string) bool
	Rules  string
	Files  *HiddenFiles
	State  string // the folder of Pillion's own state, keys among it; empty: none
}

// places lists the paths to hide: the hidden files of the project, the folders that could not be searched for them, Pillion's own
// state, and files in the home folder that hold keys or histories.
func (o *HiddenOptions) places(project []string, home string, getenv func(string) string) []string {
	files := o.Files
	if files == nil {
		files = &HiddenFiles{}
	}
	found, unseen := files.find(project, o.Hidden, o.Quiet, o.Rules)
	keys := homeSecrets(home, getenv)
	entries, _ := os.ReadDir(o.State)
	for _, e := range entries {
		if e.Name() != "tool-output" { // full texts of shortened outputs, which the model is told to read
			keys = append(keys, filepath.Join(o.State, e.Name()))
		}
	}
	if home != "" {
		config := getenv("XDG_CONFIG_HOME")
		if !filepath.IsAbs(config) {
			config = filepath.Join(home, ".config")
		}
		for _, name := range []string{
			".ssh", ".aws", ".gnupg", ".kube", ".azure", ".docker/config.json", ".netrc", ".npmrc", ".yarnrc.yml", ".pypirc", ".git-credentials", ".pgpass", ".my.cnf", ".mylogin.cnf", ".vault-token", ".boto", ".s3cfg", ".gem/credentials",
			".terraform.d/credentials.tfrc.json", ".password-store", ".local/share/keyrings", ".mozilla", ".bash_history", ".zsh_history", ".python_history", ".psql_history", ".mysql_history", ".node_repl_history", ".lesshst", ".claude", ".codex", ".gemini",
			".fly", ".pulumi/credentials.json", ".foundry/keystores", ".railway", ".config/configstore",
		} {
			keys = append(keys, filepath.Join(home, name))
		}
		for _, name := range []string{"gcloud", "gh", "hub", "glab-cli", "op", "doctl", "rclone", "helm", "pillion/auth.json", "google-chrome", "chromium", "containers/auth.json", "composer/auth.json", "pypoetry/auth.toml"} {
			keys = append(keys, filepath.Join(config, name))
		}
	}
	// The project itself may be in such a folder; files in the project are hidden by the rules only.
	keys = slices.DeleteFunc(existing(keys), func(p string) bool {
		return slices.ContainsFunc(project, func(root string) bool { return root == p || below(p, root) || below(root, p) })
	})
	return slices.Concat(found, unseen, keys)
}
