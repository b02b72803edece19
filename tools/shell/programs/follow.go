package programs

import (
	"github.com/pillion-dev/pillion/tools/shell/scan"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Limits of the search below folders: linksBelow visits at most maxFollowed entries, hiddenBelow at most maxSearched entries for at
// most searchTime. If a limit is reached, the call does not count as read-only and so needs approval.
const (
	maxFollowed = 2000
	maxSearched = 200_000
	searchTime  = time.Second
)

// followed searches the folders that a program goes through, such as grep -r: for symbolic links that lead outside the project, if the
// program follows them, and for hidden files that it would print. A call of grep -r names only a folder, but may print .env and so
// send keys to the model. followed is false if there are too many files to search. named are the folders among the arguments, files
// is the number of files among them.
func followed(name string, c *scan.Visit, named []string, files int) bool {
	has := func(options string) bool {
		return slices.ContainsFunc(c.Args[1:], func(a scan.Word) bool { return len(a.Text) > 1 && a.Text[0] == '-' && optionIn(a.Text, options) })
	}
	dirs, placed := c.Dirs()
	if !placed {
		return true
	}
	r := recordOf(c, name)
	if r.Follows != "" && has(r.Follows) && !linksBelow(dirs, c) {
		return false
	}
	if r.Prints == "" || !c.HidesFiles() || r.Prints != "always" && !has(r.Prints) {
		return true
	}
	// Without a file or folder to search, these programs search the current folder. A file may be counted that is the value of -f or the
	// like, a list of patterns, and is not searched.
	if len(named) == 0 && (files == 0 || has("-f --file --exclude-from --ignore-file")) {
		for _, dir := range dirs {
			named = append(named, c.Real(dir))
		}
	}
	// Without these options rg skips names that begin with a dot.
	dots := name != "rg" || has("-u -. --hidden --unrestricted")
	return hiddenBelow(named, dots, c)
}

// linksBelow notes, for each symbolic link below dirs that leads outside the project, that its target is read. It is false if there are
// more than maxFollowed entries. Folders that cannot be read are skipped, because the program cannot read them either.
func linksBelow(dirs []string, c *scan.Visit) bool {
	seen := 0
	for _, dir := range dirs {
		err := filepath.WalkDir(c.Real(dir), func(path string, d fs.DirEntry, err error) error {
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
				if real := c.Real(path); !c.Inside(real, scan.Read) {
					c.TouchPath(path, scan.Read)
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

// hiddenBelow passes the files below folders to Visit.Found, which lists the hidden ones. Without dots it skips names that begin with
// a dot. It is false if it reaches maxSearched or the time limit.
func hiddenBelow(folders []string, dots bool, c *scan.Visit) bool {
	seen, end := 0, time.Now().Add(c.Patience(searchTime))
	for _, dir := range folders {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil
			}
			if seen++; seen > maxSearched || seen%256 == 0 && time.Now().After(end) {
				return fs.ErrInvalid
			}
			switch {
			case path == dir:
			case d.IsDir() && (d.Name() == ".git" || !dots && strings.HasPrefix(d.Name(), ".")):
				return filepath.SkipDir
			case d.Type().IsRegular() && (dots || !strings.HasPrefix(d.Name(), ".")):
				c.Found(path)
			}
			return nil
		})
		if err != nil {
			return false
		}
	}
	return true
}

// hiddenFiles passes the tracked files of a repository to Visit.Found, which lists the hidden ones. top is the root of the worktree,
// tracked are paths relative to it, with slashes.
func hiddenFiles(top string, tracked []string, c *scan.Visit) {
	for _, path := range tracked {
		c.Found(top + "/" + path)
	}
}
