package sandbox

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// A pipeline that ends in head, a list that continues with ||, a script that does not look: such a command ends well
// though the sandbox stopped a part of it. Its output may hold the same words for other reasons, so what is said of it
// is looked at: a line counts that names a path which the sandbox keeps it from writing, and which this program could write.

// blamed is the place that a command which ended well was kept from writing to; empty: none is known.
// A wrong answer sends the model after a place that the command never needed, so each name is checked with
// keepsFrom before it counts.
func (b *Box) blamed(out Result) string {
	text := out.Output
	for line := range strings.Lines(text) {
		low := strings.ToLower(line)
		if !slices.ContainsFunc(saysFiles, func(w string) bool { return strings.Contains(low, w) }) {
			continue
		}
		for _, name := range namedIn(line) {
			if b.keepsFrom(name) {
				return name
			}
		}
	}
	return ""
}

// namedIn are the words of a line that can be paths: what is in quotes, and what looks like one.
// Programs quote in different ways: 'a' and "a" in most, ‘a’ in GNU programs with a UTF-8 locale, `a` in those
// of Rust. What is quoted otherwise is found only where it holds a slash.
func namedIn(line string) []string {
	var out []string
	for _, q := range [...]string{"''", `""`, "‘’", "``"} {
		open, end := string([]rune(q)[0]), string([]rune(q)[1])
		for rest := line; ; {
			_, after, ok := strings.Cut(rest, open)
			name, next, closed := strings.Cut(after, end)
			if !ok || !closed {
				break
			}
			out, rest = append(out, name), next
		}
	}
	for _, f := range strings.Fields(line) {
		if f = strings.Trim(f, "\"'‘’`:,;()[]<>"); strings.Contains(f, "/") {
			out = append(out, f)
		}
	}
	return out
}

// keepsFrom reports whether the sandbox, and nothing else, keeps a command from writing to a path.
func (b *Box) keepsFrom(name string) bool {
	// 4096 is the kernel's PATH_MAX; what is longer, or an address, is not a file.
	if name == "" || len(name) > 4096 || strings.Contains(name, "://") {
		return false
	}
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(b.Dir, path)
	}
	path = filepath.Clean(path)
	real := realDir(path)
	if real == path && missing(path) { // to be made: its folder decides
		real = filepath.Join(realDir(filepath.Dir(path)), filepath.Base(path))
	}
	within := func(list []string) bool {
		return slices.ContainsFunc(list, func(p string) bool { return real == p || below(p, real) })
	}
	if within(b.Writable) && !within(b.ReadOnly) && !slices.Contains(b.Pinned, real) {
		return false
	}
	at := real
	if missing(at) {
		at = filepath.Dir(at)
	}
	return mayWrite(at)
}

// Passed says, for a command that ended well, what the sandbox kept from it meanwhile; empty: nothing that is known.
func (b *Box) Passed(out Result) string {
	if b == nil || out.Exit != 0 {
		return ""
	}
	text := strings.ToLower(out.Output)
	switch {
	// bash prints this while it tries again, and may then end with 0.
	case strings.Contains(text, "fork: retry"):
		return fmt.Sprintf("The sandbox kept this command from starting more processes: it allows %d processes and threads at once. Some of what it was to start did not run.", b.Processes)
	case !b.Network && slices.ContainsFunc(saysNoNetwork, func(w string) bool { return strings.Contains(text, w) }):
		return `A part of this command asked for the network, which the sandbox does not have. If that was needed, call bash again with "unsandboxed": true; the user is asked.`
	}
	return ""
}

// saysNoNetwork are those of saysNetwork that a refusing server or a test of one does not say.
// A test of a server may well print "connection refused" and pass.
var saysNoNetwork = []string{"network is unreachable", "could not resolve host", "temporary failure in name resolution", "name or service not known", "getaddrinfo enotfound", "eai_again", "enetunreach"}
