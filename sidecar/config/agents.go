package config

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
)

// ExternalAgent is an agent of another maker that speaks the Agent Client Protocol.
type ExternalAgent struct {
	ACP      []string          `json:"acp,omitempty" doc:"program and arguments that speak the Agent Client Protocol on standard input and output"`
	Name     string            `json:"name,omitempty" doc:"name shown to people"`
	Env      map[string]string `json:"env,omitempty" doc:"environment variables of the program"`
	Keys     []string          `json:"keys,omitempty" doc:"names of your environment variables that it gets although they hold keys, because its own sign-in reads them"`
	Folders  []string          `json:"folders,omitempty" doc:"where it keeps its own state, besides the project; ~ is the home folder"`
	SignIn   string            `json:"sign_in,omitempty" doc:"what you run to sign in, shown when it asks for that"`
	Edits    string            `json:"edits,omitempty" doc:"draft: it works in a draft, whose changes are reviewed when its turn ends; client: it writes only by asking its client, so each change is reviewed before it is written, and the project is read-only for it" enum:"draft,client"`
	Disabled bool              `json:"disabled,omitempty" doc:"do not offer it"`
}

// AddedAgent is the text of the person's own settings with a row for an agent added. Nothing is written. A row of this name that is there
// already stays as it is, and Text is then Old.
func AddedAgent(userDir, id string, a ExternalAgent) (Imported, error) {
	out := Imported{Path: filepath.Join(userDir, "pillion.jsonc")}
	if b, err := os.ReadFile(filepath.Join(userDir, "pillion.json")); err == nil { // an existing file keeps its name
		out.Path, out.Old = filepath.Join(userDir, "pillion.json"), string(b)
	}
	if b, err := os.ReadFile(out.Path); err == nil {
		out.Old = string(b)
	}
	row, err := json.Marshal(map[string]any{"agents": map[string]any{id: a}})
	if err != nil {
		return out, err
	}
	tree, bad := parse(id, row)
	if bad != nil {
		return out, errors.New(bad.Message)
	}
	out.Text, err = laidInto([]byte(out.Old), tree, "// Settings of Pillion.\n")
	return out, err
}
