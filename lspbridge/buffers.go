package lspbridge

import (
	"os"
	"slices"
)

// maxUnsaved limits how many other unsaved buffers a server is sent: each must be read and sent before every question.
const maxUnsaved = 50

// buffer returns the editor's text of a file; ok is false when the file on disk counts.
func (f *fleet) buffer(path string) (string, bool) {
	if f.o.Buffer == nil {
		return "", false
	}
	return f.o.Buffer(path)
}

// unsaved returns the unsaved buffers that belong to this server and root.
func (f *fleet) unsaved(row Server, root string) []string {
	if f.o.Unsaved == nil {
		return nil
	}
	var out []string
	for _, p := range f.o.Unsaved() {
		if len(out) < maxUnsaved && row.matches(p) && slices.ContainsFunc(f.slotsFor(p), func(s *slot) bool { return s.spec.ID == row.ID && s.root == root }) {
			out = append(out, p)
		}
	}
	return out
}

// text returns a file as the person sees it: the editor's buffer, else the file on disk. ok is false for anything but a regular file, and
// for a file larger than 16 MiB, which no server handles in useful time.
func (f *fleet) text(path string) (string, bool) {
	if t, ok := f.buffer(path); ok {
		return t, true
	}
	if fi, err := os.Stat(path); err != nil || !fi.Mode().IsRegular() || fi.Size() > maxMessage/4 {
		return "", false
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", false
	}
	return decodeText(b), true
}
