package lspbridge

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/lspbridge/fakelsp"
	"github.com/pillion-dev/pillion/tools/change"
)

// Who takes an imported name from a file uses it as much as what the file declares.
func TestUsersOfWhatIsPassedOn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var mu sync.Mutex
		var asked []string
		f := newFaked(t, Quirks{}, fakelsp.Options{Pull: true, Capabilities: map[string]any{"documentSymbolProvider": true, "referencesProvider": true},
			On: func(_ context.Context, _ *fakelsp.Server, method string, p json.RawMessage) (any, bool, error) {
				switch method {
				case "textDocument/documentSymbol":
					line := map[string]any{"start": map[string]int{"line": 2, "character": 0}, "end": map[string]int{"line": 2, "character": 9}}
					return []any{map[string]any{"name": "own", "kind": 13, "range": line, "selectionRange": line}}, true, nil
				case "textDocument/references":
					var at struct{ Position json.RawMessage }
					_ = json.Unmarshal(p, &at)
					mu.Lock()
					asked = append(asked, string(at.Position))
					mu.Unlock()
					return []any{map[string]any{"uri": "file:///p/b.fake", "range": map[string]any{"start": map[string]int{"line": 0, "character": 0}, "end": map[string]int{"line": 0, "character": 1}}}}, true, nil
				}
				return nil, false, nil
			}}, map[string]string{"a.fake": "from x import 😀, name\n\nown = 1\n", "b.fake": "name\n"})
		defer f.Close(context.Background())
		ctx := f.ctx(time.Minute)
		if d := f.Check(ctx, []Proposal{{Path: f.path, Text: "\nown = 1\n"}}); d.Certainty != change.Fresh {
			t.Fatalf("%s %q", d.Certainty, d.Reason)
		}
		if _, _, open := f.server().Text("file://" + filepath.ToSlash("/p/b.fake")); !open {
			t.Error("the file that uses the name was not looked at")
		}
		mu.Lock()
		defer mu.Unlock()
		if got := strings.Join(asked, " "); len(asked) != 2 || !strings.Contains(got, `"character":5`) || !strings.Contains(got, `"character":18`) { // x, name; in UTF-16
			t.Errorf("asked at %s", got)
		}
	})
}
