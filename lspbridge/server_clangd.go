package lspbridge

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/tools/change"
)

// clangd compiles each file separately, and reports with clangd.fileStatus when it has finished one.
func clangd() Server {
	return Server{ID: "clangd", Extensions: cExt, Markers: []string{"compile_commands.json", "compile_flags.txt", ".clangd", "CMakeLists.txt", "Makefile", "meson.build"},
		Commands: [][]string{{"clangd", "--background-index", "--use-dirty-headers", "--log=error"}, {"clangd-19", "--background-index", "--use-dirty-headers", "--log=error"}},
		Init:     `{"clangdFileStatus":true}`, Install: "apt install clangd (or https://clangd.llvm.org/installation)",
		Quirks: Quirks{WantDiagnostics: true, Index: "indexing", ReadOnce: []string{"compile_commands.json", "compile_flags.txt", ".clangd"}}, // progress token backgroundIndexProgress; not sent without compile_commands.json
		hooks:  hooks{handle: clangdStatus, gap: clangdGap},
		Untrusted: &Restraint{
			Why: "It parses: compilers that compile_commands.json names are not run without --query-driver, and compiler plugins are dropped.",
		}}
}

// clangdStatus handles textDocument/clangd.fileStatus, which tells when clangd has finished a file.
func clangdStatus(c *client, method string, params json.RawMessage) (any, bool) {
	if method != "textDocument/clangd.fileStatus" {
		return nil, false
	}
	var p struct{ URI, State string }
	_ = json.Unmarshal(params, &p)
	c.ledger.setIdle(uriPath(p.URI), strings.HasPrefix(p.State, "idle"))
	c.changed.wake()
	return nil, true
}

// clangdGap returns why clangd may have missed problems of a file; "" when it has not. It stops after 20 errors in a file, so further ones
// are not found. And a header that compiles only with certain macros or other headers fails on its own, while clangd skips the bodies of
// its functions in the files that include it: an error in those is found nowhere. Nor is an error that a template in a header gets only
// where it is used, because clangd reports what is wrong in the file that it compiles.
func clangdGap(path, text string, before, introduced []change.Problem) string {
	for _, p := range before {
		if p.Code == tooManyErrors {
			return "clangd ends after 20 errors, and " + filepath.Base(path) + " had more before this change"
		}
	}
	for _, p := range introduced {
		if p.Code == tooManyErrors {
			return "clangd ends after 20 errors, and " + filepath.Base(p.Path) + " has more after this change"
		}
	}
	// An unsuitable compiler option for a header (drv_…, at line 1) does not stop the check: its functions are still checked.
	fails := func(p change.Problem) bool { return p.IsError() && !strings.HasPrefix(p.Code, "drv_") }
	if isHeader(path) && slices.ContainsFunc(before, fails) {
		return filepath.Base(path) + " does not compile by itself, and clangd checks its functions nowhere else"
	}
	if isHeader(path) && templates().MatchString(text) {
		return filepath.Base(path) + " has templates, and clangd does not report every error where they are used"
	}
	return ""
}

// tooManyErrors is the code of the last problem of a file that has more.
const tooManyErrors = "fatal_too_many_errors"

// templates matches the head of a template at the beginning of a line.
var templates = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^[ \t]*template[ \t]*<[^>]`) })

// isHeader reports whether a file is a header, by its name.
func isHeader(path string) bool {
	return headerLike(path) || slices.Contains([]string{".h", ".hh", ".hpp", ".hxx", ".h++"}, strings.ToLower(filepath.Ext(path)))
}
