package lspbridge

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"go.lsp.dev/protocol"
)

// pyright answers from the files that it has found so far, and searches the project only while it is asked nothing. On a busy machine that
// takes long; references are silently incomplete until then. A request for references cancels the one before, and fails itself, as all later
// ones do, if that one was cancelled before it had begun ("this._token.cancel is not a function").
func pyright() Server {
	return Server{ID: "pyright", Extensions: []string{".py", ".pyi"}, Markers: pyRoots, Commands: [][]string{{"pyright-langserver", "--stdio"}, {"basedpyright-langserver", "--stdio"}},
		Settings: `{"python":{"analysis":{"autoSearchPaths":true,"useLibraryCodeForTypes":true,"diagnosticMode":"openFilesOnly"}}}`,
		Install:  npm("pyright"), Quirks: Quirks{BlindToNew: "file", RefreshEcho: true, Alone: []string{protocol.MethodTextDocumentReferences}},
		hooks:     hooks{log: pyrightSearches},
		Untrusted: &Restraint{Why: "It reads. The interpreter is asked for its paths with the project taken out of them.", Programs: []string{"pyright-langserver"}, Env: []string{"PYTHONSAFEPATH=1"}}}
}

// fileSearch is the title of pyright's search as progress; fileSearchToken names it beside the server's own tokens, which are JSON.
const (
	fileSearch      = "searching for source files"
	fileSearchToken = "pyright's files"
)

// pyrightSearches turns pyright's log into progress: nothing else says that the search of a project has begun and ended. The instance named
// <default> is for files outside any project and searches none.
func pyrightSearches(c *client, text string) {
	kind := ""
	switch {
	case strings.HasPrefix(text, "Starting service instance") && !strings.Contains(text, "<default>"):
		kind = "begin"
	case strings.HasPrefix(text, "Found ") && strings.Contains(text, " source file"), strings.HasPrefix(text, "No source files found"):
		kind = "end"
	}
	if kind != "" && c.progress.update(fileSearchToken, kind, fileSearch, "") {
		c.changed.wake()
	}
}

// fileSearchLimit is how long a check waits for a search in all. A log that never says the end must not keep every verdict back.
const fileSearchLimit = time.Minute

// fileSearches remembers since when checks have waited for a search.
type fileSearches struct{ since atomic.Int64 } // Unix nanoseconds; 0: none has waited

// errSearching means that the search has not ended within fileSearchLimit. The text follows a server's name.
var errSearching = errors.New("has not found all source files yet and may not know every file that uses the changed declarations")

// waitForFiles blocks until the server has found the project's files, so that it can be asked for uses. It sends nothing, because the search
// waits for a pause. Its error is ctx's, errGone, or errSearching.
func (d *dependents) waitForFiles(ctx context.Context) error {
	searching := func() bool { running, _, _ := d.progress.index(fileSearch); return running }
	if !searching() {
		return nil
	}
	d.searches.since.CompareAndSwap(0, time.Now().UnixNano())
	limited, cancel := context.WithDeadline(ctx, time.Unix(0, d.searches.since.Load()).Add(fileSearchLimit))
	defer cancel()
	err := d.await(limited, func() bool { return !searching() })
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return errSearching
	}
	return err
}
