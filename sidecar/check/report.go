package check

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/diff"
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
		return encode(w, p.sarif(version, v, nil))
	}
	return p.text(w, v)
}

// Review is what pillion review found: the verdict of the language servers and what the model said.
type Review struct {
	Verdict change.Verdict
	Model   string    // provider/model that was asked; empty: none
	Skipped string    // why no model was asked, or why it gave no answer; for people
	Found   []Finding // by the model, in its order
}

// AllFindings are all findings of a review: those of the language servers first, because they are facts.
func (p *Plan) AllFindings(r Review) []Finding {
	return append(p.Findings(r.Verdict), r.Found...)
}

// review is what pillion review --json prints. Scripts depend on its names.
type review struct {
	result
	Model    string    `json:"model,omitempty"`
	Skipped  string    `json:"skipped,omitempty"`
	Findings []Finding `json:"findings"`
}

// WriteReview writes a review in one of Formats, like Write.
func (p *Plan) WriteReview(w io.Writer, format, version string, r Review) error {
	all := p.AllFindings(r)
	switch format {
	case "json":
		return encode(w, review{p.result(r.Verdict), r.Model, r.Skipped, all})
	case "sarif":
		return encode(w, p.sarif(version, r.Verdict, r.Found))
	}
	var b strings.Builder
	for _, f := range all {
		fmt.Fprintf(&b, "%s:%d: %s: %s [%s]\n", p.name(f.Path), f.Line, f.Severity, strings.ReplaceAll(f.Message, "\n", "\n    "), strings.TrimSpace(f.Source+" "+f.Code))
	}
	b.WriteString(p.summary(r.Verdict))
	switch {
	case r.Skipped != "":
		fmt.Fprintf(&b, "; not reviewed by a model: %s", r.Skipped)
	case r.Model != "":
		fmt.Fprintf(&b, "; %s found %d", r.Model, len(r.Found))
	}
	b.WriteByte('\n')
	_, err := io.WriteString(w, b.String())
	return err
}

// Diff is the change as a unified diff with the project's paths, cut to most bytes.
func (p *Plan) Diff(most int) string {
	var b strings.Builder
	for _, f := range p.Files {
		old, now := "a/"+p.rel(f.Path), "b/"+p.rel(f.Path)
		if f.Delete {
			text, _ := regular(f.Path)
			b.WriteString(diff.Unified(old, os.DevNull, text, ""))
			continue
		}
		if f.Old == "" {
			old = os.DevNull
		}
		b.WriteString(diff.Unified(old, now, f.Old, f.Text))
		// Further files would be cut anyway, and comparing a large change takes time.
		if b.Len() > most {
			break
		}
	}
	return cut(b.String(), most, "the rest of the change is left out; the files are: "+strings.Join(p.Paths(), ", "))
}

// name is a path as people read it: relative to the project.
func (p *Plan) name(path string) string {
	if r, err := filepath.Rel(p.Root, path); err == nil && paths.Within(p.Root, path) {
		return r
	}
	return path
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
	for _, x := range v.Introduced {
		fmt.Fprintf(&b, "%s:%d:%d: %s: %s", p.name(x.Path), x.Line, x.Column, x.Severity, strings.ReplaceAll(x.Message, "\n", "\n    "))
		if tag := strings.TrimSpace(x.Source + " " + x.Code); tag != "" {
			b.WriteString(" [" + tag + "]")
		}
		b.WriteByte('\n')
	}
	b.WriteString(p.summary(v) + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// summary is the verdict in one line, without its end.
func (p *Plan) summary(v change.Verdict) string {
	files := "1 file"
	if n := len(p.Paths()); n != 1 {
		files = fmt.Sprintf("%d files", n)
	}
	switch {
	case len(p.Files) == 0 && len(p.unchecked) == 0:
		return "nothing has changed"
	case v.Unserved:
		return fmt.Sprintf("%s changed; no language server checks them", files)
	case v.Certainty == change.Fresh:
		return fmt.Sprintf("%s changed: %s", files, v.Headline())
	case v.Certainty == change.Partial:
		return fmt.Sprintf("%s changed: %s (checked in part: %s)", files, v.Headline(), v.Reason)
	}
	return fmt.Sprintf("%s changed: not checked (%s: %s)", files, v.Certainty, v.Reason)
}

// sarif is the verdict as SARIF 2.1.0 (OASIS): a result for each introduced problem, and a notification
// for what could not be checked, so that a viewer does not show an incomplete check as a clean one. Lines
// and columns count from 1, columns in UTF-16 units, as columnKind declares. more are findings without columns; they are
// results under the rule of their source.
func (p *Plan) sarif(version string, v change.Verdict, more []Finding) any {
	type object = map[string]any
	levels := map[change.Severity]string{change.SeverityError: "error", change.SeverityWarning: "warning", change.SeverityInformation: "note", change.SeverityHint: "note"}
	results := []object{}
	var rules []object
	var ids []string
	add := func(id, path string, severity change.Severity, message string, region object) {
		if id == "" {
			id = "problem"
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
			rules = append(rules, object{"id": id})
		}
		uri := object{"uri": filepath.ToSlash(path)}
		if r, err := filepath.Rel(p.Root, path); err == nil && paths.Within(p.Root, path) {
			uri = object{"uri": filepath.ToSlash(r), "uriBaseId": "%SRCROOT%"}
		}
		results = append(results, object{"ruleId": id, "level": levels[severity], "message": object{"text": message},
			"locations": []object{{"physicalLocation": object{"artifactLocation": uri, "region": region}}}})
	}
	for _, x := range v.Introduced {
		region := object{"startLine": x.Line, "startColumn": x.Column}
		if x.EndLine > 0 {
			region["endLine"], region["endColumn"] = x.EndLine, x.EndColumn
		}
		add(strings.Trim(x.Server+"/"+x.Code, "/"), x.Path, x.Severity, x.Message, region)
	}
	for _, f := range more {
		add(strings.Trim(f.Source+"/"+f.Code, "/"), f.Path, f.Severity, f.Message, object{"startLine": f.Line, "endLine": f.EndLine})
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
