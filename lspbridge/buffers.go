package lspbridge

import "slices"

// maxUnsaved is how many unsaved buffers a server is told of that nobody asked about.
const maxUnsaved = 50

func (m *Manager) buffer(path string) (string, bool) {
	if m.o.Buffer == nil {
		return "", false
	}
	return m.o.Buffer(path)
}

// unsaved are the buffers that a server answers for and whose text is not the disk's.
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
