package guard

import "fmt"

// Reason says for whom a process is started or a connection made, which setting asks for it, and where that setting
// stands. Everything that this program starts or reaches has one: Check is the one gate that trust has.
//
// Settings of a project that is not trusted are held back when they are read (package config). Reason looks again at the
// last moment, so a setting that was missed there, or a folder whose trust was revoked meanwhile, ends here.
type Reason struct {
	Who     string // Bash, Server … for processes; Model, Web … for connections
	Setting string // dotted path, like "mcp.docs.url"; empty: no setting, it is built in or the person typed it
	Place   string // where the setting is, as file:line:column; may be empty
	Folder  string // the project whose own file holds the setting; empty: the person's settings do
	// Trusted reports whether Folder is trusted now; nil: it is not.
	Trusted func(folder string) bool `json:"-"` // callers compare settings by their JSON, and a function has none
}

// Whom a connection is for.
const (
	Model   = "model"   // model providers, and servers of models on this machine
	Web     = "web"     // pages that are fetched, and web search
	Traces  = "traces"  // the OpenTelemetry collector
	Storage = "storage" // the PostgreSQL server of the sessions
	Sharing = "sharing" // another Pillion of the same person, by a private socket
)

// UntrustedError refuses what a file of an untrusted folder asks for.
type UntrustedError struct{ Reason Reason }

// Error names the setting, its place and the command that trusts the folder.
func (e *UntrustedError) Error() string {
	what := e.Reason.Setting
	if what == "" {
		what = "a file"
	}
	if e.Reason.Place != "" {
		what += " (" + e.Reason.Place + ")"
	}
	return fmt.Sprintf("%s is not used: the folder %s is not trusted; run pillion trust in it if you trust what it contains", what, e.Reason.Folder)
}

// Check refuses, with an *UntrustedError, a reason that is in a file of an untrusted folder.
func (r Reason) Check() error {
	if r.Folder == "" || r.Trusted != nil && r.Trusted(r.Folder) {
		return nil
	}
	return &UntrustedError{r}
}
