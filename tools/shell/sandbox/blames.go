package sandbox

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// A command can exit with 0 although the sandbox blocked a part of it: a pipeline that ends in head, a list with ||, a script
// that ignores errors. Words such as "permission denied" in its output are not enough, because they may have another cause.
// So a line counts only if it names a path that the sandbox blocks and that this program itself could write.

// blamed is the path that the sandbox kept a command with exit code 0 from writing; empty when the output names none. A wrong
// path would make the model work around a problem that does not exist, so keepsFrom checks each one.
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

// namedIn lists the parts of a line that may be paths: everything in quotes, and every word with a slash. Most programs
// quote like 'a' or "a", GNU programs with a UTF-8 locale like ‘a’, programs in Rust like `a`.
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

// keepsFrom reports whether the sandbox is the only thing that keeps a command from writing to a path: the path is not writable
// in the box, but this program could write it. Relative names start at b.Dir.
func (b *Box) keepsFrom(name string) bool {
	// 4096 is PATH_MAX of Linux, in bytes. A longer text or a URL is not a path.
	if name == "" || len(name) > 4096 || strings.Contains(name, "://") {
		return false
	}
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(b.Dir, path)
	}
	path = filepath.Clean(path)
	real := realDir(path)
	if real == path && missing(path) { // a file to be created: resolve the links of its folder
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

// Passed is a message, for model and person, about a command that exited with 0 although the sandbox denied it processes or
// the network. It is empty when the output shows nothing of the kind.
func (b *Box) Passed(out Result) string {
	if b == nil || out.Exit != 0 {
		return ""
	}
	text := strings.ToLower(out.Output)
	switch {
	// bash prints this when it retries a fork, and may still exit with 0.
	case strings.Contains(text, "fork: retry"):
		return fmt.Sprintf("The sandbox kept this command from starting more processes: it allows %d processes and threads at once. Some of what it was to start did not run.", b.Processes)
	case !b.Network && slices.ContainsFunc(saysNoNetwork, func(w string) bool { return strings.Contains(text, w) }):
		return `A part of this command asked for the network, which the sandbox does not have. If that was needed, call bash again with "unsandboxed": true; the user is asked.`
	}
	return ""
}

// saysNoNetwork are the words of saysNetwork that only a missing network explains. A passing test of a server may well print
// "connection refused", so that is not among them.
var saysNoNetwork = []string{"network is unreachable", "could not resolve host", "temporary failure in name resolution", "name or service not known", "getaddrinfo enotfound", "eai_again", "enetunreach"}
