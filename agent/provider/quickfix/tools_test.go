package quickfix

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"github.com/pillion-dev/pillion/agent/provider"
)

// answered is a tool result as the loop makes it, of what the tests write down for short: the tool's text, from which
// the metadata is made that the tool would have sent along.
func answered(callID, name, text string, failed bool) provider.Part {
	meta := map[string]any{}
	head, _, _ := strings.Cut(text, "\n")
	meta["state"] = "fresh"
	if m := regexp.MustCompile(`\((unavailable|pending|partial): (.*)\)$`).FindStringSubmatch(head); m != nil {
		meta["state"], meta["reason"] = m[1], m[2]
	}
	var problems []problem
	var actions []action
	var symbols []wireSymbol
	var places []location
	number := func(s string) int { n, _ := strconv.Atoi(s); return n }
	for _, line := range strings.Split(text, "\n") {
		if m := regexp.MustCompile(`^(ERROR|WARNING) (.+?):(\d+):(\d+) (.*?) \[(\S+) ?(\S*)\]$`).FindStringSubmatch(line); m != nil {
			problems = append(problems, problem{Path: m[2], Line: number(m[3]), Column: number(m[4]), Severity: strings.ToLower(m[1]), Message: m[5], Source: m[6], Code: m[7]})
		} else if m := regexp.MustCompile(`^(a\d+)  (.*?)(?: \[([a-zA-Z0-9_.-]+)\])?( \(preferred\))?(?:  fixes (\d+), introduces (\d+))?$`).FindStringSubmatch(line); m != nil {
			a := action{ID: m[1], Title: m[2], Kind: m[3], Preferred: m[4] != ""}
			if m[5] != "" {
				a.Effect = &effect{Fixes: number(m[5]), Introduces: number(m[6]), Errors: number(m[6]) - number(m[5])}
			}
			actions = append(actions, a)
		} else if m := regexp.MustCompile(`^(function|variable|method) (\S+) in (\S+)  (\S+?):(\d+):(\d+)$`).FindStringSubmatch(line); m != nil {
			symbols = append(symbols, wireSymbol{Name: m[2], Kind: m[1], Container: m[3], Selection: location{Path: m[4], Line: number(m[5]), Column: number(m[6])}})
		} else if m := regexp.MustCompile(`^(\S+?):(\d+):(\d+)  (.*)$`).FindStringSubmatch(line); m != nil {
			places = append(places, location{Path: m[1], Line: number(m[2]), Column: number(m[3]), Text: m[4]})
		}
	}
	meta["diagnostics"], meta["actions"], meta["symbols"], meta["locations"] = problems, actions, symbols, places
	switch name {
	case "glob":
		files, remarks, _ := strings.Cut(text, "\n\n")
		meta["paths"], meta["truncated"] = strings.Split(files, "\n"), remarks != ""
	case "read":
		if m := regexp.MustCompile(`(?m)^\d+: (.*)$`).FindStringSubmatch(text); m != nil {
			meta["preview"] = m[1]
		}
	}
	if text == "Applied." {
		meta["files"] = []string{"a.go"}
	}
	p := provider.Part{Type: provider.PartToolResult, CallID: callID, Name: name, Text: text, IsError: failed}
	p.Metadata, _ = json.Marshal(meta)
	if failed {
		p.ErrorKind = "lsp"
		for words, kind := range map[string]string{"File not found": "file_missing", "rejected all of it": "rejected", "no user can answer": "unanswered", "is still busy": "busy"} {
			if strings.Contains(text, words) {
				p.ErrorKind = kind
			}
		}
	}
	return p
}
