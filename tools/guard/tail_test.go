package guard

import (
	"strings"
	"testing"
)

// The line that names the reason, in what real programs print when they fail at their start.
func TestTheReasonInWhatAProgramSaid(t *testing.T) {
	for said, want := range map[string]string{
		"node:internal/modules/cjs/loader:1148\n  throw err;\n  ^\n\nError: Cannot find module '/tmp/x'\n    at Module._resolveFilename (node:internal/modules/cjs/loader:1145:15)\n  code: 'MODULE_NOT_FOUND',\n  requireStack: []\n}\n\nNode.js v20.20.2\n": "Error: Cannot find module '/tmp/x'",
		"npm error code E404\nnpm error 404  'no-such-agent@*' is not in this registry.\nnpm error A complete log of this run can be found in: /root/.npm/_logs/1.log\n":                                                                                      "npm error 404  'no-such-agent@*' is not in this registry.",
		"error: unknown option --acp\nusage: agent [--stdio]\n":                                        "error: unknown option --acp",
		"Traceback (most recent call last):\n  File \"a\"\nModuleNotFoundError: No module named 'x'\n": "ModuleNotFoundError: No module named 'x'",
		"one\ntwo\n\n": "two",
		"":             "",
	} {
		var tail Tail
		_, _ = tail.Write([]byte(said))
		if got := tail.Reason(); got != want {
			t.Errorf("%q: %q, want %q", said, got, want)
		}
	}
	var tail Tail
	_, _ = tail.Write([]byte("error: " + strings.Repeat("x", 1000)))
	if got := tail.Reason(); len(got) > maxLast+len("…") {
		t.Errorf("%d bytes", len(got))
	}
}
