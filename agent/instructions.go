package agent

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/pillion-dev/pillion/tools/paths"
)

// instructionFiles are the kinds of project instructions, in order. The first kind that
// exists counts alone, because projects keep copies for other agents beside it.
var instructionFiles = []string{"AGENTS.md", "CLAUDE.md", "CONTEXT.md"}

// maxInstructions is how much of one file goes into the system prompt, in bytes.
const maxInstructions = 64 << 10

// Instructions finds what people wrote for agents: the person's own file first, then the project's from its root
// down to dir, so that the nearest has the last word. Each block says where it is from.
func Instructions(dir string) []string {
	var blocks []string
	for _, path := range globalInstructions() {
		if text, ok := readInstructions(path); ok {
			blocks = append(blocks, text)
			break
		}
	}
	return append(blocks, projectInstructions(dir)...)
}

// globalInstructions are the places of the person's own, the first that is there counts.
func globalInstructions() []string {
	var paths []string
	if config, err := os.UserConfigDir(); err == nil {
		paths = append(paths, filepath.Join(config, "pillion", "AGENTS.md"), filepath.Join(config, "opencode", "AGENTS.md"))
	}
	if home, err := os.UserHomeDir(); err == nil {
		paths = append(paths, filepath.Join(home, ".claude", "CLAUDE.md"))
	}
	return paths
}

// projectInstructions are those of the first kind that exists between the worktree's root
// and dir, the root's first: the nearest file has the last word.
func projectInstructions(dir string) []string {
	root := paths.Worktree(dir)
	for _, name := range instructionFiles {
		var found []string
		for d := dir; ; d = filepath.Dir(d) {
			if text, ok := readInstructions(filepath.Join(d, name)); ok {
				found = append([]string{text}, found...)
			}
			if d == root || d == filepath.Dir(d) {
				break
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

// readInstructions reads a file with a bound. A pipe or device in a project must not hang a turn.
func readInstructions(path string) (string, bool) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return "", false
	}
	f, err := os.Open(path)
	if err != nil {
		return "", false
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxInstructions+1))
	if err != nil {
		return "", false
	}
	cut := ""
	if len(raw) > maxInstructions {
		raw = raw[:maxInstructions]
		for len(raw) > 0 && !utf8.RuneStart(raw[len(raw)-1]) {
			raw = raw[:len(raw)-1]
		}
		cut = "\n(The file goes on; read it for the rest.)"
	}
	text := strings.TrimSpace(strings.ToValidUTF8(string(raw), "\uFFFD"))
	if text == "" {
		return "", false
	}
	return "Instructions from: " + path + "\n" + text + cut, true
}

// A pattern such as **/*.md in a large project would otherwise fill the context before the first prompt.
// How many files the configuration's patterns may name, and how much of them a prompt takes, in bytes.
const (
	maxMoreFiles = 30
	maxMoreBytes = 192 << 10
)

// MoreInstructions are the files that a configuration names: paths and globs, relative to the project's root, under
// the home folder with ~, or absolute. What is in have already is left out.
func MoreInstructions(dir, home string, patterns []string, have []string) (blocks []string) {
	root := paths.Worktree(dir)
	seen := map[string]bool{}
	size := 0
	for _, p := range patterns {
		if rest, ok := strings.CutPrefix(p, "~/"); ok {
			p = filepath.Join(home, rest)
		} else if !filepath.IsAbs(p) {
			p = filepath.Join(root, p)
		}
		found, err := doublestar.FilepathGlob(p, doublestar.WithFilesOnly(), doublestar.WithNoFollow())
		if err != nil {
			continue // the pattern is none; nothing can match it
		}
		for _, path := range found {
			if seen[path] || len(seen) == maxMoreFiles {
				continue
			}
			seen[path] = true
			if text, ok := readInstructions(path); ok && size+len(text) <= maxMoreBytes && !slices.Contains(have, text) {
				size += len(text)
				blocks = append(blocks, text)
			}
		}
	}
	return blocks
}
