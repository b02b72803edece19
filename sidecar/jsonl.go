package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/pillion-dev/pillion/agent"
	"github.com/spf13/cobra"
)

// The input of a tool may hold the content of a whole file.
const maxLine = 16 << 20 // bytes of one JSON line on standard input

// jsonl answers each line of standard input with one line on standard output, in order. A line that is not JSON is
// answered too, so that answers and lines can be counted.
func jsonl(c *cobra.Command, answer func(line []byte) any) error {
	in := bufio.NewScanner(c.InOrStdin())
	// bufio.Scanner stops at 64 KiB by default.
	in.Buffer(nil, maxLine)
	out := bufio.NewWriter(c.OutOrStdout())
	e := json.NewEncoder(out)
	// Programs and shells read this, not browsers: < > & stay as they are.
	e.SetEscapeHTML(false)
	for in.Scan() {
		if len(strings.TrimSpace(in.Text())) == 0 {
			continue
		}
		if err := e.Encode(answer(in.Bytes())); err != nil {
			return err
		}
		if err := out.Flush(); err != nil { // a script may wait for each answer
			return err
		}
	}
	return in.Err()
}

// lineError answers a line that could not be carried out.
type lineError struct {
	ID    json.RawMessage   `json:"id,omitempty"`
	Error agent.ToolFailure `json:"error"`
}

// badLine is the answer to a line that is not a valid request; id is null when it could not be read.
func badLine(id json.RawMessage, kind, format string, a ...any) lineError {
	return lineError{ID: id, Error: agent.ToolFailure{Kind: kind, Message: fmt.Sprintf(format, a...)}}
}

// jsonFault says what is wrong with a line, without the names of Go types, which say nothing to the author of a
// script.
func jsonFault(err error) string {
	var t *json.UnmarshalTypeError
	switch {
	case !errors.As(err, &t):
		return err.Error()
	case t.Field == "":
		return "it is a JSON " + t.Value
	}
	return t.Field + " cannot be a " + t.Value
}
