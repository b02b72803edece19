package agent

import (
	"context"
	"fmt"

	"github.com/pillion-dev/pillion/tools"
)

// toolset is the tools of a session. The session's runner owns it.
type toolset struct {
	rt    *Runtime
	head  *Head
	made  []tools.Tool // made at the first turn
	tools []tools.Tool // made and those that come and go, as of this step
}

// makeTools makes the session's own tools once, since they carry its read state, and adds those that come and go.
func (ts *toolset) makeTools(ctx context.Context) error {
	if ts.made == nil {
		made, err := ts.rt.o.Toolbox.Tools(ctx, ts.head.Info())
		if err != nil {
			return fmt.Errorf("the tools could not be made: %w", err)
		}
		ts.made, ts.tools = made, made
	}
	var over []tools.Tool
	if e := ts.rt.extensions(ts.head.Info().Cwd); e.Over != nil {
		over = e.Over(ctx)
	}
	more := ts.rt.o.Toolbox.More(ctx, ts.head.Info())
	if len(over)+len(more) == 0 {
		ts.tools = ts.made
		return nil
	}
	// over comes first, because its tools take the place of Pillion's own of the same name.
	ts.tools = append(append(over[:len(over):len(over)], ts.made...), more...)
	return nil
}
