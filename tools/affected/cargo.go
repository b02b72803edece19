package affected

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// cargoTests tests the packages of a Cargo workspace that were changed, and those that depend on them by a path.
type cargoTests struct{}

var (
	cargoName = regexp.MustCompile(`(?ms)^\[package\]\s*$.*?^name\s*=\s*"([^"]+)"`)
	// A dependency within the workspace has a path: util = { path = "../util" }, or a table of its own.
	cargoPath = regexp.MustCompile(`(?m)\bpath\s*=\s*"([^"]+)"`)
)

func (cargoTests) plan(p *Project) []Run {
	names, users := map[string]string{}, map[string][]string{} // by the package's folder
	for _, f := range p.List {
		if filepath.Base(f) != "Cargo.toml" {
			continue
		}
		text, _ := p.Read(f)
		dir := filepath.Dir(f)
		if m := cargoName.FindStringSubmatch(text); m != nil {
			names[dir] = m[1]
		}
		for _, m := range cargoPath.FindAllStringSubmatch(text, -1) {
			to := filepath.Join(dir, filepath.FromSlash(m[1]))
			users[to] = append(users[to], dir)
		}
	}
	var changed []string
	for _, f := range p.changedPaths() {
		if base := filepath.Base(f); !strings.HasSuffix(f, ".rs") && base != "Cargo.toml" && base != "Cargo.lock" {
			continue
		}
		dir := filepath.Dir(f)
		for names[dir] == "" && dir != p.Root && dir != filepath.Dir(dir) {
			dir = filepath.Dir(dir)
		}
		if names[dir] != "" {
			changed = append(changed, dir)
		} else if filepath.Base(f) == "Cargo.lock" || filepath.Base(f) == "Cargo.toml" { // of a workspace without a package of its own
			changed = slices.Collect(maps.Keys(names))
			break
		}
	}
	if len(changed) == 0 {
		return nil
	}
	var packages []string
	for dir := range reach(changed, users) {
		if names[dir] != "" {
			packages = append(packages, names[dir])
		}
	}
	slices.Sort(packages)
	// The outermost Cargo.toml is the workspace's.
	at := filepath.Dir(changed[0])
	top := changed[0]
	for ; len(at) >= len(p.Root); at = filepath.Dir(at) {
		if _, ok := p.Read(filepath.Join(at, "Cargo.toml")); ok {
			top = at
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	args := []string{"cargo", "test", "--no-fail-fast"}
	for _, name := range packages {
		args = append(args, "-p", name)
	}
	return []Run{{Dir: top, Args: args, Name: "cargo test of " + textutil.Plural(len(packages), "affected package")}}
}

// only implements runner. cargo takes one name, so the packages are run again as a whole, but what did not fail is left out
// where there is one failed test only.
func (cargoTests) only(r Run, tests []change.TestResult) Run {
	if len(tests) == 1 {
		r.Args = append(slices.Clone(r.Args), tests[0].Name, "--", "--exact")
	}
	return r
}

var (
	cargoSuite  = regexp.MustCompile(`^\s*(?:Running (?:unittests |tests/)?(\S+)|Doc-tests (\S+))`)
	cargoTest   = regexp.MustCompile(`^test (.+?)(?: - should panic)? \.\.\. (ok|FAILED|ignored)`)
	cargoOutput = regexp.MustCompile(`^---- (.+) stdout ----$`)
)

// results implements runner: what the test harness of Rust prints (doc.rust-lang.org/rustc/tests).
func (cargoTests) results(output string) (out []change.TestResult) {
	suite := ""
	var into *strings.Builder
	outputs := map[string]*strings.Builder{}
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\r\n")
		if m := cargoSuite.FindStringSubmatch(line); m != nil {
			suite, into = m[1]+m[2], nil
			continue
		}
		if m := cargoTest.FindStringSubmatch(line); m != nil {
			status := map[string]change.EvidenceStatus{"ok": change.EvidencePassed, "FAILED": change.EvidenceFailed, "ignored": change.EvidenceSkipped}[m[2]]
			out = append(out, change.TestResult{Suite: suite, Name: m[1], Status: status})
			continue
		}
		if m := cargoOutput.FindStringSubmatch(line); m != nil {
			into = &strings.Builder{}
			outputs[suite+"\x00"+m[1]] = into
			continue
		}
		if line == "failures:" {
			into = nil
		}
		if into != nil {
			into.WriteString(line + "\n")
		}
	}
	for i := range out {
		if b := outputs[out[i].Suite+"\x00"+out[i].Name]; b != nil {
			out[i].Output = b.String()
		}
	}
	return out
}
