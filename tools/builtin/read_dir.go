package builtin

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pillion-dev/pillion/tools"
)

// readDir lists a folder.
func (e Env) readDir(at place, from, limit int) (tools.Result, error) {
	des, err := os.ReadDir(at.real)
	if err != nil {
		return tools.Result{}, pathError(at.path, err)
	}
	names := make([]string, len(des))
	for i, de := range des {
		names[i] = entryName(at.real, de)
	}
	sortNames(names)
	if from > max(len(names), 1) {
		return tools.Result{}, &tools.Error{Kind: "out_of_range", Message: fmt.Sprintf("Offset %d is out of range for this folder (%d entries)", from, len(names))}
	}
	shown := names[min(from-1, len(names)):]
	shown = shown[:min(limit, len(shown))]
	for i, n := 0, 0; i < len(shown); i++ {
		if n += len(shown[i]) + 1; n > readBytes {
			shown = shown[:i]
			break
		}
	}
	last := from + len(shown) - 1
	var sb strings.Builder
	fmt.Fprintf(&sb, "<path>%s</path>\n<type>directory</type>\n<entries>\n", at.path)
	for _, n := range shown {
		sb.WriteString(n + "\n")
	}
	if last < len(names) || from > 1 {
		fmt.Fprintf(&sb, "\n(Showing %d of %d entries.", len(shown), len(names))
		if last < len(names) {
			fmt.Fprintf(&sb, " Use 'offset' parameter to read beyond entry %d", last)
		}
		sb.WriteString(")")
	} else {
		fmt.Fprintf(&sb, "\n(%d entries)", len(names))
	}
	sb.WriteString("\n</entries>")
	return tools.Result{Output: sb.String(), Metadata: map[string]any{
		"preview": strings.Join(shown[:min(len(shown), readPreview)], "\n"), "truncated": last < len(names),
		"display": map[string]any{"type": "directory", "path": at.path, "entries": shown, "offset": from, "totalEntries": len(names)},
	}}, nil
}

// entryName is an entry of a folder as shown: folders, and links to them, end in "/".
func entryName(dir string, de os.DirEntry) string {
	name := de.Name()
	isDir := de.IsDir()
	if de.Type()&os.ModeSymlink != 0 {
		if fi, err := os.Stat(filepath.Join(dir, name)); err == nil {
			isDir = fi.IsDir()
		}
	}
	if q := strconv.Quote(name); !utf8.ValidString(name) || strings.ContainsAny(name, "\n\r\t") {
		name = q // so that one entry is one line
	}
	if isDir {
		name += "/"
	}
	return name
}

// sortNames orders as people read: letter case counts last.
func sortNames(names []string) {
	sort.Slice(names, func(i, j int) bool {
		a, b := strings.ToLower(names[i]), strings.ToLower(names[j])
		if a != b {
			return a < b
		}
		return names[i] < names[j]
	})
}
