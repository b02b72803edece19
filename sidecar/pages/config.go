package pages

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// schema is as much of JSON Schema as the configuration's uses. Additional stays JSON, because it is either a
// schema or a boolean.
type schema struct {
	Type        string            `json:"type"`
	Description string            `json:"description"`
	Enum        []string          `json:"enum"`
	Properties  map[string]schema `json:"properties"`
	Additional  json.RawMessage   `json:"additionalProperties"`
	Items       *schema           `json:"items"`
	AnyOf       []schema          `json:"anyOf"`
}

// configurationPage is the schema of pillion.jsonc as Markdown: one table for the top level and one for each kind of
// object. It panics for a schema that is not JSON, which is our own.
// The text of a setting is its doc tag in package config.
func configurationPage(text []byte) string {
	var top schema
	if err := json.Unmarshal(text, &top); err != nil {
		panic(err) // our own schema
	}
	var b strings.Builder
	b.WriteString("# Configuration\n\n" + generated)
	b.WriteString("`pillion.jsonc` (or `.json`) in the project and the folders above it, then `~/.config/pillion/pillion.jsonc`, then the\n" +
		"editor's settings and the environment: later ones take precedence. `{env:NAME}` and `{file:path}` are replaced by a variable\n" +
		"or the text of a file. `pillion config check` reports mistakes, `pillion config schema` prints the schema for your editor, and\n" +
		"`pillion config show --origin` says where each value comes from. How to write each part is in the [guide](../guide.md).\n")
	settingsTable(&b, "", top)
	return b.String()
}

// settingsTable writes the settings below a path, then those of the objects in them, in the order of their names:
// the page must not differ from run to run.
func settingsTable(b *strings.Builder, path string, s schema) {
	if path != "" {
		fmt.Fprintf(b, "\n## %s\n", path)
	}
	b.WriteString("\n| setting | type | what it is |\n|---|---|---|\n")
	names := slices.Sorted(maps.Keys(s.Properties))
	for _, name := range names {
		p := s.Properties[name]
		below := name
		if path != "" {
			below = path + "." + name
		}
		label := "`" + name + "`"
		if to, _, ok := objectOf(below, p); ok {
			label = fmt.Sprintf("[%s](#%s)", label, headingID(to))
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", label, cell(p.words()), cell(p.Description))
	}
	for _, name := range names {
		below := name
		if path != "" {
			below = path + "." + name
		}
		if to, o, ok := objectOf(below, s.Properties[name]); ok {
			settingsTable(b, to, o)
		}
	}
}

// objectOf finds the object with named settings in a setting: itself, the values of a map, or one of several
// forms. It returns the path that heads its table, with NAME for the key of a map; ok is false for a setting
// without such an object.
func objectOf(path string, s schema) (string, schema, bool) {
	if len(s.Properties) > 0 {
		return path, s, true
	}
	var each schema
	// additionalProperties is true or false for most objects, and then no schema.
	if json.Unmarshal(s.Additional, &each) == nil {
		if to, o, ok := objectOf(path+".NAME", each); ok {
			return to, o, ok
		}
	}
	for _, form := range s.AnyOf {
		if to, o, ok := objectOf(path, form); ok {
			return to, o, ok
		}
	}
	return "", schema{}, false
}

// words describes the values of a setting in a few words. Forms that read the same are named once.
func (s schema) words() string {
	switch {
	case len(s.AnyOf) > 0:
		var forms []string
		for _, f := range s.AnyOf {
			if w := f.words(); !slices.Contains(forms, w) {
				forms = append(forms, w)
			}
		}
		return strings.Join(forms, " or ")
	case len(s.Enum) > 0:
		return "`" + strings.Join(s.Enum, "` `") + "`"
	case s.Type == "array" && s.Items != nil:
		return "list of " + s.Items.words()
	case s.Type == "object" && len(s.Properties) == 0:
		var each schema
		if json.Unmarshal(s.Additional, &each) == nil {
			return "by name: " + each.words()
		}
	case s.Type == "":
		return "anything"
	}
	return s.Type
}

// headingID is the id that GitHub gives a heading: dots and dollar signs disappear, blanks become hyphens.
func headingID(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case strings.ContainsRune(".$", r):
			return -1
		}
		return r
	}, strings.ToLower(heading))
}
