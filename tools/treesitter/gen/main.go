// Command gen writes grammars/*.gz, the grammars as data, from the C sources of github.com/smacker/go-tree-sitter: go generate
// ./tools/treesitter. It needs a C compiler. See grammar.c.txt.
package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// grammars are the languages and the folders of their sources.
var grammars = map[string]string{
	"bash": "bash", "c": "c", "cpp": "cpp", "css": "css", "go": "golang", "java": "java", "javascript": "javascript", "lua": "lua", "php": "php",
	"python": "python", "ruby": "ruby", "rust": "rust", "tsx": "typescript/tsx", "typescript": "typescript/typescript",
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run() error {
	sources, err := findSources()
	if err != nil {
		return err
	}
	temporary, err := os.MkdirTemp("", "grammars")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	for name, folder := range grammars {
		data, err := dump(name, filepath.Join(sources, filepath.FromSlash(folder)), temporary)
		if err != nil {
			return fmt.Errorf("grammar of %s: %w", name, err)
		}
		path := filepath.Join("grammars", name+".gz")
		if same(path, data) {
			continue
		}
		var packed bytes.Buffer
		w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		if err != nil {
			return err
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		if err := os.WriteFile(path, packed.Bytes(), 0o644); err != nil {
			return err
		}
		fmt.Printf("%s: %d bytes, packed %d\n", path, len(data), packed.Len())
	}
	return nil
}

func findSources() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/smacker/go-tree-sitter").Output()
	if err != nil {
		return "", fmt.Errorf("find the sources of the grammars: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// dump compiles grammar.c.txt with a grammar, runs it and returns what it writes.
func dump(name, folder, temporary string) ([]byte, error) {
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "cc"
	}
	program := filepath.Join(temporary, name)
	// The external scanners are not called, so they are not compiled.
	compile := exec.Command(cc, "-w", "-O0", "-o", program, "-Wl,--unresolved-symbols=ignore-all",
		fmt.Sprintf("-DGRAMMAR_HEADER=%q", filepath.Join(folder, "parser.h")), fmt.Sprintf("-DGRAMMAR_SOURCE=%q", filepath.Join(folder, "parser.c")),
		"-DGRAMMAR=tree_sitter_"+name, "-x", "c", filepath.Join("gen", "grammar.c.txt"))
	if out, err := compile.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	return exec.Command(program).Output()
}

// same reports whether a file has the data: another version of Go may pack them differently, which is no change.
func same(path string, data []byte) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	r, err := gzip.NewReader(f)
	if err != nil {
		return false
	}
	old, err := io.ReadAll(r)
	return err == nil && bytes.Equal(old, data)
}
