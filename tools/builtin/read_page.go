package builtin

import (
	"fmt"
	"strings"

	"github.com/pillion-dev/pillion/tools"
)

// page collects the lines that are asked for and counts all of them.
type page struct {
	from, limit int
	shown       []string
	bytes       int
	total       int
	capped      bool // the byte limit ended it
	open        bool // total is not known: the file goes on
}

// line takes the next line, without its newline; it says whether later ones can still be shown.
func (p *page) line(s string) bool {
	p.total++
	if p.total < p.from || p.full() {
		return !p.full()
	}
	s = cutLine(strings.TrimSuffix(s, "\r"))
	if p.bytes+len(s)+1 > readBytes && len(p.shown) > 0 {
		p.capped = true
		return false
	}
	p.bytes += len(s) + 1
	p.shown = append(p.shown, s)
	return !p.full()
}

func (p *page) full() bool { return p.capped || len(p.shown) >= p.limit }

// cutLine keeps the first characters of a long line.
func cutLine(s string) string {
	if len(s) <= readLine {
		return s
	}
	n := 0
	for i := range s {
		if n == readLine {
			return s[:i] + fmt.Sprintf("... (line truncated to %d chars)", readLine)
		}
		n++
	}
	return s
}

func (p *page) result(path string) (tools.Result, error) {
	if p.from > max(p.total, 1) {
		return tools.Result{}, &tools.Error{Kind: "out_of_range", Message: fmt.Sprintf("Offset %d is out of range for this file (%d lines)", p.from, p.total)}
	}
	var sb strings.Builder
	fmt.Fprintf(&sb, "<path>%s</path>\n<type>file</type>\n<content>\n", path)
	for i, s := range p.shown {
		fmt.Fprintf(&sb, "%d: %s\n", p.from+i, s)
	}
	last := p.from + len(p.shown) - 1
	of := fmt.Sprintf(" of %d", p.total)
	if p.open {
		of = ""
	}
	more := p.open || last < p.total
	switch {
	case p.total == 0 && !p.open:
		sb.WriteString("\n(End of file - total 0 lines)\n(The file is empty.)")
	case p.capped:
		fmt.Fprintf(&sb, "\n(Output capped at 50 KB. Showing lines %d-%d. Use offset=%d to continue.)", p.from, last, last+1)
	case more:
		fmt.Fprintf(&sb, "\n(Showing lines %d-%d%s. Use offset=%d to continue.)", p.from, last, of, last+1)
	default:
		fmt.Fprintf(&sb, "\n(End of file - total %d lines)", p.total)
	}
	sb.WriteString("\n</content>")
	return tools.Result{Output: sb.String(), Metadata: map[string]any{
		"preview": strings.Join(p.shown[:min(len(p.shown), readPreview)], "\n"), "truncated": more,
		"display": map[string]any{"type": "file", "path": path, "lineStart": p.from, "lineEnd": last, "totalLines": p.total, "truncated": more},
	}}, nil
}
