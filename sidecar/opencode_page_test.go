package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Every deliberate difference from OpenCode and Codex names a test or a scenario that exists, so that a row cannot outlive
// the behaviour it describes by a rename. A test is written package.TestName, or package.TestName/case for a row of a
// table test; the case must be a string literal in that function. A scenario is a file of tools/builtin/testdata.
func TestEveryDifferenceIsShown(t *testing.T) {
	named := regexp.MustCompile("`(tools[a-z/]*)\\.(Test\\w+)(?:/([^`]+))?`")
	scenario := regexp.MustCompile("`(\\w+\\.txtar)`")
	_, section, ok := strings.Cut(read(t, "../docs/opencode.md"), "\n## Edits that come out differently\n")
	if !ok {
		t.Fatal("opencode.md has no section on edits")
	}
	// The table of package replace is written by its own test.
	_, section, ok = strings.Cut(section, "<!-- end -->\n")
	if !ok {
		t.Fatal("opencode.md has no table that is written by package replace")
	}
	rows := 0
	for _, line := range strings.Split(section, "\n") {
		cells := strings.Split(line, " | ")
		if len(cells) != 4 || strings.HasSuffix(line, "| shown by |") {
			continue
		}
		rows++
		tests, files := named.FindAllStringSubmatch(cells[3], -1), scenario.FindAllStringSubmatch(cells[3], -1)
		if len(tests)+len(files) == 0 {
			t.Errorf("nothing shows this difference: %s", line)
		}
		for _, m := range files {
			if _, err := os.Stat(filepath.Join("../tools/builtin/testdata", m[1])); err != nil {
				t.Error(err)
			}
		}
		for _, m := range tests {
			body, ok := testBody(t, filepath.Join("..", m[1]), m[2])
			if !ok {
				t.Errorf("there is no test %s in %s", m[2], m[1])
			} else if m[3] != "" && !strings.Contains(body, strconv.Quote(m[3])) {
				t.Errorf("%s.%s has no case %q", m[1], m[2], m[3])
			}
		}
	}
	if rows < 12 {
		t.Errorf("only %d differences were read; has the table another form now?", rows)
	}
}

// testBody returns the source of a top-level function in a folder's test files.
func testBody(t *testing.T, dir, name string) (body string, ok bool) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if _, rest, found := strings.Cut(read(t, f), "\nfunc "+name+"("); found {
			body, _, _ = strings.Cut(rest, "\n}\n")
			return body, true
		}
	}
	return "", false
}
