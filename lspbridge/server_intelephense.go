package lspbridge

import "encoding/json"

// intelephenseIndexes makes progress of the notifications by which intelephense says that it reads the project.
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
