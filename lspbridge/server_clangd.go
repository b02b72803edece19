package lspbridge

import (
	"encoding/json"
	"strings"
)

// clangd compiles each file by itself, and says with clangd.fileStatus when it is done with one.
func clangd() Server {
	return Server{ID: "clangd", Extensions: cExt, Markers: []string{"compile_commands.json", "compile_flags.txt", ".clangd", "CMakeLists.txt", "Makefile", "meson.build"},
		Commands: [][]string{{"clangd", "--background-index", "--use-dirty-headers", "--log=error"}, {"clangd-19", "--background-index", "--use-dirty-headers", "--log=error"}},
		Init:     `{"clangdFileStatus":true}`, Install: "apt install clangd (or https://clangd.llvm.org/installation)",
		Quirks: Quirks{WantDiagnostics: true, Index: "indexing"}, // token backgroundIndexProgress; none without compile_commands.json
		hooks:  hooks{handle: clangdStatus},
		Untrusted: &Restraint{
			Why: "It parses: compilers that compile_commands.json names are not run without --query-driver, and compiler plugins are dropped.",
		}}
}

// clangdStatus handles the notification that tells which files clangd has finished.
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
