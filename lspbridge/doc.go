// Package lspbridge is an LSP client for many servers: it starts them on demand, keeps their documents in step
// with what the person sees, and answers questions about text, positions and problems in plain Go types. It
// never writes a file: edits come out as FileEdit values for the change pipeline.
//
//	m := lspbridge.New(lspbridge.Options{Root: dir})
//	defer m.Close(ctx)
//	delta := m.Check(ctx, []lspbridge.Proposal{{Path: "/p/a.go", Text: proposed}})
package lspbridge
