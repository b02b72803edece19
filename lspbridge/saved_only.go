package lspbridge

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxImporterBytes is the size up to which a source is searched for the import of another file.
const maxImporterBytes = 1 << 20

// maxImporters is how many sources are searched for it.
const maxImporters = 5000

// readWhenSaved returns why a verdict on proposals may lack problems, because a server reads one of the files only when it is on disk:
// the file configures it (tsconfig.json, go.mod), or its sources import data of another language (a .json file). The language server of the
// file itself knows neither. It returns "" when there is no such file.
func (f *fleet) readWhenSaved(ctx context.Context, files []Proposal) string {
	for _, p := range files {
		base := filepath.Base(p.Path)
		for _, row := range f.rows() {
			switch {
			case row.Extra:
			case row.configuredBy(base) && f.hasSources(ctx, row, filepath.Dir(p.Path)):
				return fmt.Sprintf("%s reads %s only when it is saved", row.ID, base)
			case row.ID == typescriptID && filepath.Ext(base) == ".json":
				if user := f.importerOf(ctx, row, p.Path); user != "" {
					return fmt.Sprintf("%s reads %s, which %s imports, only when it is saved", row.ID, base, filepath.Base(user))
				}
			}
		}
	}
	return ""
}

// configuredBy reports whether a file that is not one of its sources decides how the server sees all of them.
func (s Server) configuredBy(base string) bool {
	if s.ID == typescriptID && strings.HasPrefix(base, "tsconfig") && strings.HasSuffix(base, ".json") {
		return true // tsconfig.base.json, which others extend
	}
	return slices.Contains(s.Markers, base) && !slices.Contains(s.Extensions, filepath.Ext(base))
}

// hasSources reports whether a folder, or one below it, has a file that this server is the first to serve.
func (f *fleet) hasSources(ctx context.Context, row Server, dir string) bool {
	return slices.ContainsFunc(projectFiles(ctx, dir), func(path string) bool {
		return slices.Contains(row.Extensions, strings.ToLower(filepath.Ext(path))) && f.first(path) == row.ID
	})
}

// first returns the id of the row that serves a file, linters left out; "" for none.
func (f *fleet) first(path string) string {
	for _, s := range f.slotsFor(path) {
		if !s.spec.Extra {
			return s.spec.ID
		}
	}
	return ""
}

// importerOf returns a source of the server that names a file in an import; "" for none. It compares names only: a file of that name in
// another folder counts as well.
func (f *fleet) importerOf(ctx context.Context, row Server, path string) string {
	name := []byte(filepath.Base(path))
	n := 0
	for _, source := range projectFiles(ctx, f.o.Root) {
		if !slices.Contains(row.Extensions, strings.ToLower(filepath.Ext(source))) {
			continue
		}
		fi, err := os.Stat(source)
		if err != nil || !fi.Mode().IsRegular() || fi.Size() > maxImporterBytes {
			continue
		}
		if n++; n > maxImporters || ctx.Err() != nil {
			return ""
		}
		text, err := os.ReadFile(source)
		if err != nil {
			continue
		}
		for rest := text; ; {
			at := bytes.Index(rest, name)
			if at < 0 {
				break
			}
			rest = rest[at+len(name):]
			// The name ends an import's path: import x from "./data.json", require('../data.json').
			if len(rest) > 0 && bytes.IndexByte([]byte("\"'`"), rest[0]) >= 0 {
				return source
			}
		}
	}
	return ""
}
