package app

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/sidecar/config"
)

// serverProblems returns mistakes in lsp.<id> that the schema cannot detect: an id that is no known server, usually a misspelling, and an
// added server without extensions or command. Without a report, each would silently have no effect.
func serverProblems(c *config.Config) []config.Problem {
	known := map[string]bool{}
	for _, s := range lspbridge.Servers() {
		known[s.ID] = true
	}
	var out []config.Problem
	for _, id := range slices.Sorted(maps.Keys(c.LSP.By)) {
		s := c.LSP.By[id]
		text := ""
		switch {
		case known[id]:
		// Without a command, the id must be meant to be a known server.
		case s.Disabled || len(s.Command) == 0:
			text = lspbridge.Unknown(id) + "; one of your own has command and extensions"
		case len(s.Extensions) == 0:
			text = fmt.Sprintf("lsp.%s has no files: set \"extensions\": [\".x\"]", id)
		}
		if text != "" {
			out = append(out, problemAt(c, "lsp."+id, text))
		}
	}
	return out
}

// problemAt returns a mistake in a part of the configuration, at the place of the first value below path. Origins are "file:line:column";
// one without numbers is shown at the file's first line.
func problemAt(c *config.Config, path, text string) config.Problem {
	p := config.Problem{Message: text, Line: 1, Column: 1}
	first := ""
	for _, at := range slices.Sorted(maps.Keys(c.Origins())) {
		if (at == path || strings.HasPrefix(at, path+".")) && first == "" {
			first = c.Origin(at)
		}
	}
	p.File = first
	if rest, column, ok := cutLast(first); ok {
		if file, line, ok := cutLast(rest); ok {
			p.File, p.Line, p.Column = file, line, column
		}
	}
	return p
}

// cutLast cuts off the number after the last colon. It searches from the end, because paths of Windows contain colons too. ok is false when
// no number follows; ignore rest then.
func cutLast(s string) (rest string, n int, ok bool) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return s, 0, false
	}
	n, err := strconv.Atoi(s[i+1:])
	return s[:i], n, err == nil
}
