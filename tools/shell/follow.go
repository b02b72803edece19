package shell

import (
	"io/fs"
	"os"
	"path/filepath"
)

// following are the options with which programs go through folders and follow the links in them.
var following = map[string]string{
	"grep": "-R --dereference-recursive", "egrep": "-R --dereference-recursive", "fgrep": "-R --dereference-recursive", "rg": "-L --follow", "fd": "-L --follow", "fdfind": "-L --follow",
	"ls": "-L --dereference", "tree": "-l", "du": "-L --dereference", "diff": "-r --recursive",
}

// maxFollowed bounds the look for links that lead outside.
const maxFollowed = 2000

// followed looks for links below the folder a command runs in that lead outside, where the command would follow
// them. It reports false when there is too much to look at.
func (w *walker) followed(name string, c *call) bool {
	follows := false
	for _, a := range c.args[1:] {
		follows = follows || len(a.text) > 1 && a.text[0] == '-' && optionIn(a.text, following[name])
	}
	if !follows || following[name] == "" || c.st.unknown {
		return true
	}
	seen := 0
	for _, dir := range c.st.dirs {
		err := filepath.WalkDir(w.paths.real(dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil
			}
			if seen++; seen > maxFollowed {
				return fs.ErrInvalid
			}
			if d.IsDir() && d.Name() == ".git" {
				return filepath.SkipDir
			}
			if d.Type()&os.ModeSymlink != 0 {
				if real := w.paths.real(path); !w.paths.inside(real, Read) {
					w.paths.add(path, Read)
				}
			}
			return nil
		})
		if err != nil {
			return false
		}
	}
	return true
}
