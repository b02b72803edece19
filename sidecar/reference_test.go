package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/sidecar/pages"
)

func TestReferencePagesAreCurrent(t *testing.T) {
	for name, want := range pages.Reference(rootCommand()) {
		got, err := os.ReadFile(filepath.Join("..", "docs", "reference", name))
		if err != nil {
			t.Error(err)
			continue
		}
		if string(got) != want {
			t.Errorf("docs/reference/%s is stale at %s: run go generate ./sidecar", name, firstDifference(string(got), want))
		}
	}
}

// firstDifference names the line where two texts part, with what it should be.
func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range w {
		if i >= len(g) || g[i] != w[i] {
			return "\n\t" + w[i]
		}
	}
	return "its end"
}

func TestManualNamesEveryCommand(t *testing.T) {
	page := pages.Manual(rootCommand())
	for _, want := range []string{".TH PILLION 1", ".SS pillion acp", ".SS pillion sessions restore", `\-\-approve`} {
		if !strings.Contains(page, want) {
			t.Errorf("pillion.1 lacks %q", want)
		}
	}
	for i, line := range strings.Split(page, "\n") {
		if strings.HasPrefix(line, "'") {
			t.Errorf("line %d would be read as a request: %s", i+1, line)
		}
	}
}

// TestLinksOfPages follows the relative links of every page of the repository, headings included.
func TestLinksOfPages(t *testing.T) {
	link := regexp.MustCompile(`!?\[[^\]]*\]\(([^)\s]+)\)`)
	fence := regexp.MustCompile("(?ms)^```.*?^```[ \t]*$|`[^`\n]*`")
	pages, links := 0, 0
	for _, page := range markdownPages(t, "..") {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		pages++
		// Code is not a place for links, but a link's own text may be code.
		text := fence.ReplaceAllStringFunc(string(b), func(code string) string {
			if strings.HasPrefix(code, "```") {
				return ""
			}
			return "code"
		})
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			to, heading, _ := strings.Cut(m[1], "#")
			if strings.Contains(to, ":") || strings.HasPrefix(to, "command:") {
				continue
			}
			links++
			target := page
			if to != "" {
				target = filepath.Join(filepath.Dir(page), to)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which is not there", page, m[1])
				continue
			}
			if heading != "" && strings.HasSuffix(target, ".md") && !hasHeading(t, target, heading) {
				t.Errorf("%s links to %s, which has no such heading", page, m[1])
			}
		}
	}
	if pages < 8 || links < 40 {
		t.Errorf("only %d pages with %d links were found", pages, links)
	}
}

// markdownPages are the repository's own pages: no packages, no caches, no test data.
func markdownPages(t *testing.T, root string) (pages []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			name := d.Name()
			if path != root && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "testdata" || name == "dist" || name == "test") {
				return filepath.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(path, ".md") {
			pages = append(pages, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

func hasHeading(t *testing.T, page, id string) bool {
	t.Helper()
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	notInID := regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	for line := range strings.Lines(string(b)) {
		heading, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " ")
		if ok && strings.HasPrefix(line, "#") && strings.ReplaceAll(notInID.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), ""), " ", "-") == id {
			return true
		}
	}
	return false
}
