package main

import (
	"encoding/json"
	"io"
	"text/tabwriter"
)

// writeLines prints a list as JSON lines; nothing for an empty one, so that a loop over the lines runs zero times.
func writeLines[T any](w io.Writer, list []T) error {
	e := json.NewEncoder(w)
	for _, v := range list {
		if err := e.Encode(v); err != nil {
			return err
		}
	}
	return nil
}

// writeTable prints a line for each item of a list; row writes its cells, each followed by a tab but the last.
func writeTable[T any](to io.Writer, list []T, row func(w io.Writer, item T)) error {
	// Two blanks between columns. Nothing is printed before Flush: the widths are those of all rows.
	w := tabwriter.NewWriter(to, 0, 4, 2, ' ', 0)
	for _, item := range list {
		row(w, item)
	}
	return w.Flush()
}
