package external

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Entry is an agent from a registry in the form in which Pillion can start it.
type Entry struct {
	ID, Name string
	Command  []string
	Env      map[string]string
}

// packaged is a distribution by a package manager (npx, uvx) that downloads and runs it in one step.
type packaged struct {
	Package string            `json:"package"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
}

// RegistryEntry finds an agent in a registry of ACP's format (registry.json of github.com/agentclientprotocol/registry). Pillion does not
// download archives: it starts what package managers and people install, so an agent that has archives only is an error that says so.
func RegistryEntry(registry []byte, id string) (Entry, error) {
	var r struct {
		Agents []struct {
			ID           string `json:"id"`
			Name         string `json:"name"`
			Distribution struct {
				Npx    *packaged       `json:"npx"`
				Uvx    *packaged       `json:"uvx"`
				Binary json.RawMessage `json:"binary"`
			} `json:"distribution"`
		} `json:"agents"`
	}
	if err := json.Unmarshal(registry, &r); err != nil {
		return Entry{}, fmt.Errorf("the registry is not in the ACP registry's format: %w", err)
	}
	var ids []string
	for _, a := range r.Agents {
		ids = append(ids, a.ID)
		if a.ID != id {
			continue
		}
		d := a.Distribution
		switch {
		case d.Npx != nil && d.Npx.Package != "":
			return Entry{ID: id, Name: a.Name, Command: append([]string{"npx", "-y", d.Npx.Package}, d.Npx.Args...), Env: d.Npx.Env}, nil
		case d.Uvx != nil && d.Uvx.Package != "":
			return Entry{ID: id, Name: a.Name, Command: append([]string{"uvx", d.Uvx.Package}, d.Uvx.Args...), Env: d.Uvx.Env}, nil
		}
		return Entry{}, fmt.Errorf("the registry has %s as an archive only; install it, then run: pillion agents add %s -- its command", id, id)
	}
	slices.Sort(ids)
	return Entry{}, fmt.Errorf("the registry has no agent %q; it has %s", id, strings.Join(ids, ", "))
}
