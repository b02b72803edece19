package replace

import (
	"slices"
	"strings"
)

// Reindent indents lines as their place in a file requires. there is a declaration in that place: the one that they replace, or (beside)
// one that they are put next to. Pairs of lines decide: the first lines of both, and every line that both have. No width is assumed, so a
// body in tabs fits a file in spaces and the other way round. file is all lines of the file, for the unit in which it is indented; nil: unknown.
//
//	Reindent(nil, []string{"\tdef f(self):", "\t\tpass"}, []string{"def f(self):", "    return 1"}, false)
//	// "\tdef f(self):", "\t\treturn 1"
//
// ok is false when the depth of a line could be meant in two ways; the caller then asks the model for the lines with their final
// indentation.
func Reindent(file, there, lines []string, beside bool) (out []string, ok bool) {
	head, first := firstLine(there), firstLine(lines)
	if head < 0 || first < 0 {
		return lines, true
	}
	lines = slices.Clone(lines)
	m := &merger{base: slices.Clone(there), ours: there, theirs: lines, pair: make([]int, len(there)), same: make([]bool, len(there)), from: make([]int, len(lines))}
	m.file = styleOf(file)
	for i := range m.pair {
		m.pair[i] = i
	}
	for j := range m.from {
		m.from[j] = -1
	}
	// show makes a line of the file evidence of how deep the new text puts it: base becomes that line as the author of the new text would
	// have quoted it.
	show := func(i int, in string) {
		m.base[i], m.same[i] = in+trimLeft(there[i]), true
	}
	if !beside {
		m.from = align(there, lines)
		for j, i := range m.from {
			if i >= 0 {
				show(i, indent(lines[j]))
			}
		}
	}
	if m.from[first] >= 0 {
		head = m.from[first] // of several overloads the one that stays
	} else if !m.same[head] {
		m.from[first] = head
		show(head, indent(lines[first]))
	}
	// Only the first line lacks the indentation, and all others that stay are as deep as in the file.
	if indent(lines[first]) == "" && indent(there[head]) != "" && asDeep(there, lines[first+1:], m.from[first+1:]) {
		lines[first] = indent(there[head]) + lines[first]
		show(head, indent(there[head]))
	}
	have, want := inside(there, head), inside(lines, first)
	switch last := lastLine(lines); {
	case have >= 0 && want >= 0 && !m.same[have] &&
		(indent(there[have]) == indent(lines[want]) && indent(there[head]) != indent(lines[first]) || otherKind(indent(there[have]), indent(lines[want]))):
		// Only the first line lacks the indentation (it was copied from the middle of a line), or the file is indented with the other
		// character: in both cases the bodies are equally deep.
		show(have, indent(lines[want]))
	case have >= 0 && want >= 0 && !m.same[have] && m.oneLevel(have, want, head, first):
		show(have, indent(lines[want]))
	case have < 0 && last > first && closes(lines[last]) && indent(lines[first]) == "" && indent(lines[last]) == indent(there[head]):
		lines[first] = indent(there[head]) + trimLeft(lines[first])
		return lines, true
	}
	m.move = m.indentation()
	out = slices.Clone(lines)
	for j, line := range lines {
		if trim(line) == "" {
			out[j] = ""
			continue
		}
		in, known := m.move(j, indent(line))
		if !known {
			return nil, false
		}
		out[j] = in + trimLeft(line)
	}
	return out, true
}

// oneLevel reports whether line i of the file and line j of the new text are each the first line of a block, below lines that are a pair and
// open that block: both are one level deeper then, whatever the width of a level is.
func (m *merger) oneLevel(i, j, head, first int) bool {
	up, down := lastLine(m.ours[:i]), lastLine(m.theirs[:j])
	if up < 0 || down < 0 || m.from[down] != up && (up != head || down != first) {
		return false
	}
	opened := func(line, below string) bool {
		return opens(line) && len(indent(below)) > len(indent(line)) && strings.HasPrefix(indent(below), indent(line))
	}
	return opened(m.ours[up], m.ours[i]) && opened(m.theirs[down], m.theirs[j])
}

// asDeep reports whether the lines that are lines of the file (from gives which, -1 for none) are at its very depth, and there is one with
// words that is indented.
func asDeep(there, lines []string, from []int) bool {
	found := false
	for j, i := range from {
		if i < 0 || trim(lines[j]) == "" {
			continue
		}
		if indent(lines[j]) != indent(there[i]) {
			return false
		}
		found = found || worded(lines[j]) && indent(lines[j]) != ""
	}
	return found
}

// Keeps reports whether replacing there by lines loses nothing: every line of there that is not blank is among lines, in the same order,
// apart from white space around it.
func Keeps(there, lines []string) bool {
	k := 0
	for _, want := range there {
		if trim(want) == "" {
			continue
		}
		for k < len(lines) && trim(lines[k]) != trim(want) {
			k++
		}
		if k == len(lines) {
			return false
		}
		k++
	}
	return true
}

// firstLine is the index of the first line that is not blank, -1 when all are.
func firstLine(lines []string) int {
	return slices.IndexFunc(lines, func(s string) bool { return trim(s) != "" })
}

// lastLine is the last line that is not blank; -1 when all are.
func lastLine(lines []string) int {
	for i := len(lines) - 1; i >= 0; i-- {
		if trim(lines[i]) != "" {
			return i
		}
	}
	return -1
}

// inside is the least indented line behind a declaration's first one that is deeper than it, closing brackets aside; without one the least
// indented of all, -1 when there is none. It shows how deep the body stands; a comment above the declaration is as deep as that.
func inside(lines []string, head int) int {
	least, body := -1, -1
	for i := head + 1; i < len(lines); i++ {
		if trim(lines[i]) == "" || closes(lines[i]) {
			continue
		}
		in := indent(lines[i])
		if least < 0 || len(in) < len(indent(lines[least])) {
			least = i
		}
		if in != indent(lines[head]) && strings.HasPrefix(in, indent(lines[head])) && !strings.HasPrefix(trim(lines[i]), "*") && (body < 0 || len(in) < len(indent(lines[body]))) {
			body = i
		}
	}
	if body >= 0 {
		return body
	}
	return least
}

// otherKind says that of two indentations one begins with a tab and the other with a blank.
func otherKind(a, b string) bool { return a != "" && b != "" && a[0] != b[0] }
