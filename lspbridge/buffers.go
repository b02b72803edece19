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

// withBuffers is paths and whatever else the server must be told of before its word on them holds: what the person has
// typed and not saved anywhere, and what was typed and thrown away since.
func (c *client) withBuffers(paths []string) []string {
	out := slices.Clone(paths)
	add := func(p string) {
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	for _, p := range c.host.unsaved(c.spec, c.root) {
		add(p)
	}
	c.mu.Lock()
	open := make(map[string]bool, len(c.docs))
	for p, d := range c.docs {
		open[p] = d.buffered
	}
	c.mu.Unlock()
	for p, was := range open {
		if _, is := c.host.buffer(p); is || was {
			add(p)
		}
	}
	return out
}
