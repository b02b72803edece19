package permission

import "context"

// Would says what Ask will do with a request: Allow or Deny by rule or grant, or Ask the person. It lets a caller
// skip work that only serves the question, such as checking a proposal.
func (g *Gate) Would(ctx context.Context, r Request) Action { return g.judge(ctx, r).action }
