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

// readFromDisk returns why a verdict may lack problems, because a server that is not asked about one of the files reads it from the disk all the
// same: the file configures it (tsconfig.json, go.mod), or its sources use it (a .json file that is imported, an embedded file, the header of a
// cgo package). The language server of the file itself knows neither. It returns "" when there is no such file. A written one has been read, but
// which problems follow from it in other files was not asked.
func (f *fleet) readFromDisk(ctx context.Context, files []Proposal, written bool) string {
	for _, p := range files {
		base, dir := filepath.Base(p.Path), filepath.Dir(p.Path)
		for _, row := range f.rows() {
			if row.Extra || written && row.Quirks.EndMarker && row.matches(p.Path) {
				continue // it is asked, and reports all files
			}
			user := ""
			switch {
			case row.configuredBy(base):
				if row.extended(base) {
					dir = f.o.Root // whatever folder it is in, any other may extend it
				}
				if !f.hasSources(ctx, row, dir) {
					continue
				}
			case row.hooks.readBy != nil:
				user = row.hooks.readBy(ctx, f, row, p)
			}
			switch {
			case user == "" && !row.configuredBy(base):
				continue
			case user != "":
				base += ", which " + filepath.Base(user) + " uses,"
			}
			if written {
				return fmt.Sprintf("%s was not asked which problems %s causes in other files", row.ID, base)
			}
			return fmt.Sprintf("%s reads %s only when it is saved", row.ID, base)
		}
	}
	return ""
}

// configuredBy reports whether a file that is not one of its sources decides how the server sees all of them.
func (s Server) configuredBy(base string) bool {
	if slices.Contains(s.Extensions, strings.ToLower(filepath.Ext(base))) {
		return false
	}
	return s.extended(base) || matchesAny(s.Markers, base) || matchesAny(s.Configures, base)
}

// extended reports whether a file is a configuration that others may extend: tsconfig.base.json.
func (s Server) extended(base string) bool { return matchesAny(s.Extended, base) }

// matchesAny reports whether a name matches one of some globs.
func matchesAny(globs []string, name string) bool {
	return slices.ContainsFunc(globs, func(g string) bool { ok, _ := filepath.Match(g, name); return ok })
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

// importerOf returns a source of the server that names a file in an import, or a configuration that extends it; "" for none. It compares names
// only: a file of that name in another folder counts as well.
func (f *fleet) importerOf(ctx context.Context, row Server, path string) string {
	whole := []byte(filepath.Base(path))
	n := 0
	for _, source := range projectFiles(ctx, f.o.Root) {
		name := whole
		switch {
		case source == path:
			continue
		case row.extended(filepath.Base(source)):
			name = bytes.TrimSuffix(whole, []byte(".json")) // "extends": "./base"
		case !slices.Contains(row.Extensions, strings.ToLower(filepath.Ext(source))):
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
			rest = bytes.TrimPrefix(rest[at+len(name):], whole[len(name):])
			// The name ends an import's path: import x from "./data.json", require('../data.json').
			if len(rest) > 0 && bytes.IndexByte([]byte("\"'`"), rest[0]) >= 0 {
				return source
			}
		}
	}
	return ""
}
