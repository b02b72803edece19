//go:build linux && cgo

package programs

import (
	"slices"
	"testing"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// A program that runs what it is given is asked about, and rules that deny see what echo and printf would give it, in the reading of
// bash and in that of shells whose echo decodes escapes.
func TestWhatIsPrintedForAnotherProgramIsSeen(t *testing.T) {
	f := newFixture(t)
	for _, command := range []string{
		`printf '\x72m x' | sh`, `printf %b '\162m x' | bash`, `printf '%s %s\n' rm x | sh -s`, `echo -e '\x72m x' | bash`, `echo 'ls\nrm x' | sh`, `{ printf r; printf 'm x'; } | sh`,
		`sh -c "$(printf '\x72m x')"`, `bash -c "$(echo rm x)"`, `env $(printf '\x72m') x`, `sudo $(printf '\x72m') x`, `watch "$(printf 'rm x')"`, `find . -exec $(printf rm) x \;`,
		`x=$(printf '\x72m'); nohup $x x`,
	} {
		a := f.analyze(command)
		if !a.Opaque {
			t.Errorf("%s\nis not opaque", command)
		}
		if !slices.ContainsFunc(a.Calls, func(c scan.Call) bool { return c.Text == "rm x" || slices.Contains(c.Also, "rm x") }) {
			t.Errorf("%s\nrm x is not among %q", command, a.Commands())
		}
	}
	// dc runs what stands behind "!"; a format hides that.
	for _, command := range []string{`printf '\x21id' | dc`, `printf '\041id' | dc`, `echo '!id' | dc`} {
		if a := f.analyze(command); !a.Opaque {
			t.Errorf("%s\nis not opaque", command)
		}
	}
}

// A wildcard that came from a variable finds what the same wildcard finds: files that may not be read, and links that lead outside.
func TestWildcardsInVariablesAreLookedUp(t *testing.T) {
	f := newFixture(t)
	for _, command := range []string{`x='out-l*'; cat $x`, `x="out-l??k"; cat $x`, `for x in 'out-l*'; do cat $x; done`, `y=; cat ${y:-'out-*'}`} {
		if a := f.analyze(command); !slices.Contains(a.External, scan.PathAccess{Path: "/etc/passwd", Access: scan.Read}) {
			t.Errorf("%s\nreads /etc/passwd, but is said to touch %v (opaque: %v)", command, a.External, a.Opaque)
		}
	}
	if a := f.analyze(`x='out-l*'; cat "$x"`); len(a.External) > 0 {
		t.Errorf("between quotes a wildcard finds nothing, but it is said to touch %v", a.External)
	}
}
