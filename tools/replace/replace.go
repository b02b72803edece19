// Package replace finds a loosely quoted passage of a text and replaces it.
package replace

import "strings"

// Apply replaces old by new in text: the one place where old stands, or with all every place.
// The error is an *Error.
func Apply(text, old, new string, all bool) (Result, error) {
	switch {
	case old == new:
		return Result{}, &Error{Kind: Identical, Message: "oldString and newString are identical; nothing would change"}
	case old == "":
		return Result{}, &Error{Kind: EmptyOld, Message: "oldString is empty; quote the text to replace, or use write to replace the whole file"}
	}
	n := strings.Count(text, old)
	if n == 0 {
		return Result{}, &Error{Kind: NotFound, Message: "oldString not found"}
	}
	if n > 1 && !all {
		return Result{}, &Error{Kind: Multiple, Message: "oldString matches several places; add lines around it, or set replaceAll"}
	}
	return Result{Text: strings.ReplaceAll(text, old, new), Stage: "simple"}, nil
}
