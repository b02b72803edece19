package search

import (
	"errors"
	"testing"
)

// What Go would read as another class is refused, and nothing else is.
func TestClassesOnlyRipgrepReads(t *testing.T) {
	for _, p := range []string{`[a-z&&[^b]]oo`, `[a[bc]]`, `[\w&&[^\d]]+`, `x[a-z~~b]`, `[a&&b]`} {
		if _, err := compile(p); !errors.As(err, new(*PatternError)) {
			t.Errorf("%s is read: %v", p, err)
		}
	}
	for _, p := range []string{`[[:alpha:]]+`, `[^[]`, `[^[]x[^]]`, `[][]`, `a && b`, `[&]&`, `\[a[b]\]`, `[\[\]]`, `[]a]`, `[[:^digit:]_]`, `[a\&&]`} {
		if _, err := compile(p); err != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
}
