package config

import (
	"encoding/json"
	"errors"
)

// Plugin is a plugin as it is written: its name or path, or a list of that and options. The two forms are OpenCode's.
type Plugin struct {
	Name    string         // of an npm package, perhaps with @version, or the path of a file
	Options map[string]any // given to the plugin's function; nil: the short form
}

// UnmarshalJSON reads either form.
func (p *Plugin) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, &p.Name) == nil {
		return nil
	}
	var pair []json.RawMessage
	if json.Unmarshal(b, &pair) != nil || len(pair) == 0 || len(pair) > 2 || json.Unmarshal(pair[0], &p.Name) != nil {
		return errors.New("write a plugin as its name, or as a list of its name and options")
	}
	if len(pair) == 2 {
		return json.Unmarshal(pair[1], &p.Options)
	}
	return nil
}

// MarshalJSON writes the form that was read, so that a configuration that is printed can be pasted into a file.
func (p Plugin) MarshalJSON() ([]byte, error) {
	if p.Options == nil {
		return json.Marshal(p.Name)
	}
	return json.Marshal([]any{p.Name, p.Options})
}
