package gofix

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// standardPackages are the import paths of the standard library, in the order of its folders. If two packages have the same name
// (text/template, html/template), both are candidates, and the names that they declare decide.
var standardPackages = sync.OnceValue(func() (out []string) {
	src := filepath.Join(shared().goroot, "src")
	_ = filepath.WalkDir(src, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() || path == src {
			return nil
		}
		// other modules cannot import internal packages, and cmd contains programs
		switch e.Name() {
		case "internal", "vendor", "testdata", "cmd":
			return filepath.SkipDir
		}
		entries, _ := os.ReadDir(path)
		for _, f := range entries {
			if strings.HasSuffix(f.Name(), ".go") {
				rel, _ := filepath.Rel(src, path)
				out = append(out, filepath.ToSlash(rel))
				break
			}
		}
		return nil
	})
	return out
})
