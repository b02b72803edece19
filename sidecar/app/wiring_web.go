package app

import (
	"os"

	"github.com/pillion-dev/pillion/sidecar/config"
	"github.com/pillion-dev/pillion/tools/builtin"
	"github.com/pillion-dev/pillion/tools/web"
)

// webOptions are what the web tools may reach. OpenCode's switch for Exa counts where nothing is configured.
func (a *App) webOptions(c *config.Config) builtin.WebOptions {
	e := web.Engine{Provider: c.WebSearch.Provider, URL: c.WebSearch.URL, Key: c.WebSearch.Key}
	if on := os.Getenv("OPENCODE_ENABLE_EXA"); e.Provider == "" && (on == "1" || on == "true") {
		e.Provider = "exa"
	}
	if e.Provider == "exa" && e.Key == "" {
		e.Key = os.Getenv("EXA_API_KEY")
	}
	return builtin.WebOptions{Client: web.New(web.Options{Version: a.Place.version, Allow: c.Web.Allow}), Engine: e}
}
