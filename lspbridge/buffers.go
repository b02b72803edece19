package lspbridge

import "slices"

// maxUnsaved limits the unsaved buffers that a server gets without being asked about them: each must be
// read and sent before every question.
const maxUnsaved = 50

// buffer is the editor's text of a file; ok is false when the disk counts.
func (m *Manager) buffer(path string) (string, bool) {
	if m.o.Buffer == nil {
		return "", false
	}
	return m.o.Buffer(path)
}

// unsaved are the unsaved buffers that this server for this root answers for.
func (m *Manager) unsaved(row Server, root string) []string {
	if m.o.Unsaved == nil {
		return nil
	}
	var out []string
	for _, p := range m.o.Unsaved() {
		if len(out) < maxUnsaved && row.matches(p) && slices.ContainsFunc(m.slotsFor(p), func(s *slot) bool { return s.spec.ID == row.ID && s.root == root }) {
			out = append(out, p)
		}
	}
	return out
}
