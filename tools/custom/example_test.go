package custom_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pillion-dev/pillion/tools/custom"
)

// A tool in any language is a manifest beside a program. It is found where the person's other tools are; no Node is needed.
func Example() {
	dir, err := os.MkdirTemp("", "custom-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	manifest := `{"name": "count_lines", "description": "Counts the lines of a file.", "command": ["./count"],
		"inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}}`
	for name, text := range map[string]string{"count_lines.json": manifest, "count": "#!/bin/sh\nwc -l\n"} {
		path := filepath.Join(dir, "tool", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			fmt.Println(err)
			return
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			fmt.Println(err)
			return
		}
	}
	h := custom.New(custom.Options{Dirs: []string{dir}, Directory: dir, Worktree: dir, CacheDir: filepath.Join(dir, "cache")})
	defer h.Close()
	for _, t := range h.Tools(context.Background()) {
		fmt.Println(t.ID, "-", t.Description)
	}
	// Output: count_lines - Counts the lines of a file.
}
