package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/pillion-dev/pillion/tools/permission"
)

// New makes a tool from a typed function. P is a struct; its fields become the schema's properties, in order:
//
//	type params struct {
//		Path   string   `json:"path" jsonschema:"what the model reads about it"`
//		Format string   `json:"format,omitempty" enum:"text,markdown" default:"markdown"`
//		Limit  int      `json:"limit,omitempty" minimum:"1" maximum:"5000"`
//		Edits  []change `json:"edits" minItems:"1"`
//	}
//
// A field with omitempty (or omitzero) is optional. A default is filled in before run sees the input. New panics
// when P cannot be a schema: that is a mistake in the program, not in the input.
func New[P any](id, description string, run func(ctx context.Context, p P, call *Call) (Result, error), opts ...ToolOption) Tool {
	s := schemaFor(id, reflect.TypeFor[P]())
	t := Tool{ID: id, Description: strings.TrimSpace(description), Parameters: s.text, Permission: id, Kind: KindOther, typed: s.typed, made: s.text}
	t.Run = func(ctx context.Context, input json.RawMessage, call *Call) (Result, error) {
		var p P
		if err := unmarshal(input, call.takeTree(input), &p); err != nil {
			return Result{}, t.invalid([]FieldError{mismatch(err)})
		}
		return run(ctx, p, call)
	}
	for _, o := range opts {
		o(&t)
	}
	return t
}

// ToolOption sets what New cannot see in P.
type ToolOption func(*Tool)

// WithPermission names the permission that hides the tool; without it that is the tool's id.
func WithPermission(name string) ToolOption { return func(t *Tool) { t.Permission = name } }

// WithKind sets the card's kind.
func WithKind(k Kind) ToolOption { return func(t *Tool) { t.Kind = k } }

// WithReadOnly marks a tool that may run beside other read-only calls of the same step.
func WithReadOnly() ToolOption { return func(t *Tool) { t.ReadOnly = true } }

// WithParallel marks a tool whose calls run beside each other although they change things.
func WithParallel() ToolOption { return func(t *Tool) { t.Parallel = true } }

// WithOptIn keeps a tool back until a switch names it.
func WithOptIn() ToolOption { return func(t *Tool) { t.OptIn = true } }

// WithDescribe makes the description depend on the agent's rules.
func WithDescribe(f func(permission.Ruleset) (string, bool)) ToolOption {
	return func(t *Tool) { t.Describe = f }
}

// WithKeep says which part of a long output survives the cap.
func WithKeep(k Keep) ToolOption { return func(t *Tool) { t.Keep = k } }

// made holds the schemas of the program's own parameter types: every session makes its own tools, of the same types.
var made sync.Map // reflect.Type → madeSchema, which nobody changes

// madeSchema is a type's schema, made once for the life of the process: reflection over all
// tools costs milliseconds.
type madeSchema struct {
	typed *jsonschema.Schema
	text  json.RawMessage // typed as JSON
}

// schemaFor returns the schema of a parameter type, made once for the life of the program.
func schemaFor(id string, t reflect.Type) madeSchema {
	if m, ok := made.Load(t); ok {
		return m.(madeSchema)
	}
	s, err := schemaOf(t)
	if err != nil {
		panic(fmt.Sprintf("tools.New(%q): %v", id, err))
	}
	m := madeSchema{s, slices.Clip(appendSchema(nil, s))}
	made.Store(t, m)
	return m
}

// schemaOf is the plain schema models know best: type, properties, required and the keywords of the tags. What
// jsonschema-go adds for Go's sake goes: null beside every slice, additionalProperties false on every object.
func schemaOf(t reflect.Type) (*jsonschema.Schema, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("parameters are a %s, not a struct", t)
	}
	s, err := jsonschema.ForType(t, nil)
	if err != nil {
		return nil, err
	}
	return s, tidy(s, t)
}

// tidy makes the library's schema of type t plain, all the way down, and adds the keywords of the tags.
func tidy(s *jsonschema.Schema, t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if i := slices.Index(s.Types, "null"); i >= 0 && len(s.Types) == 2 {
		s.Type, s.Types = s.Types[1-i], nil
	}
	switch {
	case s.Items != nil && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array):
		return tidy(s.Items, t.Elem())
	case t.Kind() == reflect.Map && s.AdditionalProperties != nil:
		return tidy(s.AdditionalProperties, t.Elem())
	case t.Kind() != reflect.Struct || s.Type != "object":
		return nil
	}
	s.AdditionalProperties = nil
	if s.Properties == nil {
		s.Properties = map[string]*jsonschema.Schema{}
	}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			name = f.Name
		}
		// Embedded structs are visited by their own fields.
		p := s.Properties[name]
		if p == nil || f.Anonymous {
			continue
		}
		if err := errors.Join(tidy(p, f.Type), tagged(p, f.Tag)); err != nil {
			return fmt.Errorf("field %s: %w", f.Name, err)
		}
	}
	return nil
}

// tagged adds the keywords of a field's own tags.
func tagged(s *jsonschema.Schema, tag reflect.StructTag) error {
	var errs []error
	if v, ok := tag.Lookup("enum"); ok {
		for one := range strings.SplitSeq(v, ",") {
			lit, err := literal(s.Type, one)
			errs = append(errs, err)
			s.Enum = append(s.Enum, lit)
		}
	}
	if v, ok := tag.Lookup("default"); ok {
		lit, err := literal(s.Type, v)
		errs = append(errs, err)
		s.Default, err = json.Marshal(lit)
		errs = append(errs, err)
	}
	for name, at := range map[string]**float64{"minimum": &s.Minimum, "maximum": &s.Maximum} {
		if v, ok := tag.Lookup(name); ok {
			f, err := strconv.ParseFloat(v, 64)
			errs = append(errs, err)
			*at = &f
		}
	}
	for name, at := range map[string]**int{"minItems": &s.MinItems, "maxItems": &s.MaxItems, "minLength": &s.MinLength, "maxLength": &s.MaxLength} {
		if v, ok := tag.Lookup(name); ok {
			n, err := strconv.Atoi(v)
			errs = append(errs, err)
			*at = &n
		}
	}
	return errors.Join(errs...)
}

// appendSchema writes the keywords that schemaOf can produce. The library's own encoder knows all of them and
// takes three times as long: every session start would pay for that.
func appendSchema(b []byte, s *jsonschema.Schema) []byte {
	b = append(b, '{')
	field := func(name string) {
		if b[len(b)-1] != '{' {
			b = append(b, ',')
		}
		b = append(strconv.AppendQuote(b, name), ':')
	}
	value := func(name string, v any) {
		field(name)
		raw, _ := encode(v) // strings, numbers and lists of them
		b = append(b, raw...)
	}
	if s.Type != "" {
		value("type", s.Type)
	}
	if s.Description != "" {
		value("description", s.Description)
	}
	if s.Enum != nil {
		value("enum", s.Enum)
	}
	if s.Default != nil {
		value("default", s.Default)
	}
	for _, n := range []struct {
		name string
		at   *float64
	}{{"minimum", s.Minimum}, {"maximum", s.Maximum}} {
		if n.at != nil {
			value(n.name, *n.at)
		}
	}
	for _, n := range []struct {
		name string
		at   *int
	}{{"minLength", s.MinLength}, {"maxLength", s.MaxLength}, {"minItems", s.MinItems}, {"maxItems", s.MaxItems}} {
		if n.at != nil {
			value(n.name, *n.at)
		}
	}
	if s.Items != nil {
		field("items")
		b = appendSchema(b, s.Items)
	}
	if s.Properties != nil {
		field("properties")
		b = append(b, '{')
		for i, name := range s.PropertyOrder {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(strconv.AppendQuote(b, name), ':')
			b = appendSchema(b, s.Properties[name])
		}
		b = append(b, '}')
	}
	if s.Required != nil {
		value("required", s.Required)
	}
	if s.AdditionalProperties != nil {
		field("additionalProperties")
		b = appendSchema(b, s.AdditionalProperties)
	}
	return append(b, '}')
}

// literal reads a tag's text as a value of a JSON type; it fails for text that is not such JSON.
func literal(typ, s string) (any, error) {
	if typ == "string" {
		return s, nil
	}
	var v any
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		return nil, fmt.Errorf("tag %q: %w", s, err)
	}
	return v, nil
}

// schema is the parsed form of the parameters; nil when they are not a schema, and then nothing is checked.
func (t Tool) schema() *jsonschema.Schema {
	if t.typed != nil {
		return t.typed
	}
	if len(t.Parameters) == 0 {
		return nil
	}
	var s jsonschema.Schema
	if json.Unmarshal(t.Parameters, &s) != nil {
		return nil
	}
	return &s
}

// mismatch words what encoding/json found after validation: numbers too large for their field.
func mismatch(err error) FieldError {
	var te *json.UnmarshalTypeError
	if errors.As(err, &te) {
		return FieldError{Path: "[" + strconv.Quote(te.Field) + "]", Problem: "Expected a value that fits " + te.Type.String() + ", got " + te.Value}
	}
	return FieldError{Problem: err.Error()}
}
