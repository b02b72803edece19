package editors

import "testing"

func TestLaggingEndsWhenTheEditorHasShownTheText(t *testing.T) {
	var l lagging
	l.wrote("f", "one\n", "two\n", false)
	l.wrote("f", "two\n", "three\n", true)
	for _, x := range []struct {
		text, disk string
		want       bool
	}{
		{"one\n", "three\n", true}, {"two", "three\n", true}, {"one\nmore\n", "three\n", false}, {"one\r\n", "three\n", true},
		{"three\n", "three\n", false}, // it has caught up
		{"one\n", "three\n", false},   // the person's undo
	} {
		if got, _ := l.behind("f", x.text, x.disk); got != x.want {
			t.Errorf("behind(%q, %q) = %v", x.text, x.disk, got)
		}
	}
	l.wrote("f", "one\n", "two\n", false)
	if got, _ := l.behind("f", "one\n", "other\n"); got {
		t.Error("somebody else wrote the file since")
	}
}
