package custom

import (
	"bytes"
	"compress/gzip"
	"embed"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/pillion-dev/pillion/tools/whole"
)

// hostFiles are the scripts of the host, which are part of the program, so that nothing has to be installed beside it.
//
//go:embed host/*.mjs host/zod.mjs.gz
var hostFiles embed.FS

// unpack writes the host's own files to a folder. They are side by side, because host.mjs imports the others by relative paths. zod is
// embedded compressed.
func unpack(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	entries, err := hostFiles.ReadDir("host")
	if err != nil {
		return err
	}
	for _, e := range entries {
		text, err := hostFiles.ReadFile("host/" + e.Name())
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(e.Name(), ".gz")
		if name != e.Name() {
			z, err := gzip.NewReader(bytes.NewReader(text))
			if err != nil {
				return err
			}
			if text, err = io.ReadAll(z); err != nil {
				return err
			}
		}
		path := filepath.Join(dir, name)
		// Equal files are left alone, so most starts write nothing.
		if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, text) {
			continue
		}
		if err := whole.Write(path, text, 0o600); err != nil { // atomic, as two sidecars may start at the same time
			return err
		}
	}
	return nil
}
