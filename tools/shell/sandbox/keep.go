package sandbox

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Where a command cannot be given mounts of its own, it can change protected files inside the project: Landlock allows a
// folder with all below, and has no rule that excludes a part. A rule for each entry instead would forbid new entries beside
// .git, which nearly every command makes. So the contents of protected files are remembered before the command and put back
// after it; what the command made of them goes to the quarantine. Processes that it left running may still change them later.

// Bounds of what is remembered, since it is read before every command and held in memory while that runs. Beyond them whole is
// false: the rest is not put back, and new files stay where they are.
const (
	keepFiles = 400     // files and symbolic links
	keepBytes = 4 << 20 // bytes of all files together
)

// keptFile is a file or symbolic link as it was before the command.
type keptFile struct {
	path string
	data []byte
	mode fs.FileMode
	link string // of a symbolic link
}

// protectedState is what protected paths were before a command.
type protectedState struct {
	files []keptFile
	dirs  []string // folders among them: what comes into being in them goes
	// left are files that were there and were not read: unreadable ones, pipes, sockets, devices. They are not new.
	left  map[string]bool
	whole bool // everything was remembered
}

// keep reads what is at paths, folders with all below. A file that cannot be read, a pipe and a socket are not put back when the
// command changes them, and that does not make whole false.
func keep(paths []string) *protectedState {
	k := &protectedState{whole: true, left: map[string]bool{}}
	size := 0
	for _, root := range paths {
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil
			}
			if d.IsDir() {
				k.dirs = append(k.dirs, path)
				return nil
			}
			info, err := d.Info()
			if err != nil {
				k.left[path] = true
				return nil
			}
			f := keptFile{path: path, mode: info.Mode()}
			switch {
			// Size is asked before the file is read: one huge file must not be loaded to find that it is too large.
			case len(k.files) >= keepFiles || size+int(info.Size()) > keepBytes:
				k.whole = false
				return fs.SkipAll
			case info.Mode()&fs.ModeSymlink != 0:
				f.link, err = os.Readlink(path)
			case info.Mode().IsRegular():
				f.data, err = os.ReadFile(path)
			default:
				k.left[path] = true
				return nil
			}
			if err != nil {
				k.left[path] = true
				return nil
			}
			size += len(f.data)
			k.files = append(k.files, f)
			return nil
		})
	}
	return k
}

// same reports that a file is as it was: kind, mode, and contents or target.
func (f keptFile) same() bool {
	info, err := os.Lstat(f.path)
	if err != nil || info.Mode() != f.mode {
		return false
	}
	if f.link != "" {
		to, err := os.Readlink(f.path)
		return err == nil && to == f.link
	}
	now, err := os.ReadFile(f.path)
	return err == nil && bytes.Equal(now, f.data)
}

// putBack makes everything as it was, and returns a line for each path that was not. What the command left there goes to the
// quarantine, or is removed where there is none.
// A file whose folder was removed makes the folder again.
func (k *protectedState) putBack(quarantine string) (notes []string) {
	aside := func(path string) error {
		if _, err := os.Lstat(path); err != nil {
			return nil
		}
		if quarantine == "" {
			return os.RemoveAll(path)
		}
		return moveAway(path, filepath.Join(quarantine, time.Now().UTC().Format("20060102T150405.000000000")+"-"+filepath.Base(path)))
	}
	told := func(path, what string, err error) {
		if err != nil {
			notes = append(notes, fmt.Sprintf("%s, which is protected, %s, and it could not be restored: %v", path, what, err))
			return
		}
		notes = append(notes, fmt.Sprintf("%s, which is protected, %s; it was restored", path, what))
	}
	for _, f := range k.files {
		if f.same() {
			continue
		}
		err := aside(f.path)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(f.path), 0o755)
		}
		switch {
		case err != nil:
		case f.link != "":
			err = os.Symlink(f.link, f.path)
		default:
			// The mode given to WriteFile passes through the umask, so Chmod sets it once more.
			if err = os.WriteFile(f.path, f.data, f.mode.Perm()); err == nil {
				err = os.Chmod(f.path, f.mode.Perm())
			}
		}
		told(f.path, "was changed", err)
	}
	if !k.whole {
		return notes // what is new cannot be told from what was not remembered
	}
	for _, dir := range k.dirs {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			known := k.left[path] || slices.Contains(k.dirs, path) || slices.ContainsFunc(k.files, func(f keptFile) bool { return f.path == path })
			if !known {
				told(path, "was created", aside(path))
			}
		}
	}
	return notes
}
