package provider

import (
	"encoding/json"
	"slices"
)

// constToEnum writes a const as an enum with one value, which means the same and is understood everywhere.
func constToEnum(s map[string]any) {
	if c, ok := s["const"]; ok {
		delete(s, "const")
		s["enum"] = []any{c}
	}
}

// singleType turns a list of types into one type; null among them becomes nullable where the provider has that word,
// and is left out otherwise.
// A list of several types becomes anyOf, unless the schema has one of its own.
func (t transformer) singleType(s map[string]any, nullable bool) {
	list, ok := s["type"].([]any)
	if !ok {
		return
	}
	var types []string
	null := false
	for _, v := range stringsOf(list) {
		if v == "null" {
			null = true
		} else {
			types = append(types, v)
		}
	}
	delete(s, "type")
	switch {
	case len(types) == 1:
		s["type"] = types[0]
	case len(types) > 1:
		variants := make([]any, len(types))
		for i, ty := range types {
			variant := map[string]any{"type": ty}
			if ty == "array" {
				variant["items"] = map[string]any{"type": "string"}
			}
			variants[i] = variant
		}
		if s["anyOf"] == nil {
			s["anyOf"] = variants
		}
	}
	if null && nullable {
		s["nullable"] = true
	}
}

// gemini reduces a schema to Gemini's subset of OpenAPI 3.0. Every rule below answers a 400 of the API:
// it refuses the whole request for one keyword that it does not know.
func (t transformer) gemini(s map[string]any) {
	constToEnum(s)
	t.singleType(s, true)
	// oneOf becomes the weaker anyOf; the tools validate their arguments in any case.
	if list, ok := s["oneOf"].([]any); ok && s["anyOf"] == nil {
		s["anyOf"] = list
	}
	// What is required by one part of an allOf is required by the whole.
	if list, ok := s["allOf"].([]any); ok {
		for _, v := range list {
			if m, ok := v.(map[string]any); ok {
				for k, v := range m {
					if _, ok := s[k]; !ok {
						s[k] = v
					}
				}
			}
		}
		merge(s, list, true)
		if props, _ := s["properties"].(map[string]any); len(props) == 0 && s["type"] != "object" {
			delete(s, "properties")
		}
	}
	if list, ok := s["anyOf"].([]any); ok {
		t.geminiAnyOf(s, list)
	}
	// A keyword that is not on the list makes the API refuse every tool of the request.
	for k := range s {
		if !slices.Contains(geminiKept, k) {
			delete(s, k)
		}
	}
	// Enums are of strings only; other values are written as JSON.
	if enum, ok := s["enum"].([]any); ok {
		var words []any
		for _, v := range enum {
			switch v := v.(type) {
			case string:
				if v != "" {
					words = append(words, v)
				}
			case nil:
				s["nullable"] = true
			default:
				b, _ := json.Marshal(v)
				words = append(words, string(b))
			}
		}
		s["enum"] = words
		s["type"] = "string"
		if len(words) == 0 {
			delete(s, "enum")
		}
	}
	// The API demands a type; what the schema has besides says which one was meant.
	if s["type"] == nil && s["anyOf"] == nil {
		switch {
		case s["properties"] != nil:
			s["type"] = "object"
		case s["items"] != nil:
			s["type"] = "array"
		default:
			s["type"] = "string"
		}
	}
	switch s["type"] {
	case "array":
		if s["items"] == nil {
			s["items"] = map[string]any{"type": "string"}
		}
	case "string":
		if f := s["format"]; f != "enum" && f != "date-time" {
			delete(s, "format")
		}
	default:
		delete(s, "format")
	}
	if s["type"] != "object" {
		delete(s, "properties")
		delete(s, "required")
	}
	if s["type"] != "array" {
		delete(s, "items")
		delete(s, "minItems")
		delete(s, "maxItems")
	}
	if s["type"] != "number" && s["type"] != "integer" {
		delete(s, "minimum")
		delete(s, "maximum")
	}
}

// geminiAnyOf takes null out of the variants, dissolves a single one, and leaves nothing but a description beside
// several: Gemini refuses other siblings.
func (t transformer) geminiAnyOf(s map[string]any, list []any) {
	var variants []any
	for _, v := range list {
		if m, ok := v.(map[string]any); ok && m["type"] == "null" {
			s["nullable"] = true
			continue
		}
		variants = append(variants, v)
	}
	delete(s, "anyOf")
	switch len(variants) {
	case 0:
	case 1:
		// A single variant is the schema itself.
		if m, ok := variants[0].(map[string]any); ok {
			for k, v := range m {
				if _, ok := s[k]; !ok {
					s[k] = v
				}
			}
		}
	default:
		for k := range s {
			if k != "description" && k != "nullable" && k != "title" {
				delete(s, k)
			}
		}
		s["anyOf"] = variants
	}
}
