package run

import (
	"fmt"
	"strings"
	"testing"
)

// Output within both limits is whole. Beyond one of them its beginning and its end are shown in whole lines, and what is missing is counted.
func TestOutputAroundItsLimits(t *testing.T) {
	for _, n := range []int{0, 1, 2, maxLines - 1, maxLines, maxLines + 1, 3 * maxLines} {
		for _, width := range []int{0, 1, maxWhole/maxLines - 1, maxWhole / maxLines, 100, 3000, maxWhole/2 - 1, maxWhole/2 + 1, maxWhole - 1, maxWhole} {
			if n*width > 8*maxWhole {
				continue
			}
			var b strings.Builder
			for i := range n {
				line := fmt.Sprint(i)
				b.WriteString(line[:min(len(line), width)] + strings.Repeat("x", max(0, width-len(line))) + "\n")
			}
			text := b.String()
			c := &collector{dir: t.TempDir(), most: MaxSpill}
			for rest := text; rest != ""; {
				piece := rest[:min(len(rest), 4096+n)]
				c.add([]byte(piece))
				rest = rest[len(piece):]
			}
			out, name := c.result(), fmt.Sprintf("%d lines of %d bytes", n, width+1)
			if out.Bytes != int64(len(text)) {
				t.Errorf("%s: %d bytes", name, out.Bytes)
			}
			if len(text) <= maxWhole && n <= maxLines {
				if out.Truncated || out.Head != text || out.Tail != "" || out.Path != "" || out.Cut != 0 {
					t.Errorf("%s are not whole: %d and %d bytes, cut %d, file %q", name, len(out.Head), len(out.Tail), out.Cut, out.Path)
				}
				continue
			}
			if !out.Truncated || out.Path == "" || !strings.HasPrefix(text, out.Head) || !strings.HasSuffix(text, out.Tail) || out.Cut != int64(len(text)-len(out.Head)-len(out.Tail)) || out.Cut < 0 {
				t.Errorf("%s are cut to %d and %d bytes, without %d: %t, file %q", name, len(out.Head), len(out.Tail), out.Cut, out.Truncated, out.Path)
			}
			head, tail := strings.Count(out.Head, "\n"), strings.Count(out.Tail, "\n")
			if len(out.Head)+len(out.Tail) > maxWhole || head > maxLines/3 || tail > maxLines-maxLines/3 {
				t.Errorf("%s: too much is shown: %d and %d bytes, %d and %d lines", name, len(out.Head), len(out.Tail), head, tail)
			}
			// Only what one line fills is cut within it, and as much as fits is shown.
			if width < headSize/2 && (!strings.HasSuffix(out.Head, "\n") || text[len(text)-len(out.Tail)-1] != '\n') {
				t.Errorf("%s are cut within a line", name)
			}
			if n > maxLines && width < 2 && (head != maxLines/3 || tail != maxLines-maxLines/3) {
				t.Errorf("%s: only %d and %d lines are shown", name, head, tail)
			}
			if width >= 2 && len(out.Head)+len(out.Tail) < maxWhole/3 {
				t.Errorf("%s: only %d and %d bytes are shown", name, len(out.Head), len(out.Tail))
			}
		}
	}
}
