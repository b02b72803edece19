// Package rules reads the rule files that people keep for other agents: .claude/rules/**/*.md (Claude Code), .cursor/rules/**/*.mdc
// (Cursor) and .github/instructions/**/*.instructions.md (Copilot). A rule counts always, or for the files that its globs match. When
// which rule is shown to a model is left to others.
//
//	for _, r := range rules.Find(root) {
//		if r.Always() || r.Matches("src/a.ts") { … r.Text … }
//	}
package rules

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"go.yaml.in/yaml/v4"

	"github.com/pillion-dev/pillion/tools/frontmatter"
	"github.com/pillion-dev/pillion/tools/paths"
)

const (
	maxRules = 200      // files that are looked at in a project
	maxBytes = 64 << 10 // of one file; a larger one is left out, because half a rule may say the opposite
)

// Rule is one file.
type Rule struct {
	Path        string   // absolute
	Globs       []string // relative to the project's root; none: see Always
	Description string   // when the author would have it read; may be empty
	Text        string   // without the front matter
	always      bool
}

// Always reports whether the rule belongs into every prompt.
func (r Rule) Always() bool { return r.always }

// Matches reports whether the rule is about a file, given by its path relative to the root, with slashes.
func (r Rule) Matches(path string) bool {
	return slices.ContainsFunc(r.Globs, func(glob string) bool {
		ok, err := doublestar.Match(glob, path)
		return err == nil && ok
	})
}

// kind is a folder of rules and the words its front matter has.
type kind struct {
	folder, suffix string
	globs          string // the key with the globs
	// optional: a rule without globs counts only where its front matter says so (Cursor's alwaysApply).
	optional bool
}

var kinds = []kind{
	{filepath.Join(".claude", "rules"), ".md", "paths", false},
	{filepath.Join(".cursor", "rules"), ".mdc", "globs", true},
	{filepath.Join(".github", "instructions"), ".instructions.md", "applyTo", false},
}

// Find reads the rules below a project's root, sorted by path within each folder. What cannot be read or understood is left out.
func Find(root string) (out []Rule) {
	real, err := filepath.EvalSymlinks(root)
	if err != nil {
		return nil
	}
	for _, k := range kinds {
		_ = filepath.WalkDir(filepath.Join(root, k.folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || len(out) == maxRules {
				return fs.SkipDir // not there, or too many
			}
			if d.Type().IsRegular() && strings.HasSuffix(d.Name(), k.suffix) {
				// A link, or a folder that is one, may lead out of the project: nobody was asked about what is there.
				if at, err := filepath.EvalSymlinks(path); err != nil || !paths.Within(real, at) {
					return nil
				}
				if r, ok := k.read(path); ok {
					out = append(out, r)
				}
			}
			return nil
		})
	}
	return out
}

func (k kind) read(path string) (Rule, bool) {
	info, err := os.Stat(path)
	if err != nil || info.Size() > maxBytes {
		return Rule{}, false
	}
	src, err := os.ReadFile(path)
	if err != nil {
		return Rule{}, false
	}
	doc, err := frontmatter.Parse(starQuoted(src))
	if err != nil || doc.Body == "" {
		return Rule{}, false
	}
	r := Rule{Path: path, Description: doc.Text("description"), Text: doc.Body, Globs: globs(doc.Get(k.globs))}
	r.always = len(r.Globs) == 0 && !k.optional || doc.Text("alwaysApply") == "true"
	if len(r.Globs) == 1 && r.Globs[0] == "**" {
		r.Globs, r.always = nil, true
	}
	return r, true
}

// starQuoted quotes globs that begin with a star: Cursor writes "globs: *.ts", where YAML reads an alias.
func starQuoted(src []byte) []byte {
	lines := strings.Split(string(src), "\n")
	for i, l := range lines {
		if i > 0 && strings.TrimRight(l, " \t\r") == "---" {
			break
		}
		if key, value, ok := strings.Cut(l, ": *"); ok && !strings.ContainsAny(key, " \t") {
			lines[i] = key + `: "*` + strings.TrimRight(value, " \t\r") + `"`
		}
	}
	return []byte(strings.Join(lines, "\n"))
}

// globs reads a list, or one text with commas. A glob without a slash means files of that name anywhere.
func globs(n *yaml.Node) (out []string) {
	var words []string
	switch {
	case n == nil:
	case n.Kind == yaml.SequenceNode:
		for _, e := range n.Content {
			words = append(words, e.Value)
		}
	default:
		words = outsideBraces(n.Value)
	}
	for _, w := range words {
		if w = strings.TrimPrefix(strings.TrimSpace(w), "./"); w == "" {
			continue
		}
		if !strings.Contains(w, "/") && w != "**" {
			w = "**/" + w
		}
		if strings.HasSuffix(w, "/") {
			w += "**"
		}
		out = append(out, w)
	}
	return out
}

// outsideBraces splits at commas, but not inside of {a,b}.
func outsideBraces(s string) (out []string) {
	depth, from := 0, 0
	for i, c := range []byte(s) {
		switch {
		case c == '{':
			depth++
		case c == '}':
			depth--
		case c == ',' && depth == 0:
			out = append(out, s[from:i])
			from = i + 1
		}
	}
	return append(out, s[from:])
}
