package slash

import (
	"slices"
	"testing"
)

func TestArguments(t *testing.T) {
	for _, c := range []struct{ text, args, want string }{
		{"fix $ARGUMENTS now", "a b", "fix a b now"},
		{"$1 and $2", `"one two" three four`, "one two and three four"},
		{"$2 before $1", "a b", "b before a"},
		{"$1 and $3", "a", "a and "},
		{"costs $5.00", "", "costs .00"},
		{"nothing $x", "a", "nothing $x"},
	} {
		if got := arguments(c.text, c.args, fields(c.args)); got != c.want {
			t.Errorf("%q with %q: %q, want %q", c.text, c.args, got, c.want)
		}
	}
	if got := fields(` a  'b c' "" d"e f" `); !slices.Equal(got, []string{"a", "b c", "", "de f"}) {
		t.Errorf("%q", got)
	}
}
