package main

import (
	"github.com/spf13/cobra"

	"github.com/pillion-dev/pillion/sidecar/config"
)

// generated stands under every page's title.
const generated = "<!-- Written by `go generate ./sidecar`; a test fails when it is stale. -->\n\n"

// reference returns the pages of docs/reference by name. They are the same on every machine: nothing that is
// configured, installed or set in the environment is in them.
func reference(root *cobra.Command) map[string]string {
	return map[string]string{
		"commands.md":      commandsPage(root),
		"configuration.md": configurationPage(config.JSONSchema()),
		"tools.md":         toolsPage(everyTool()),
	}
}
