package provider

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// maxRefDepth ends the inlining of a schema that refers to itself: deeper down any object is accepted. MCP servers describe trees with
// such references; six levels of them are kept.
const maxRefDepth = 6

// maxSchemaNodes bounds how many schemas inlining may produce. A reference is copied wherever it is used, so a small schema with many of
// them can grow exponentially.
const maxSchemaNodes = 4000

// TransformSchema makes a tool's JSON Schema one that the provider accepts and that means the same as far as it
// can. A schema that is not an object, or not JSON, becomes the empty object schema. Keys come out sorted, so the same
// schema always gives the same bytes (prompt caches).
//
//	anthropic           $schema, $id, $defs go, references are inlined; a top-level anyOf becomes one object
//	openai, responses   as above, and without what the subset lacks (bounds, patterns, formats, defaults); not strict:
//	                    optional stays optional
//	openai-compatible   references inlined; a single type where there is a list; constants as enums: small servers
//	                    turn schemas into grammars
//	gemini              only the OpenAPI subset: string enums, nullable, items on every array, required only for
//	                    existing properties, no additionalProperties
func TransformSchema(kind Kind, schema json.RawMessage) json.RawMessage {
	var root any
	dec := json.NewDecoder(bytes.NewReader(schema))
	// Numbers stay as they are written: float64 would round the limits of 64-bit integers.
	dec.UseNumber()
	if dec.Decode(&root) != nil {
		root = nil
	}
	top, _ := root.(map[string]any)
	// A tool without a usable schema must still be callable.
	if top == nil {
		top = map[string]any{}
	}
	t := transformer{kind: kind, root: top, nodes: new(int)}
	out := t.schema(top, 0)
	out = t.topLevel(out)
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	// HTML escapes would make patterns and descriptions longer, and harder to read for a model.
	enc.SetEscapeHTML(false)
	if enc.Encode(out) != nil {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return json.RawMessage(bytes.TrimSpace(b.Bytes()))
}

// transformer rewrites one schema for one format. Its methods change only copies: a tool's own schema is shared by all sessions.
type transformer struct {
	kind Kind
	root map[string]any
	// nodes counts all schemas of one transformation; a pointer, because the transformer is passed by value.
	nodes *int
}

// topLevel makes sure that the whole is an object with properties, which every provider demands.
func (t transformer) topLevel(s map[string]any) map[string]any {
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		variants, ok := s[key].([]any)
		if !ok {
			continue
		}
		delete(s, key)
		merge(s, variants, key == "allOf")
	}
	s["type"] = "object"
	if _, ok := s["properties"].(map[string]any); !ok {
		s["properties"] = map[string]any{}
	}
	// At the top these keywords mean nothing, since arguments are always an object, and providers refuse them there.
	delete(s, "nullable")
	delete(s, "enum")
	delete(s, "not")
	return s
}

// merge puts the properties of the variants into s, because no provider accepts anyOf at the top of a tool's schema. A property is
// required when every variant requires it, or, for allOf, any.
func merge(s map[string]any, variants []any, all bool) {
	props, _ := s["properties"].(map[string]any)
	if props == nil {
		props = map[string]any{}
	}
	count := map[string]int{}
	n := 0
	for _, v := range variants {
		m, ok := v.(map[string]any)
		if !ok {
			continue
		}
		n++
		if p, ok := m["properties"].(map[string]any); ok {
			for k, v := range p {
				if _, ok := props[k]; !ok {
					props[k] = v
				}
			}
		}
		for _, r := range stringsOf(m["required"]) {
			count[r]++
		}
	}
	required := stringsOf(s["required"])
	for k, c := range count {
		if (all || c == n) && !slices.Contains(required, k) {
			required = append(required, k)
		}
	}
	s["properties"] = props
	if len(required) > 0 {
		slices.Sort(required)
		s["required"] = anySlice(required)
	}
}

// The keywords that the formats refuse, from the providers' documentation and error messages. Of Gemini's the list has those that it
// accepts.
var (
	metaKeywords   = []string{"$schema", "$id", "$anchor", "$comment", "$defs", "definitions", "$vocabulary", "$dynamicRef", "$dynamicAnchor"}
	openaiDropped  = []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern", "format", "minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains", "minProperties", "maxProperties", "patternProperties", "propertyNames", "unevaluatedProperties", "unevaluatedItems", "dependentRequired", "dependentSchemas", "dependencies", "if", "then", "else", "not", "examples", "contentEncoding", "contentMediaType", "readOnly", "writeOnly", "deprecated"}
	anthropicGone  = []string{"unevaluatedProperties", "unevaluatedItems", "dependencies"}
	compatibleGone = []string{"unevaluatedProperties", "unevaluatedItems", "dependentRequired", "dependentSchemas", "dependencies", "if", "then", "else", "not", "propertyNames", "contains", "patternProperties", "examples", "contentEncoding", "contentMediaType"}
	geminiKept     = []string{"type", "description", "enum", "properties", "required", "items", "anyOf", "nullable", "minItems", "maxItems", "minimum", "maximum", "title", "format"}
)

// schema transforms one schema and those below it.
func (t transformer) schema(in map[string]any, depth int) map[string]any {
	// depth grows with each reference that is followed and not with nesting: nesting ends where the author's text does.
	in = t.resolve(in, &depth)
	*t.nodes++
	if depth > maxRefDepth || *t.nodes > maxSchemaNodes {
		return map[string]any{"type": "object"}
	}
	out := make(map[string]any, len(in))
	for k, v := range in {
		switch k {
		case "properties", "patternProperties", "dependentSchemas":
			if m, ok := v.(map[string]any); ok {
				props := make(map[string]any, len(m))
				for name, p := range m {
					props[name] = t.sub(p, depth)
				}
				out[k] = props
			}
		case "items", "contains", "propertyNames", "not", "if", "then", "else", "unevaluatedItems":
			if list, ok := v.([]any); ok { // a tuple in the old manner
				v = tupleItem(list)
			}
			out[k] = t.sub(v, depth)
		case "additionalProperties", "unevaluatedProperties":
			if _, ok := v.(map[string]any); ok {
				v = t.sub(v, depth)
			}
			out[k] = v
		case "anyOf", "oneOf", "allOf", "prefixItems":
			if list, ok := v.([]any); ok && len(list) > 0 {
				subs := make([]any, len(list))
				for i := range list {
					subs[i] = t.sub(list[i], depth)
				}
				out[k] = subs
			}
		default:
			out[k] = v
		}
	}
	remove(out, metaKeywords)
	// No provider takes tuples.
	if list, ok := out["prefixItems"].([]any); ok {
		delete(out, "prefixItems")
		if _, ok := out["items"].(map[string]any); !ok {
			out["items"] = tupleItem(list)
		}
	}
	// It is the default, and some formats refuse it.
	if out["additionalProperties"] == true {
		delete(out, "additionalProperties")
	}
	switch t.kind {
	case KindAnthropic:
		remove(out, anthropicGone)
	case KindOpenAI, KindResponses:
		remove(out, openaiDropped)
		t.arrays(out)
	case KindCompatible:
		remove(out, compatibleGone)
		constToEnum(out)
		t.singleType(out, false)
		t.arrays(out)
	case KindGemini:
		t.gemini(out)
	}
	// Gemini refuses a required name without a property, and a reference that was cut off at maxRefDepth leaves such names behind.
	if list := stringsOf(out["required"]); out["required"] != nil {
		if props, ok := out["properties"].(map[string]any); ok || t.kind == KindGemini {
			list = slices.DeleteFunc(list, func(name string) bool { _, ok := props[name]; return !ok })
		}
		if len(list) == 0 {
			delete(out, "required")
		} else {
			out["required"] = anySlice(list)
		}
	}
	return out
}

// sub transforms a schema in any of its spellings. true and false become the empty schema: no format has a word for "nothing is valid".
func (t transformer) sub(v any, depth int) any {
	if m, ok := v.(map[string]any); ok {
		return t.schema(m, depth+boolInt(m["$ref"] != nil))
	}
	// Gemini demands a type, so it cannot have the empty schema.
	if t.kind == KindGemini {
		return map[string]any{"type": "string"}
	}
	return map[string]any{}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// resolve replaces a $ref by its target; keywords beside it (such as a description) win over the target's. A reference that leads nowhere
// accepts anything: a flaw in its schema must not make a tool unusable.
func (t transformer) resolve(in map[string]any, depth *int) map[string]any {
	// A chain of more than 16 references is taken for a circle.
	for range 16 {
		ref, ok := in["$ref"].(string)
		if !ok {
			return in
		}
		out := map[string]any{}
		if *depth <= maxRefDepth {
			if target := t.lookup(ref); target != nil {
				for k, v := range target {
					out[k] = v
				}
			}
		}
		for k, v := range in {
			if k != "$ref" {
				out[k] = v
			}
		}
		in = out
	}
	return map[string]any{}
}

// lookup follows a JSON pointer (#/$defs/…; RFC 6901, whose escapes are ~0 and ~1) in the root. It returns nil for one that leads nowhere
// or out of the document: nothing is fetched.
func (t transformer) lookup(ref string) map[string]any {
	path, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	var at any = t.root
	for _, step := range strings.Split(strings.Trim(path, "/"), "/") {
		if step == "" {
			continue
		}
		m, ok := at.(map[string]any)
		if !ok {
			return nil
		}
		at = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
	}
	m, _ := at.(map[string]any)
	return m
}

// tupleItem is one schema that accepts what any schema of a tuple accepts: no provider takes tuples.
func tupleItem(list []any) any {
	if len(list) == 1 {
		return list[0]
	}
	return map[string]any{"anyOf": list}
}

// arrays gives every array an items schema, which OpenAI and Gemini demand.
func (t transformer) arrays(s map[string]any) {
	if s["type"] == "array" && s["items"] == nil {
		s["items"] = map[string]any{"type": "string"}
	}
}

// remove deletes keys in place; out of schema is always a copy.
func remove(m map[string]any, keys []string) {
	for _, k := range keys {
		delete(m, k)
	}
}

// stringsOf leaves out what is not a string; what is not a list gives none.
func stringsOf(v any) []string {
	list, _ := v.([]any)
	var out []string
	for _, e := range list {
		if s, ok := e.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

func anySlice(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}
