//go:build !cgo

package symbol

// Builds without cgo have no grammar: callers fall back to the ranges of language servers (see Lines).
const hasParser = false

func parse(string, string) (*node, []span, error) { return nil, nil, ErrNoGrammar }

func mistakes(string, string) ([]span, error) { return nil, ErrNoGrammar }

func longLiterals(string, string) ([][2]int, bool, error) { return nil, false, ErrNoGrammar }
