package provider

import (
	"encoding/json"
	"slices"
)

// constToEnum writes a const as an enum with one value: it means the same, and more servers know it.
func constToEnum(s map[string]any) {
	if c, ok := s["const"]; ok {
		delete(s, "const")
		s["enum"] = []any{c}
	}
}

// singleType turns a list of types into one type. null in it becomes nullable where the provider has that keyword, and is dropped
// otherwise. Several types become an anyOf, unless the schema has one already: there can be only one, and the author's says more.
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
			// An array needs items, here as well.
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

// gemini reduces a schema to Gemini's subset of OpenAPI 3.0. Each rule answers a failure with status 400: the API refuses the whole
// request for one keyword that it does not know.
func (t transformer) gemini(s map[string]any) {
	constToEnum(s)
	t.singleType(s, true)
	// oneOf becomes the weaker anyOf; that is safe, because the tools validate their arguments themselves.
	if list, ok := s["oneOf"].([]any); ok && s["anyOf"] == nil {
		s["anyOf"] = list
	}
	// The parts of an allOf are merged into s. What one part requires, the whole requires.
	if list, ok := s["allOf"].([]any); ok {
		for _, v := range list {
			if m, ok := v.(map[string]any); ok {
				for k, v := range m {
					// The schema's own keywords win over those of a part.
					if _, ok := s[k]; !ok {
						s[k] = v
					}
				}
			}
		}
		merge(s, list, true)
		// merge adds properties also where no part has any.
		if props, _ := s["properties"].(map[string]any); len(props) == 0 && s["type"] != "object" {
			delete(s, "properties")
		}
	}
	if list, ok := s["anyOf"].([]any); ok {
		t.geminiAnyOf(s, list)
	}
	// For one keyword that is not on the list the API refuses all tools of the request.
	for k := range s {
		if !slices.Contains(geminiKept, k) {
			delete(s, k)
		}
	}
	// An enum has strings only. Other values are written as JSON; the tool's validation then tells the model of a wrong type.
	if enum, ok := s["enum"].([]any); ok {
		var words []any
		for _, v := range enum {
			switch v := v.(type) {
			case string:
				// The API refuses an empty string in an enum.
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
	// The API demands a type. The other keywords say which one was meant.
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
		// These are the two formats that the API accepts for strings.
		if f := s["format"]; f != "enum" && f != "date-time" {
			delete(s, "format")
		}
	default:
		delete(s, "format")
	}
	// The rest removes keywords that belong to other types than the one that s has now.
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

// geminiAnyOf removes null from the variants, replaces a single variant by its keywords, and leaves nothing but descriptions beside
// several: Gemini refuses other keywords next to anyOf.
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
		// A single variant is the schema itself; keywords that s has already win.
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
