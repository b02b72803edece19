// Package pages writes the pages of docs/reference and the manual page from the commands, the configuration schema and the tools
// themselves, so that a page cannot disagree with the program.
package pages

import (
	"github.com/spf13/cobra"

	"github.com/pillion-dev/pillion/sidecar/config"
)

// generated comes under every page's title.
const generated = "<!-- Written by `go generate ./sidecar`; a test fails when it is stale. -->\n\n"

// Reference returns the pages of docs/reference by name. They are the same on every machine: nothing that is
// configured, installed or set in the environment is in them.
func Reference(root *cobra.Command) map[string]string {
	return map[string]string{
		"commands.md":      commandsPage(root),
		"configuration.md": configurationPage(config.JSONSchema()),
		"tools.md":         toolsPage(everyTool()),
	}
}
