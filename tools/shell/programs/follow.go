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

// Bounds of the look below a folder: for links, entries; for hidden files, entries and time.
// With more than maxFollowed entries, or after searchTime, the call counts as one that changes something, and is asked about.
const (
	maxFollowed = 2000
	maxSearched = 200_000
	searchTime  = 500 * time.Millisecond
)

// followed looks below the folders that a command goes through: for links that lead outside, where it would follow
// them, and for hidden files that it would print. It reports false when there is too much to look at. named are the
// folders among the arguments, files how many files are.
// grep -r is the case: it names one folder and prints .env among the rest. A missing answer would send keys to a model, so
// followed runs after everything else has found the call harmless.
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
	// Without a folder among the words, programs of this kind search the current one. With -f the file that counted is a list of
	// patterns and not what is searched.
	if len(named) == 0 && (files == 0 || has("-f --file --exclude-from --ignore-file")) {
		for _, dir := range dirs {
			named = append(named, c.Real(dir))
		}
	}
	// rg skips names with a dot unless it is told otherwise.
	dots := name != "rg" || has("-u -. --hidden --unrestricted")
	return hiddenBelow(named, dots, c)
}

// linksBelow notes links that lead outside as reads of what they lead to; false when there are too many entries. What cannot be
// read is skipped: the program cannot read it either.
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

// hiddenBelow notes the hidden files below folders; without dots those whose name begins with a dot are skipped.
// It is false when there is too much to look at in the time.
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

// hiddenFiles notes which of a repository's files are hidden.
// top is the root of the worktree, tracked are paths below it with slashes.
func hiddenFiles(top string, tracked []string, c *scan.Visit) {
	for _, path := range tracked {
		c.Found(top + "/" + path)
	}
}
