package check

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/paths"
)

// Formats are the formats of Write, for the help and completion of --format.
var Formats = []string{"text", "json", "sarif"}

// Write writes a verdict in one of Formats; another name means text. version is Pillion's own, for SARIF's
// tool.driver. It fails only when w does.
func (p *Plan) Write(w io.Writer, format, version string, v change.Verdict) error {
	switch format {
	case "json":
		return encode(w, p.result(v))
	case "sarif":
		return encode(w, p.sarif(version, v))
	}
	return p.text(w, v)
}

// encode writes indented JSON. HTML escaping is off, because messages quote source code.
func encode(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// result is what --format json prints. Scripts depend on its names.
type result struct {
	Clean   bool            `json:"clean"`
	Files   []string        `json:"files"` // changed, relative to the project
	Verdict *change.Verdict `json:"verdict"`
}

// result brings the verdict into the form that editors get, so that both read the same JSON.
func (p *Plan) result(v change.Verdict) result {
	set := (&change.Set{}).WithVerdict(&v)
	return result{Clean: Judge(v, false) == Clean, Files: p.Paths(), Verdict: set.Verdict}
}

// text writes a line for each introduced problem as path:line:column, the form that compilers use and
// editors link, and a summary. Line and column count from 1.
func (p *Plan) text(w io.Writer, v change.Verdict) error {
	var b strings.Builder
	name := func(path string) string {
		if r, err := filepath.Rel(p.Root, path); err == nil && paths.Within(p.Root, path) {
			return r
		}
		return path
	}
	for _, x := range v.Introduced {
		fmt.Fprintf(&b, "%s:%d:%d: %s: %s", name(x.Path), x.Line, x.Column, x.Severity, strings.ReplaceAll(x.Message, "\n", "\n    "))
		if tag := strings.TrimSpace(x.Source + " " + x.Code); tag != "" {
			b.WriteString(" [" + tag + "]")
		}
		b.WriteByte('\n')
	}
	files := "1 file"
	if n := len(p.Paths()); n != 1 {
		files = fmt.Sprintf("%d files", n)
	}
	switch {
	case len(p.Files) == 0:
		b.WriteString("nothing has changed")
	case v.Unserved:
		fmt.Fprintf(&b, "%s changed; no language server is for them", files)
	case v.Certainty == change.Fresh:
		fmt.Fprintf(&b, "%s changed: %s", files, v.Headline())
	case v.Certainty == change.Partial:
		fmt.Fprintf(&b, "%s changed: %s (checked in part: %s)", files, v.Headline(), v.Reason)
	default:
		fmt.Fprintf(&b, "%s changed: not checked (%s: %s)", files, v.Certainty, v.Reason)
	}
	b.WriteByte('\n')
	_, err := io.WriteString(w, b.String())
	return err
}

// sarif is the verdict as SARIF 2.1.0 (OASIS): a result for each introduced problem, and a notification
// for what could not be checked, so that a viewer does not show an incomplete check as a clean one. Lines
// and columns count from 1, columns in UTF-16 units, as columnKind declares.
func (p *Plan) sarif(version string, v change.Verdict) any {
	type object = map[string]any
	levels := map[change.Severity]string{change.SeverityError: "error", change.SeverityWarning: "warning", change.SeverityInformation: "note", change.SeverityHint: "note"}
	results := []object{}
	var rules []object
	var ids []string
	for _, x := range v.Introduced {
		id := strings.Trim(x.Server+"/"+x.Code, "/")
		if id == "" {
			id = "problem"
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
			rules = append(rules, object{"id": id})
		}
		region := object{"startLine": x.Line, "startColumn": x.Column}
		if x.EndLine > 0 {
			region["endLine"], region["endColumn"] = x.EndLine, x.EndColumn
		}
		uri := object{"uri": filepath.ToSlash(x.Path)}
		if r, err := filepath.Rel(p.Root, x.Path); err == nil && paths.Within(p.Root, x.Path) {
			uri = object{"uri": filepath.ToSlash(r), "uriBaseId": "%SRCROOT%"}
		}
		results = append(results, object{"ruleId": id, "level": levels[x.Severity], "message": object{"text": x.Message},
			"locations": []object{{"physicalLocation": object{"artifactLocation": uri, "region": region}}}})
	}
	// SARIF requires an array; a nil slice would be encoded as null.
	if rules == nil {
		rules = []object{}
	}
	run := object{"executionSuccessful": v.Known() || v.Unserved || len(p.Files) == 0}
	if v.Certainty != change.Fresh && !v.Unserved && len(p.Files) > 0 {
		run["toolExecutionNotifications"] = []object{{"level": "warning", "message": object{"text": fmt.Sprintf("%s: %s", v.Certainty, v.Reason)}}}
	}
	return object{"version": "2.1.0", "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
		"runs": []object{{"columnKind": "utf16CodeUnits", "tool": object{"driver": object{"name": "pillion", "version": version, "rules": rules}},
			"invocations": []object{run}, "results": results}}}
}
