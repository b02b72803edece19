package lspbridge

import "encoding/json"

// intelephenseIndexes turns intelephense's own notifications about indexing into progress, so that
// progress.index works for it too.
func intelephenseIndexes(c *client, method string, _ json.RawMessage) (any, bool) {
	kind := map[string]string{"indexingStarted": "begin", "indexingEnded": "end"}[method]
	if kind == "" {
		return nil, false
	}
	if c.progress.update(method[:len("indexing")], kind, "indexing", "") {
		c.changed.wake()
	}
	return nil, true
}
