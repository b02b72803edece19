// Package lspbridge is an LSP client for many language servers at once. It starts them on demand, restarts them
// after a crash, keeps their documents equal to what the person sees (unsaved buffers included), and answers
// questions about text, positions and problems in plain Go types.
//
// Its main question is Check: which problems would a proposal introduce or fix? The proposed texts are laid over
// the open documents inside the servers, so nothing has to be written to find out. Every answer says how certain
// it is (fresh, partial, pending, unavailable), because an incomplete answer must not look like a clean one.
//
//	m := lspbridge.New(lspbridge.Options{Root: dir})
//	defer m.Close(ctx)
//	delta := m.Check(ctx, []lspbridge.Proposal{{Path: "/p/a.go", Text: proposed}})
//
// It leaves to others: writing files (edits are returned as FileEdit values), asking the person (Options.ApplyEdit),
// and framing and decoding messages (packages rpc and lsp).
//
// Paths are absolute and clean. Lines and characters of a Position count from 0, characters in UTF-16 code units;
// a change.Problem counts both from 1.
package lspbridge
