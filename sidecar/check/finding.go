package check

import (
	"cmp"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/diff"
	"github.com/pillion-dev/pillion/tools/paths"
)

// Finding is one remark of a review about lines of the state after the changes. Lines count from 1, the last one
// included.
type Finding struct {
	Path     string          `json:"path"` // absolute
	Line     int             `json:"line"`
	EndLine  int             `json:"endLine"`
	Severity change.Severity `json:"severity"`
	Message  string          `json:"message"`
	Source   string          `json:"source"` // id of the language server, or ByModel
	Code     string          `json:"code,omitempty"`
	Changed  bool            `json:"changed"` // on a line that the change added or rewrote
}

// ByModel is the source of what a model found.
const ByModel = "model"

// Findings are the problems that the change introduces, those on changed lines first: these are the author's own, the
// others show what the change broke elsewhere. Within each group the gravest comes first.
func (p *Plan) Findings(v change.Verdict) []Finding {
	out := []Finding{}
	for _, x := range v.Introduced {
		f := Finding{Path: x.Path, Line: x.Line, EndLine: max(x.EndLine, x.Line), Severity: x.Severity, Message: x.Message, Source: x.Server, Code: x.Code}
		// The end is exclusive: a problem that ends at the start of a line does not reach into it.
		if x.EndLine > x.Line && x.EndColumn <= 1 {
			f.EndLine--
		}
		out = append(out, f)
	}
	p.Mark(out)
	slices.SortStableFunc(out, byWeight)
	return out
}

// byWeight orders findings: changed lines before others, errors before warnings, then by place.
func byWeight(a, b Finding) int {
	if a.Changed != b.Changed {
		if a.Changed {
			return -1
		}
		return 1
	}
	return cmp.Or(a.Severity.Number()-b.Severity.Number(), strings.Compare(a.Path, b.Path), a.Line-b.Line)
}

// Mark says of each finding whether it is about a line that the change added or rewrote. Paths are those of the project.
func (p *Plan) Mark(findings []Finding) {
	changed := map[string][][2]int{} // by path: first and last line, from 1
	for _, f := range p.Files {
		if f.Delete {
			continue
		}
		for _, e := range diff.Compute(f.Old, f.Text).Edits {
			changed[p.home(f.Path)] = append(changed[p.home(f.Path)], [2]int{e.B0 + 1, e.B1})
		}
	}
	for i := range findings {
		f := &findings[i]
		f.Changed = slices.ContainsFunc(changed[f.Path], func(r [2]int) bool { return f.Line <= r[1] && r[0] <= f.EndLine })
	}
}

// Lines gives the number of lines of a file after the change; false for a file that is not there then. The path is one
// of the project, absolute.
func (p *Plan) Lines(path string) (int, bool) {
	for _, f := range p.Files {
		if p.home(f.Path) == path {
			return len(diff.Lines(f.Text)), !f.Delete
		}
	}
	// A file that the change leaves alone is the same in the copy, where there is one.
	at := path
	if r, err := filepath.Rel(p.Root, path); err == nil && paths.Within(p.Root, path) {
		at = filepath.Join(p.Dir, r)
	}
	text, ok := regular(at)
	return len(diff.Lines(text)), ok
}

// FileLines is Lines for a project as it is on disk, where no plan was made.
func FileLines(path string) (int, bool) {
	text, ok := regular(path)
	return len(diff.Lines(text)), ok
}

// item is the first line of a finding in an answer: an optional list marker or heading, path:line or path:line-line, in
// code quotes, bold or as a link, then optionally a severity, then words.
var item = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("^\\s*(?:(?:[-*+]|\\d+[.)]|#{1,6})\\s+)?(?:\\*\\*|__)?\\[?`?" +
		"([^\\s`:*\\[\\]()][^`:*\\[\\]()]*?):L?(\\d+)(?:(?:-|–|:)L?(\\d+))?`?\\]?(?:\\([^)\\s]*\\))?(?:\\*\\*|__)?`?" +
		"\\s*(?:[:,—–-]+\\s*)?(.*)$")
})

// listed is the start of a list item.
var listed = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([-*+]|\d+[.)])\s`) })

// graded is a severity at the start of a finding's words, in the words that models use.
var graded = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^(?:\*\*(` + weights + `)(?:\*\*\s*[:—–-]+|\s*[:—–-]+\s*\*\*)|[\[(]?(` + weights + `)[\])]?\s*[:—–-]+)\s*`)
})

// weights are the words by which models grade. parseItem maps them to severities; those that it does not name are warnings.
const weights = `critical|blocker|error|bug|high|major|security|warning|warn|medium|minor|nit|low|info|information|note|hint|suggestion`

// ParseFindings reads the findings from a model's answer: lines that begin with path:line, as prompts/review.txt asks
// for, with the indented lines that follow. Paths are relative to root unless they are absolute. lines gives the number
// of lines of a file; findings about a file or a line that does not exist are dropped, because models make some up.
func ParseFindings(root, answer string, lines func(path string) (int, bool)) []Finding {
	out := []Finding{}
	var open *Finding // takes the lines that follow
	fence := ""       // the fence of the code block that the line is in
	for line := range strings.SplitSeq(answer, "\n") {
		trimmed := strings.TrimSpace(line)
		indented := trimmed != "" && (line[0] == ' ' || line[0] == '\t')
		switch {
		case fence != "":
			if strings.HasPrefix(trimmed, fence) {
				fence = ""
			}
		case strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~"):
			fence = trimmed[:3]
		default:
			if f, ok := parseItem(root, line, lines); ok {
				out = append(out, f)
				open = &out[len(out)-1]
				continue
			}
			// An item that is not a finding ends the one before it: it may be about a file that does not exist.
			if !indented && listed().MatchString(line) {
				open = nil
				continue
			}
			// So does a paragraph of its own, or a heading.
			if !indented && (trimmed == "" || strings.HasPrefix(trimmed, "#") || open != nil && strings.HasSuffix(open.Message, "\n")) {
				if open != nil && trimmed == "" && !strings.HasSuffix(open.Message, "\n") {
					open.Message += "\n" // an indented paragraph may follow
					continue
				}
				open = nil
				continue
			}
		}
		if open != nil {
			open.Message += "\n" + strings.TrimRight(line, " \t\r")
		}
	}
	for i := range out {
		out[i].Message = strings.TrimSpace(out[i].Message)
	}
	return slices.DeleteFunc(out, func(f Finding) bool { return f.Message == "" })
}

// parseItem reads the first line of a finding.
func parseItem(root, line string, lines func(path string) (int, bool)) (Finding, bool) {
	m := item().FindStringSubmatch(line)
	if m == nil {
		return Finding{}, false
	}
	path := filepath.FromSlash(m[1])
	if !filepath.IsAbs(path) {
		path = filepath.Join(root, path)
	}
	first, err := strconv.Atoi(m[2])
	if path = filepath.Clean(path); err != nil || !paths.Within(root, path) {
		return Finding{}, false
	}
	// path:line:column is what compilers write; only a second number that is larger can be a last line.
	last, err := strconv.Atoi(m[3])
	if err != nil || last < first || strings.Contains(line, m[2]+":"+m[3]) {
		last = first
	}
	n, ok := lines(path)
	if !ok || first < 1 || first > max(n, 1) {
		return Finding{}, false
	}
	f := Finding{Path: path, Line: first, EndLine: min(last, max(n, 1)), Severity: change.SeverityWarning, Message: m[4], Source: ByModel}
	if g := graded().FindStringSubmatch(f.Message); g != nil {
		f.Message = f.Message[len(g[0]):]
		switch strings.ToLower(g[1] + g[2]) {
		case "critical", "blocker", "error", "bug", "high", "security":
			f.Severity = change.SeverityError
		case "minor", "nit", "low", "info", "information", "note", "hint", "suggestion":
			f.Severity = change.SeverityInformation
		}
	}
	return f, true
}
