package config

import (
	"encoding/json"
	"reflect"
	"strings"
)

// SchemaID is where the generated schema says it lives; editors only use it as a name.
const SchemaID = "https://pillion.dev/schema/pillion.json"

// JSONSchema describes the configuration file for editors (JSON Schema 2020-12), made from Config's own fields and their doc and enum tags,
// so that a new setting cannot be missing in it. The text ends in a line break and is the same at each call.
func JSONSchema() []byte {
	s := schemaOf(reflect.TypeFor[Config]())
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["$id"] = SchemaID
	s["title"] = "Pillion configuration"
	b, _ := json.MarshalIndent(s, "", "  ")
	return append(b, '\n')
}

// schemaOf is the schema of a type. It follows the same rules as check, so that an editor and pillion config check
// say the same of a file; a test compares the two.
func schemaOf(t reflect.Type) map[string]any {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	// Types that read themselves: their fields say nothing about the JSON that they accept.
	switch t {
	case reflect.TypeFor[Any]():
		return map[string]any{}
	case reflect.TypeFor[Plugin]():
		return map[string]any{"anyOf": []any{map[string]any{"type": "string"}, map[string]any{"type": "array", "minItems": 1, "maxItems": 2}}}
	case reflect.TypeFor[Permission]():
		// The forms that checkPermission accepts: an action, or by permission an action or actions by pattern.
		action := map[string]any{"enum": actions}
		byPattern := map[string]any{"type": "object", "additionalProperties": action}
		return map[string]any{"anyOf": []any{action, map[string]any{"const": actionAuto}, map[string]any{"type": "object", "additionalProperties": map[string]any{"anyOf": []any{action, byPattern}}}}}
	case reflect.TypeFor[Models]():
		return map[string]any{"anyOf": []any{
			map[string]any{"type": "array", "items": map[string]any{"type": "string"}},
			map[string]any{"type": "object", "additionalProperties": schemaOf(reflect.TypeFor[Model]())}}}
	}
	// A generic type's name has its argument in brackets.
	if strings.HasPrefix(t.Name(), "Switch[") {
		by, _ := t.FieldByName("By")
		return map[string]any{"anyOf": []any{map[string]any{"type": "boolean"}, schemaOf(by.Type)}}
	}
	// true is accepted as well as false: it means the value without details (see OrFalse).
	if strings.HasPrefix(t.Name(), "OrFalse[") {
		value, _ := t.FieldByName("Value")
		return map[string]any{"anyOf": []any{map[string]any{"type": "boolean"}, schemaOf(value.Type)}}
	}
	switch t.Kind() {
	case reflect.Struct:
		props, open := map[string]any{}, false
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if !f.IsExported() || name == "" {
				continue
			}
			// A struct with a rest field accepts any other key, so the schema must not forbid them.
			if name == restName {
				open = true
				continue
			}
			p := schemaOf(f.Type)
			if doc := f.Tag.Get("doc"); doc != "" {
				p["description"] = doc
			}
			// The values are those that check reads from the same tag.
			if enum := f.Tag.Get("enum"); enum != "" {
				p["enum"] = strings.Split(enum, ",")
			}
			props[name] = p
		}
		return map[string]any{"type": "object", "properties": props, "additionalProperties": open}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schemaOf(t.Elem())}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int:
		return map[string]any{"type": "integer"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	}
	return map[string]any{"type": "string"}
}
