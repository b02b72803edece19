package editors

import (
	"context"

	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools/change"
)

// sessionChecks is the TextChecker of a session: it asks the editors that show the file and announced the method. A generic
// ACP editor has no such request, so its users see a problem only after the write.
type sessionChecks struct {
	r       *Registry
	session string
}

// TextChecker checks proposed texts in the editors of a session, whichever are connected when it is asked.
func (r *Registry) TextChecker(session string) TextChecker { return sessionChecks{r, session} }

// CheckText implements TextChecker. The first editor whose checks looked at the texts answers. Errors count as "not
// checked": an edit must not wait for, or fail with, an extension of the editor.
func (c sessionChecks) CheckText(ctx context.Context, path, before, after string) (old, new []change.Problem, ok bool) {
	all, known := c.r.all(c.session)
	for _, ed := range all {
		if _, open := ed.Buffers.Buffer(path); !open || !ed.Client().Does(protocol.MethodPillionDiagnosticsCheck) {
			continue
		}
		var answer protocol.EditorCheckResponse
		ask := protocol.EditorCheckRequest{SessionID: known, URI: ed.Buffers.URI(path), Before: before, After: after}
		if err := ed.Ask(ctx, protocol.MethodPillionDiagnosticsCheck, &ask, &answer); err != nil || !answer.Checked {
			continue
		}
		return editorItems(path, answer.Before), editorItems(path, answer.After), true
	}
	return nil, nil, false
}
