package affected

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// cargoTests runs the tests of the changed packages of a Cargo workspace, and of the packages that depend on them by a path.
// Manifests are read with regular expressions: a wrong match only adds tests.
type cargoTests struct{}

var (
	// cargoName finds the package's name (doc.rust-lang.org/cargo/reference/manifest.html). A workspace manifest without a
	// [package] table has none.
	cargoName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?ms)^\[package\]\s*$.*?^name\s*=\s*"([^"]+)"`) })
	// cargoPath finds dependencies within the workspace: util = { path = "../util" }, or a table of its own. It matches the path
	// of a [lib] or [[bin]] too, which names a file; no package has that folder, so the edge leads nowhere.
	cargoPath = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)\bpath\s*=\s*"([^"]+)"`) })
	// cargoInherits finds a member that inherits something from its workspace's manifest. It may be a dependency, whose path is
	// then there and not in the member's own manifest.
	cargoInherits = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\bworkspace\s*=\s*true\b`) })
)

// plan implements runner. "cargo test" builds all tests of a package, so whole packages are tested.
func (cargoTests) plan(p *Project) []Run {
	names, users := map[string]string{}, map[string][]string{} // package names, and folders of dependents; both by the package's folder
	paths := map[string][]string{}                             // folders that a manifest names; by its own
	var inherit []string                                       // folders of members that inherit
	for _, f := range p.List {
		if filepath.Base(f) != "Cargo.toml" {
			continue
		}
		text, _ := p.Read(f)
		dir := filepath.Dir(f)
		if m := cargoName().FindStringSubmatch(text); m != nil {
			names[dir] = m[1]
		}
		for _, m := range cargoPath().FindAllStringSubmatch(text, -1) {
			to := filepath.Join(dir, filepath.FromSlash(m[1]))
			users[to] = append(users[to], dir)
			paths[dir] = append(paths[dir], to)
		}
		if cargoInherits().MatchString(text) {
			inherit = append(inherit, dir)
		}
	}
	for _, member := range inherit {
		for dir := member; dir != p.Root && dir != filepath.Dir(dir); {
			dir = filepath.Dir(dir)
			for _, to := range paths[dir] {
				if to != member {
					users[to] = append(users[to], member)
				}
			}
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
		} else if filepath.Base(f) == "Cargo.lock" || filepath.Base(f) == "Cargo.toml" {
			// A workspace without a package of its own: its versions and profiles apply to every member.
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
	// The outermost Cargo.toml is the workspace's: -p finds members only from there.
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
	// Without --no-fail-fast, cargo stops after the first test program with a failure; the others would seem to have passed.
	args := []string{"cargo", "test", "--no-fail-fast"}
	for _, name := range packages {
		args = append(args, "-p", name)
	}
	return []Run{{Dir: top, Args: args, Name: "cargo test of " + textutil.Plural(len(packages), "affected package")}}
}

// only implements runner. cargo takes one TESTNAME, so a run with several failed tests is repeated as a whole. A single failed test
// is named; --exact excludes tests whose names contain that name.
func (cargoTests) only(r Run, tests []change.TestResult) Run {
	if len(tests) == 1 {
		r.Args = append(slices.Clone(r.Args), tests[0].Name, "--", "--exact")
	}
	return r
}

// Lines of the report: "     Running unittests src/lib.rs (target/debug/deps/u-5b…)" or "   Doc-tests u", which cargo prints on
// standard error; "test tests::bad ... FAILED"; and "---- tests::bad stdout ----" before the output of a failed test.
var (
	cargoSuite = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^\s*(?:Running (?:unittests |tests/)?(\S+)|Doc-tests (\S+))`)
	})
	cargoTest = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^test (.+?)(?: - should panic)? \.\.\. (ok|FAILED|ignored)`)
	})
	cargoOutput = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^---- (.+) stdout ----$`) })
)

// results implements runner. It reads the text that Rust's test harness prints (doc.rust-lang.org/rustc/tests), because the JSON
// format is unstable. All statuses come before the outputs of failed tests, so there is a second loop.
func (cargoTests) results(output string) (out []change.TestResult) {
	suite := ""
	var into *strings.Builder
	outputs := map[string]*strings.Builder{} // by suite, NUL, name: tests of two suites may share a name
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\r\n")
		if m := cargoSuite().FindStringSubmatch(line); m != nil {
			suite, into = m[1]+m[2], nil
			continue
		}
		if m := cargoTest().FindStringSubmatch(line); m != nil {
			status := map[string]change.EvidenceStatus{"ok": change.EvidencePassed, "FAILED": change.EvidenceFailed, "ignored": change.EvidenceSkipped}[m[2]]
			out = append(out, change.TestResult{Suite: suite, Name: m[1], Status: status})
			continue
		}
		if m := cargoOutput().FindStringSubmatch(line); m != nil {
			into = &strings.Builder{}
			outputs[suite+"\x00"+m[1]] = into
			continue
		}
		if line == "failures:" { // the list of names that follows the last output
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
