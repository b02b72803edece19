// Command gen writes the protocol's types in Go, TypeScript and Lua from two JSON Schemas: ACP's own and Pillion's
// additions. "go generate ./sidecar/protocol" runs it; with -check it only says which files are stale.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	check := flag.Bool("check", false, "write nothing; fail when a file is stale")
	root := flag.String("root", "../..", "the repository")
	flag.Parse()
	if err := run(*root, *check); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// run writes the files that differ from what the schemas give, or fails for the first one with check.
func run(root string, check bool) error {
	dir := filepath.Join(root, "sidecar", "protocol")
	acp, err := os.ReadFile(filepath.Join(dir, "gen", "acp.schema.json"))
	if err != nil {
		return err
	}
	ours, err := os.ReadFile(filepath.Join(dir, "gen", "pillion.schema.json"))
	if err != nil {
		return err
	}
	d, err := load(acp, ours)
	if err != nil {
		return err
	}
	goSource, err := golang(d)
	if err != nil {
		return fmt.Errorf("Go: %w", err)
	}
	for path, text := range map[string][]byte{
		filepath.Join(dir, "types_gen.go"):                                         goSource,
		filepath.Join(root, "extension", "vscode", "src", "common", "protocol.ts"): typescript(d),
		filepath.Join(root, "extension", "nvim", "lua", "pillion", "protocol.lua"): lua(d),
	} {
		if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, text) {
			continue
		}
		if check {
			return fmt.Errorf("%s is stale; run: go generate ./sidecar/protocol", path)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
