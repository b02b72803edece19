package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// maxLinks is how many symbolic links are followed in one path, as in filepath.EvalSymlinks; more is a circle.
const maxLinks = 255

// Real resolves all symbolic links of an absolute path, including dangling ones and those before a part that does not exist yet:
// the result is where a write would land. filepath.EvalSymlinks fails for both. Permissions are decided on the result, so a folder
// that cannot be read is an error and not a guess.
func Real(path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("%s is not an absolute path", path)
	}
	// Before Clean, which takes dots away. A share is the caller's to judge: configured folders may be on one.
	if err := CheckName(path, path); err != nil {
		return "", err
	}
	path = filepath.Clean(path)
	// The quick way, for a path that exists.
	if r, err := filepath.EvalSymlinks(path); err == nil {
		return r, nil
	}
	root := filepath.VolumeName(path) + string(filepath.Separator)
	cur, links := root, 0
	rest := parts(path[len(root)-1:])
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		if part == ".." { // of a link's target; cur has no links any more, so its parent is the lexical one
			cur = filepath.Dir(cur)
			continue
		}
		next := filepath.Join(cur, part)
		fi, err := os.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
			return filepath.Join(append([]string{properNames(cur), part}, rest...)...), nil
		case err != nil:
			return "", err
		case fi.Mode()&fs.ModeSymlink == 0:
			cur = next
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("%s: too many symbolic links", path)
		}
		to, err := os.Readlink(next)
		if err != nil {
			return "", err
		}
		if filepath.IsAbs(to) {
			cur = root
		}
		// The target's own parts may be links as well, so they are walked like the rest.
		rest = append(parts(to), rest...)
	}
	return cur, nil
}

// parts are the elements of a path without empty ones and dots; ".." stays, because what it means depends on links.
func parts(p string) []string {
	var out []string
	for _, s := range strings.Split(filepath.ToSlash(p), "/") {
		if s != "" && s != "." {
			out = append(out, s)
		}
	}
	return out
}
