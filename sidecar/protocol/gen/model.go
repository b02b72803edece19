package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// schema is the part of JSON Schema that the two files use.
type schema struct {
	Ref           string     `json:"$ref"`
	Title         string     `json:"title"`
	Description   string     `json:"description"`
	Type          typeNames  `json:"type"`
	Const         any        `json:"const"`
	Format        string     `json:"format"`
	Properties    properties `json:"properties"`
	Required      []string   `json:"required"`
	Items         *schema    `json:"items"`
	Additional    *schema    `json:"-"`
	OneOf         []*schema  `json:"oneOf"`
	AnyOf         []*schema  `json:"anyOf"`
	AllOf         []*schema  `json:"allOf"`
	Discriminator *struct {
		PropertyName string `json:"propertyName"`
	} `json:"discriminator"`
	Lenient      bool   `json:"x-deserialize-default-on-error"`
	SkipInvalid  bool   `json:"x-deserialize-skip-invalid-items"`
	NullDefault  bool   `json:"x-deserialize-default-on-null"`
	Side         string `json:"x-side"`
	Method       string `json:"x-method"`
	Notification bool   `json:"x-notification"`
	DocsIgnore   bool   `json:"x-docs-ignore"`
	Go           string `json:"x-go"` // a Go type of tools/change that has this shape already: the twin is an alias of it

	AdditionalRaw json.RawMessage `json:"additionalProperties"`
}

// typeNames is "type": one name or several.
type typeNames []string

// UnmarshalJSON reads either form.
func (t *typeNames) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*t = typeNames{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(t))
}

// properties keep the order of the file.
type properties []property

// property is a member with its schema.
type property struct {
	Name string
	*schema
}

// UnmarshalJSON keeps the order, which encoding/json's maps lose: generated code must not change from run to run.
func (p *properties) UnmarshalJSON(b []byte) error {
	return eachMember(b, func(name string, raw json.RawMessage) error {
		s := new(schema)
		*p = append(*p, property{name, s})
		return json.Unmarshal(raw, s)
	})
}

// eachMember calls f for the members of a JSON object, in order.
func eachMember(b []byte, f func(string, json.RawMessage) error) error {
	d := json.NewDecoder(bytes.NewReader(b))
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		k, err := d.Token()
		if err != nil {
			return err
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return err
		}
		if err := f(k.(string), raw); err != nil {
			return fmt.Errorf("%v: %w", k, err)
		}
	}
	return nil
}

// defs are the named types of both files, in order.
type defs struct {
	names []string
	byKey map[string]*schema
}

// load reads the definitions of the schemas.
func load(files ...[]byte) (*defs, error) {
	d := &defs{byKey: map[string]*schema{}}
	for _, f := range files {
		var file struct {
			Defs json.RawMessage `json:"$defs"`
		}
		if err := json.Unmarshal(f, &file); err != nil {
			return nil, err
		}
		err := eachMember(file.Defs, func(name string, raw json.RawMessage) error {
			s := new(schema)
			if err := json.Unmarshal(raw, s); err != nil {
				return err
			}
			d.names = append(d.names, name)
			d.byKey[name] = s
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return d, nil
}

// refName is the name that a $ref points to.
func refName(ref string) string { return strings.TrimPrefix(ref, "#/$defs/") }

// target follows $ref, a lone allOf and "X or null", and gives the definition's name, "" for an inline schema.
func target(s *schema) (name string, inline *schema, nullable bool) {
	for {
		switch {
		case s.Ref != "":
			return refName(s.Ref), s, nullable
		case len(s.AllOf) == 1 && len(s.Properties) == 0:
			s = s.AllOf[0]
		case len(s.AnyOf) == 2 && slices.Equal(s.AnyOf[1].Type, typeNames{"null"}):
			s, nullable = s.AnyOf[0], true
		default:
			return "", s, nullable || slices.Contains(s.Type, "null")
		}
	}
}

// kind of a definition.
type kind int

const (
	kindString  kind = iota // a plain string
	kindEnum                // a string with known values
	kindInt                 // an integer
	kindCodes               // an integer with known values
	kindObject              // properties only
	kindTagged              // one of several objects, told apart by a member
	kindMerged              // one of several objects, written as one with everything optional
	kindFirst               // one of several lists: we use the first shape
	kindUnknown             // anything
)

// variant is one form of a union.
type variant struct {
	Tag  string // "" is what is left when no tag matches
	Type string // name of the definition; "" has no members of its own
	Of   *schema
}

// variants are the forms of a union, whichever keyword lists them.
func variants(s *schema) []*schema {
	if len(s.OneOf) > 0 {
		return s.OneOf
	}
	return s.AnyOf
}

// tag finds the member that tells the variants of a union apart.
func tag(s *schema) string {
	if s.Discriminator != nil {
		return s.Discriminator.PropertyName
	}
	for _, v := range variants(s) {
		for _, p := range v.Properties {
			if p.Const != nil {
				return p.Name
			}
		}
	}
	return ""
}

// kind says how a definition is written in the generated languages.
func (d *defs) kind(name string) kind {
	s := d.byKey[name]
	vs := variants(s)
	switch {
	case len(vs) == 0 && len(s.Type) == 0:
		return kindUnknown
	case len(vs) == 0 && s.Type[0] == "string":
		return kindString
	case len(vs) == 0 && s.Type[0] == "integer":
		return kindInt
	case len(vs) == 0:
		return kindObject
	}
	strings, ints, arrays, scalars := true, true, true, false
	for _, v := range vs {
		t := ""
		if len(v.Type) > 0 {
			t = v.Type[0]
		}
		strings = strings && t == "string"
		ints = ints && t == "integer"
		arrays = arrays && t == "array"
		scalars = scalars || t != "object" && t != "" && t != "array"
	}
	switch {
	case strings:
		return kindEnum
	case ints:
		return kindCodes
	case arrays:
		return kindFirst
	case scalars:
		return kindUnknown
	case len(s.Properties) == 0 && tag(s) != "":
		return kindTagged
	}
	return kindMerged
}

// taggedVariants lists a union's variants; one without a constant is the rest.
func (d *defs) taggedVariants(name string) []variant {
	s, key := d.byKey[name], tag(d.byKey[name])
	var out []variant
	for _, v := range variants(s) {
		x := variant{Of: v}
		for _, p := range v.Properties {
			if p.Name == key && p.Const != nil {
				x.Tag = p.Const.(string)
			}
		}
		if len(v.AllOf) == 1 {
			x.Type = refName(v.AllOf[0].Ref)
		}
		if x.Tag == "" && x.Type == "" {
			continue // "other": kept as it came
		}
		out = append(out, x)
	}
	return out
}

// member is a property of an object as the twins need it.
type member struct {
	Name     string
	Of       *schema
	Required bool
}

// members of an object; of a merged union, everything any variant has, optional unless the base requires it.
func (d *defs) members(name string) []member {
	var out []member
	var add func(s *schema, base bool)
	add = func(s *schema, base bool) {
		if s.Ref != "" {
			add(d.byKey[refName(s.Ref)], false)
			return
		}
		for _, p := range s.Properties {
			i := slices.IndexFunc(out, func(m member) bool { return m.Name == p.Name })
			if i < 0 {
				out = append(out, member{p.Name, p.schema, base && slices.Contains(s.Required, p.Name)})
			} else if !sameType(out[i].Of, p.schema) {
				out[i].Of = &schema{} // differs between variants
			}
		}
		for _, v := range slices.Concat(s.AllOf, variants(s)) {
			add(v, false)
		}
	}
	add(d.byKey[name], true)
	for i := range out {
		if slices.Contains(optionalInPractice, name+"."+out[i].Name) {
			out[i].Required = false
		}
	}
	return out
}

// sameType reports whether two members have the same type.
func sameType(a, b *schema) bool {
	an, as, _ := target(a)
	bn, bs, _ := target(b)
	return an == bn && (an != "" || slices.Equal(as.Type, bs.Type))
}

// optionalInPractice lists what the schema requires but real clients leave out.
var optionalInPractice = []string{
	"NewSessionRequest.mcpServers", "LoadSessionRequest.mcpServers",
	"McpServerStdio.args", "McpServerStdio.env", "McpServerHttp.headers", "McpServerSse.headers",
}

// method pairs a method with its types.
type method struct {
	Name, Side, Params, Result string
}

// methods are the methods with their types, sorted by name.
func (d *defs) methods() []method {
	var out []method
	for _, n := range d.names {
		s := d.byKey[n]
		if s.Method == "" {
			continue
		}
		i := slices.IndexFunc(out, func(m method) bool { return m.Name == s.Method })
		if i < 0 {
			i = len(out)
			out = append(out, method{Name: s.Method, Side: s.Side})
		}
		if strings.HasSuffix(n, "Response") {
			out[i].Result = n
		} else {
			out[i].Params = n
		}
	}
	slices.SortFunc(out, func(a, b method) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// reachable are the definitions that messages are made of, without the envelopes.
func (d *defs) reachable() []string {
	seen := map[string]bool{}
	var visit func(s *schema)
	visit = func(s *schema) {
		if s == nil {
			return
		}
		if n := refName(s.Ref); n != "" && !seen[n] {
			seen[n] = true
			visit(d.byKey[n])
		}
		for _, p := range s.Properties {
			visit(p.schema)
		}
		for _, v := range slices.Concat(s.OneOf, s.AnyOf, s.AllOf) {
			visit(v)
		}
		visit(s.Items)
		visit(s.additional())
	}
	for _, n := range d.names {
		if s := d.byKey[n]; s.Method != "" || standalone[n] {
			seen[n] = true
			visit(s)
		}
	}
	var out []string
	for _, n := range d.names {
		if seen[n] {
			out = append(out, n)
		}
	}
	return out
}

// standalone types travel in _meta, where no schema leads to them.
var standalone = map[string]bool{"Capabilities": true, "ToolCallMeta": true, "DecisionMeta": true, "UpdateMeta": true, "ErrorCode": true}

// additional is the schema of additionalProperties; nil for a boolean.
func (s *schema) additional() *schema {
	if len(s.AdditionalRaw) == 0 || s.AdditionalRaw[0] != '{' {
		return nil
	}
	a := new(schema)
	if json.Unmarshal(s.AdditionalRaw, a) != nil {
		return nil
	}
	return a
}

// firstSentence of a description, on one line.
func firstSentence(s string) string {
	s, _, _ = strings.Cut(s, "\n\n")
	s = strings.Join(strings.Fields(s), " ")
	if i := strings.Index(s, ". "); i >= 0 {
		s = s[:i+1]
	}
	return s
}
