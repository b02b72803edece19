//go:build !cgo

package symbol

const hasParser = false

func parse(string, string) (*node, []span, error) { return nil, nil, ErrNoGrammar }
