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

// HiddenFiles finds the files of a project that may not be read without a question, at any depth. It is asked before every
// command that no person was asked about, so it remembers what each folder held and reads only those again that changed. The zero
// value is ready; it is safe for concurrent use.
type HiddenFiles struct {
	mu      sync.Mutex             // guards all fields
	key     string                 // the rules under which suspects were chosen
	folders map[string]*seenFolder // by absolute path
	left    int                    // entries that this look may still read
}

// seenFolder is a folder as it was when it was read.
type seenFolder struct {
	info     fs.FileInfo
	settled  bool     // its time was old enough that a later change shows as another time
	dirs     []string // paths of the folders in it
	suspects []string // files in it that the rules alone do not allow; of a dependencies folder: all below it
}

// maxLook is how many entries one look reads. What it did not reach is not readable for the command, and the next look goes
// on from there: a project of any size costs a command seconds at most.
const maxLook = 400_000

// timeGrain is the coarsest time that a file system gives folders (FAT: 2 s): a folder that changed more recently is read again.
const timeGrain = 2 * time.Second

// dependencies are folders of thousands of files that a package manager wrote. They are looked at to the bottom, but again only
// when the folder itself changed: a look at each folder in them would cost more than most commands.
var dependencies = []string{"node_modules", "vendor", "target", ".venv", "__pycache__"}

// find returns the files below the roots that hidden holds back, and the folders it did not come to. quiet, when set, names
// files that hidden surely does not hold back: it is asked once for each file, under the same key, and hidden only for
// the others, but at every look, since a grant may have changed its answer.
func (h *HiddenFiles) find(roots []string, hidden, quiet func(string) bool, key string) (found, unseen []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.folders == nil || h.key != key {
		h.folders, h.key = map[string]*seenFolder{}, key
	}
	if quiet == nil {
		quiet = func(string) bool { return false }
	}
	h.left = maxLook
	var suspects []string
	for _, root := range roots {
		if slices.ContainsFunc(roots, func(other string) bool { return below(other, root) }) {
			continue // it is looked at as a part of the other
		}
		s, u := h.look(root, quiet)
		suspects, unseen = append(suspects, s...), append(unseen, u...)
	}
	for _, path := range suspects {
		if hidden(path) {
			found = append(found, path)
		}
	}
	return append(found, h.otherNames(roots, found)...), unseen
}

// otherNames are further hard links of the files that were found: under them the same bytes could be read. Hardly any file has one,
// and only then every file of the project is looked at.
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

// look returns the suspects below a folder, and the folders below it that could not be read or were too many.
func (h *HiddenFiles) look(dir string, quiet func(string) bool) (suspects, unseen []string) {
	f, err := h.folder(dir, quiet)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil: // a folder that cannot be listed may hold files that can be read by name
		return nil, []string{dir}
	}
	suspects = f.suspects
	for _, sub := range f.dirs {
		whole := slices.Contains(dependencies, filepath.Base(sub))
		if whole {
			if seen := h.folders[sub]; seen != nil && seen.dirs == nil && seen.same(sub) {
				suspects = append(slices.Clip(suspects), seen.suspects...)
				continue
			}
		}
		s, u := h.look(sub, quiet)
		suspects, unseen = append(slices.Clip(suspects), s...), append(unseen, u...)
		// One entry for all that is below: whether its folders changed is not looked at again.
		if top := h.folders[sub]; whole && len(u) == 0 && top != nil {
			h.folders[sub] = &seenFolder{info: top.info, settled: top.settled, suspects: s}
		}
	}
	return suspects, unseen
}

// errTooMany says that the look has read maxLook entries.
var errTooMany = errors.New("too many files to look at before one command")

// folder is what a folder holds, from memory where it has not changed.
func (h *HiddenFiles) folder(dir string, quiet func(string) bool) (*seenFolder, error) {
	if f := h.folders[dir]; f != nil && f.same(dir) {
		return f, nil
	}
	if h.left <= 0 {
		return nil, errTooMany
	}
	// Before the reading: what comes in between makes the time newer than the one kept.
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	h.left -= len(entries) + 1
	f := &seenFolder{info: info, settled: time.Since(info.ModTime()) > timeGrain, dirs: []string{}}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case e.IsDir():
			if e.Name() != ".git" { // git's own data; what is tracked there is a matter of git's commands
				f.dirs = append(f.dirs, path)
			}
		case e.Type().IsRegular() && !quiet(path):
			f.suspects = append(f.suspects, path)
		}
	}
	h.folders[dir] = f
	return f, nil
}

// same reports that the folder is still the one that was read, with nothing added or removed.
func (f *seenFolder) same(dir string) bool {
	if !f.settled {
		return false
	}
	now, err := os.Lstat(dir)
	return err == nil && os.SameFile(now, f.info) && now.ModTime().Equal(f.info.ModTime())
}

// HiddenOptions say what a command may not read that no person was asked about; see ContainOptions for Hidden, Quiet, Rules and Files.
type HiddenOptions struct {
	Hidden func(realPath string) bool
	Quiet  func(realPath string) bool
	Rules  string
	Files  *HiddenFiles
	State  string // the folder of Pillion's own state, keys among it; empty: none
}

// places are the hidden files of a project, the folders in which they were not looked for, and the keys of the person.
func (o *HiddenOptions) places(project []string, home string, getenv func(string) string) []string {
	files := o.Files
	if files == nil {
		files = &HiddenFiles{}
	}
	found, unseen := files.find(project, o.Hidden, o.Quiet, o.Rules)
	keys := homeSecrets(home, getenv)
	entries, _ := os.ReadDir(o.State)
	for _, e := range entries {
		if e.Name() != "tool-output" { // long outputs, to which the model is pointed
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
	// A project may lie in such a folder, and a key in a project is a matter of the rules.
	keys = slices.DeleteFunc(existing(keys), func(p string) bool {
		return slices.ContainsFunc(project, func(root string) bool { return root == p || below(p, root) || below(root, p) })
	})
	return slices.Concat(found, unseen, keys)
}
