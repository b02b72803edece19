package main

import (
	"path/filepath"
	"testing"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/sidecar/editors"
	"github.com/pillion-dev/pillion/tools/change"
)

func TestProblemsReachAnEditorThatFollowsThem(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	path := filepath.Join(r.cwd, "a b.go")
	report := lspbridge.FileReport{Path: path, Version: 3, Certainty: change.Pending, Reason: "being checked", Items: []change.Problem{{Path: path, Line: 2, Column: 3, EndLine: 2, EndColumn: 5,
		Severity: change.SeverityError, Code: "E1", Source: "compiler", Message: "no"}}}
	r.ed.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}`)
	r.ed.expect(`{"id":1}`)
	r.host.Problems.Put(lspbridge.FileReport{Path: path, Reason: "to one that did not announce it"})
	r.ed.send(`{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"_meta":{"pillion":{"version":1,"methods":["_pillion/diagnostics/updated"]}}}}}`)
	r.ed.expect(`{"id":2}`)
	r.host.Problems.Put(report)
	r.ed.expect(`{"method":"_pillion/diagnostics/updated","params":{"uri":"` + editors.PathURI(path) + `","version":3,"certainty":"pending","reason":"being checked","diagnostics":[{"range":{"start":{"line":1,"character":2},"end":{"line":1,"character":4}},"severity":1,"code":"E1","source":"compiler","message":"no"}]}}`)
	r.host.Problems.Put(lspbridge.FileReport{Path: path, Certainty: change.Fresh})
	r.ed.expect(`{"method":"_pillion/diagnostics/updated","params":{"certainty":"fresh","diagnostics":[]}}`)
}
