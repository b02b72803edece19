package builtin

import (
	"fmt"
	"sort"
	"strings"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/fuzzy"
)

// maxListing is how many bytes a list of skills or sub-agents takes in a request. Every request pays for it, and projects with 900 skills
// exist, whose descriptions fill the context of most models. The definitions of MCP servers' tools get as much (mcp_budget).
const maxListing = 32 << 10

// minDescription is the shortest cut of a description, in bytes, that still says what something is for.
const minDescription = 40

// listing lists entries for a tool's description, a line each. Where the lines exceed the budget (bytes), long texts are cut to one length;
// where even short ones do not fit, it has names only. left is how many entries are not in it.
func listing(all []fuzzy.Described, budget int) (text string, left int) {
	size := func(longest int) (n int) {
		for _, d := range all {
			n += len("\n- : ") + len(d.Name) + min(len(d.Text), longest+len("…"))
		}
		return n
	}
	longest := 0
	for _, d := range all {
		longest = max(longest, len(d.Text))
	}
	if size(longest) > budget {
		longest = sort.Search(longest, func(n int) bool { return size(n+1) > budget })
	}
	var b strings.Builder
	for i, d := range all {
		line := fmt.Sprintf("\n- %s: %s", d.Name, tools.Cut(d.Text, longest))
		if longest < minDescription && longest < len(d.Text) {
			line = "\n- " + d.Name
		}
		if b.Len()+len(line) > budget {
			return b.String(), len(all) - i
		}
		b.WriteString(line)
	}
	return b.String(), 0
}
