package lspbridge

import "testing"

func TestIndexProgress(t *testing.T) {
	p := newProgress()
	look := func(step string, running, done bool, detail string) {
		t.Helper()
		if r, d, s := p.index("indexing"); r != running || d != done || s != detail {
			t.Errorf("%s: running %v, done %v, %q", step, r, d, s)
		}
	}
	look("nothing has been said", false, false, "")
	p.update("other", "begin", "loading", "")
	p.update("other", "end", "", "")
	look("another work has ended", false, false, "")
	p.update("t", "begin", "Indexing", "")
	look("begun", true, false, "")
	p.update("t", "report", "", "3/9")
	look("reported", true, false, "3/9")
	p.update("t", "end", "", "")
	look("ended", false, true, "")
	p.update("t", "begin", "indexing", "0/1")
	look("begun again: a file has changed", true, false, "0/1")
	p.update("t", "begin", "Intelephense (1.18.5) indexing", "")
	look("begun by a title that has a version first", true, false, "")
}
