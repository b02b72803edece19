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

// Without mounts a command can change protected files inside the project: a Landlock rule allows a folder with everything
// below and cannot exclude a part. A rule for each entry of the project instead would forbid new entries at its top, which
// many commands create. So New saves the contents of protected files before the command, and Settle restores them after it;
// changed versions go to the quarantine. Processes that the command leaves running may still change the files later.

// Limits of what keep saves, since it is read before every command and held in memory while the command runs. Beyond them whole
// is false: the rest is not restored, and new files stay where they are.
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

// protectedState holds the protected paths as they were before a command.
type protectedState struct {
	files []keptFile
	dirs  []string // folders among them; files that the command creates in them are moved away
	// left are existing files that were not saved: unreadable ones, pipes, sockets, devices. They must not be taken for new ones.
	left  map[string]bool
	whole bool // everything within the limits was saved
}

// keep saves the files at paths, and below them. Files that cannot be read, pipes and sockets are not saved, which does not make
// whole false.
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
			// Checked before reading, so that a huge file is not loaded only to find that it is too large.
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

// same reports whether a file is unchanged: type, mode, and contents or link target.
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

// putBack restores every changed or removed file, creating its folder if needed, and moves away new files in protected folders.
// It returns a line for each such path, for model and person. The command's version goes to the quarantine, or is removed if
// quarantine is empty.
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
			// WriteFile applies the umask to the mode, so Chmod sets it again.
			if err = os.WriteFile(f.path, f.data, f.mode.Perm()); err == nil {
				err = os.Chmod(f.path, f.mode.Perm())
			}
		}
		told(f.path, "was changed", err)
	}
	if !k.whole {
		return notes // a file that was not saved would look like a new one
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
