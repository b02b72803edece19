package check_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/sidecar/check"
	"github.com/pillion-dev/pillion/tools/change"
)

// servers stands for a lspbridge.Manager.
type servers struct{}

func (servers) Check(_ context.Context, files []lspbridge.Proposal) lspbridge.Delta {
	return lspbridge.Delta{Verdict: change.Verdict{Certainty: change.Fresh, Introduced: []change.Problem{
		{Path: files[0].Path, Line: 1, Column: 9, Severity: change.SeverityError, Message: "undefined: farewell", Server: "gopls"}}}}
}

func (servers) Busy([]lspbridge.Proposal) string { return "" }

// A patch is checked without being applied.
func ExamplePatch() {
	root, _ := os.MkdirTemp("", "example")
	defer os.RemoveAll(root)
	_ = os.WriteFile(filepath.Join(root, "greet.go"), []byte("var s = greeting\n"), 0o600)

	plan, err := check.Patch(root, "--- a/greet.go\n+++ b/greet.go\n@@ -1 +1 @@\n-var s = greeting\n+var s = farewell\n")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer plan.Close()
	verdict := plan.Run(context.Background(), servers{}, nil)
	_ = plan.Write(os.Stdout, "text", "dev", verdict)
	fmt.Println("introduces errors:", check.Judge(verdict, false) == check.Errors)
	// Output:
	// greet.go:1:9: error: undefined: farewell
	// 1 file changed: fixes 0 errors, introduces 1
	// introduces errors: true
}
