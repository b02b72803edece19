package replace

import (
	"strings"
	"testing"
)

// A quoted line that the file does not have is not written because the change has it in another place: models put a mark for lines that they
// leave out there, and what was read may have gone since.
func TestALineThatIsNotThereIsNotMoved(t *testing.T) {
	file := "def a(self):\n    one(1)\n    two(2)\n\n    three(3)\n    four(4)\n\n\ndef b(self):\n    pass\n"
	for _, mark := range []string{"...", "# ...", "    # rest unchanged", "    gone_since(0)"} {
		old := "def a(self):\n    one(1)\n    two(2)\n" + mark + "\n    three(3)\n    four(4)\n\n"
		for _, new := range []string{
			"def a(self):\n    one(1)\n    two(2)\n\n    three(3)\n    four(4)\n    five(5)\n" + mark + "\n",
			mark + "\ndef a(self):\n    one(1)\n    two(2)\n    three(3)\n    four(4)\n\n",
		} {
			if r, err := Apply(file, old, new, false); err == nil && strings.Contains(r.Text, strings.TrimSpace(mark)) {
				t.Errorf("%q was written:\n%s", mark, r.Text)
			}
		}
	}
}

// Behind a line that opens nothing and a blank one, a new line is not deeper in the quotation's frame: it is at a depth of the file, from which
// the quoted line was taken without its indentation.
func TestADeeperLineBehindOneThatOpensNothing(t *testing.T) {
	lines := strings.Split("class T:\n    def a(self):\n        assert first(1)\n\n    def z(self):\n        pass", "\n")
	old := []string{"assert first(1)", ""}
	new := strings.Split("assert first(1)\n\n    def b(self):\n        assert second(2)\n", "\n")
	got, ok := MergeIn(lines, old, lines[2:4], new)
	if want := "        assert first(1)\n\n    def b(self):\n        assert second(2)\n"; ok && strings.Join(texts(got), "\n") != want {
		t.Errorf("%q", texts(got))
	}
}
