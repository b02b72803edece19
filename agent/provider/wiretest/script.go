package wiretest

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// ParseScript reads the JSON form of a script: an array of steps with Step's field names in lower camel case.
//
//	[{"text":"Looking."},
//	 {"calls":[{"name":"read","input":{"filePath":"a.go"}}]},
//	 {"error":{"status":429,"retryAfter":"0"}},
//	 {"text":"Done.","when":"package a"}]
//
// A misspelt field in a script is an error: a step that does something else would be hard to find.
func ParseScript(data []byte) ([]Step, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	var steps []Step
	if err := dec.Decode(&steps); err != nil {
		return nil, fmt.Errorf("wiretest: script: %w", err)
	}
	// steps and calls are counted from 1 in messages
	for i, s := range steps {
		for j, c := range s.Calls {
			if c.Name == "" {
				return nil, fmt.Errorf("wiretest: script: step %d, call %d has no name", i+1, j+1)
			}
		}
	}
	return steps, nil
}

// MustParse is ParseScript for literals in tests; it panics on a bad script.
func MustParse(script string) []Step {
	steps, err := ParseScript([]byte(script))
	if err != nil {
		panic(err)
	}
	return steps
}
