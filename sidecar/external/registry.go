package external

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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
	Cmd     string            `json:"cmd"` // the program of a package that has several; empty: the package's own
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
}

// command returns the command line that runs the package: runner is the package manager's words before it, from its option that names the
// package of a program.
func (p *packaged) command(runner []string, from string) []string {
	if p.Cmd != "" {
		return slices.Concat(runner, []string{from, p.Package, p.Cmd}, p.Args)
	}
	return slices.Concat(runner, []string{p.Package}, p.Args)
}

// RegistryEntry finds an agent in a registry of ACP's format (registry.json of github.com/agentclientprotocol/registry). Pillion does not
// download archives: it starts what package managers and people install, so an agent that has archives only is an error that says so.
func RegistryEntry(registry []byte, id string) (Entry, error) {
	var r struct {
		Agents []struct {
			ID           string `json:"id"`
			Name         string `json:"name"`
			Distribution struct {
				Npx    *packaged `json:"npx"`
				Uvx    *packaged `json:"uvx"`
				Binary map[string]struct {
					Cmd  string   `json:"cmd"`
					Args []string `json:"args"`
				} `json:"binary"` // by platform
			} `json:"distribution"`
		} `json:"agents"`
	}
	if err := json.Unmarshal(registry, &r); err != nil {
		why := err.Error()
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) { // its text is a Go type
			why = "the value of " + wrong.Field + " is a JSON " + wrong.Value
			if wrong.Field == "" {
				why = "it is a JSON " + wrong.Value
			}
		}
		return Entry{}, fmt.Errorf(`the registry is not in the ACP registry's format, {"agents": [{"id": …, "distribution": …}]}: %s`, why)
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
			return Entry{ID: id, Name: a.Name, Command: d.Npx.command([]string{"npx", "-y"}, "--package"), Env: d.Npx.Env}, nil
		case d.Uvx != nil && d.Uvx.Package != "":
			return Entry{ID: id, Name: a.Name, Command: d.Uvx.command([]string{"uvx"}, "--from"), Env: d.Uvx.Env}, nil
		}
		form, command := "without a package of npm or uv", "its command"
		for _, platform := range slices.Sorted(maps.Keys(d.Binary)) { // the arguments are the same for each
			form = "as an archive only"
			if b := d.Binary[platform]; b.Cmd != "" {
				command = commandLine(append([]string{programName(b.Cmd)}, b.Args...))
				break
			}
		}
		return Entry{}, fmt.Errorf("the registry has %s %s; install it, then run: pillion agents add %s -- %s", id, form, id, command)
	}
	if len(ids) == 0 {
		return Entry{}, errors.New("the registry lists no agents")
	}
	slices.Sort(ids)
	return Entry{}, fmt.Errorf("the registry has no agent %q; it has %s", id, strings.Join(ids, ", "))
}
