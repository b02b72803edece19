package lspbridge

import (
	"os"
	"slices"
)

// maxUnsaved limits the unsaved buffers that a server gets without being asked about them: each must be
// read and sent before every question.
const maxUnsaved = 50

// buffer is the editor's text of a file; ok is false when the disk counts.
func (f *fleet) buffer(path string) (string, bool) {
	if f.o.Buffer == nil {
		return "", false
	}
	return f.o.Buffer(path)
}

// unsaved are the unsaved buffers that this server for this root answers for.
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

// text is what the person sees of a file: the editor's buffer, else the file on disk. ok is false for what
// is not a regular file, or larger than 16 MiB, which no server reads in a useful time.
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
