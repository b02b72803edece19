package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/pillion-dev/pillion/tools/textutil"
)

// FieldError is one bad field of an input. Path is like ["edits"][0]["oldString"], empty for the input itself.
type FieldError struct {
	Path    string
	Problem string // "Missing key", "Expected string, got 5"
}

// InvalidInput lists every bad field of one call, maxErrors at most. Callers find it in the chain of the *Error that Decode returns.
type InvalidInput struct {
	Tool   string
	Fields []FieldError
}

// Error lists every field that is wrong, so that the model can correct all of them in one
// call.
func (e *InvalidInput) Error() string {
	var b strings.Builder
	for i, f := range e.Fields {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(f.Problem)
		if f.Path != "" {
			b.WriteString(" at " + f.Path)
		}
	}
	return b.String()
}

// Decode checks an input against the tool's parameters and returns it as the tool may rely on: numbers and
// booleans that came as strings are numbers and booleans, null for an optional field is not a field, defaults are
// filled in and unknown keys are gone (both only where the tool was made by New), an input that came as a JSON
// string is unwrapped. The error is an *Error of kind "invalid" that wraps an *InvalidInput.
func Decode(t Tool, raw json.RawMessage) (json.RawMessage, error) {
	input, _, err := decode(t, raw)
	return input, err
}

// decode is Decode. tree is a long input as decoded, so that it need not be decoded again for the tool; else nil.
func decode(t Tool, raw json.RawMessage) (input json.RawMessage, tree any, err error) {
	v, raw, bad := parse(raw)
	if bad != nil {
		return nil, nil, t.invalid([]FieldError{*bad})
	}
	var before any
	if len(raw) >= longInput {
		before = cloned(v)
	}
	// A tool without a schema takes any object: its server or plugin checks the input itself.
	d := decoder{root: t.schema(), typed: t.typed != nil}
	if m, ok := v.(map[string]any); ok {
		t.rename(m)
	} else {
		return nil, nil, t.invalid([]FieldError{{Problem: "Expected object, got " + show(v)}})
	}
	if d.root == nil {
		d.root = &jsonschema.Schema{}
	}
	v = d.value(d.root, v, "", 0)
	// With OwnCheck what could be converted is converted, and the tool words what is wrong.
	if len(d.errs) > 0 && !t.OwnCheck {
		return nil, nil, t.invalid(d.errs)
	}
	if before != nil && reflect.DeepEqual(before, v) {
		return raw, v, nil
	}
	out, err := encode(v)
	if err != nil {
		return nil, nil, t.invalid([]FieldError{{Problem: err.Error()}})
	}
	return out, nil, nil
}

// longInput is the size, in bytes, from which an input is not encoded again when nothing in it had to be changed: a file that is written
// whole would be in memory several times.
const longInput = 256 << 10

// unmarshal is json.Unmarshal for an input that decode has given with its tree, which it changes: marks stand in the places of long texts
// while the rest is decoded. A nil tree means that there are none.
func unmarshal[P any](input []byte, tree any, p *P) error {
	if tree == nil || reflect.TypeFor[P]().Kind() != reflect.Struct {
		return json.Unmarshal(input, p)
	}
	texts := map[string]string{}
	short, err := json.Marshal(marked(tree, texts))
	if err == nil {
		err = json.Unmarshal(short, p)
	}
	if err != nil || !unmark(reflect.ValueOf(p).Elem(), texts) || len(texts) > 0 {
		*p = *new(P)
		return json.Unmarshal(input, p) // a text that only looks like a mark, or one in a field that is not a string
	}
	return nil
}

// marked is v with marks for its long texts, which it moves to texts.
func marked(v any, texts map[string]string) any {
	switch x := v.(type) {
	case map[string]any:
		for k, e := range x {
			x[k] = marked(e, texts)
		}
	case []any:
		for i, e := range x {
			x[i] = marked(e, texts)
		}
	case string:
		if len(x) >= longInput/2 {
			mark := fmt.Sprintf("\x00text %d\x00", len(texts))
			texts[mark] = x
			return mark
		}
	}
	return v
}

// unmark puts the texts in the places of their marks, and takes them out of texts. It reports false for a mark that it cannot replace.
func unmark(v reflect.Value, texts map[string]string) bool {
	switch v.Kind() {
	case reflect.String:
		if s := v.String(); strings.HasPrefix(s, "\x00text ") {
			text, ok := texts[s]
			if !ok || !v.CanSet() {
				return false
			}
			v.SetString(text)
			delete(texts, s)
		}
	case reflect.Pointer:
		return v.IsNil() || unmark(v.Elem(), texts)
	case reflect.Struct:
		for i := range v.NumField() {
			if !unmark(v.Field(i), texts) {
				return false
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if !unmark(v.Index(i), texts) {
				return false
			}
		}
	}
	return true
}

// cloned is a copy of a decoded value that shares its texts, to see later whether the value was changed.
func cloned(v any) any {
	switch x := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(x))
		for k, e := range x {
			out[k] = cloned(e)
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i, e := range x {
			out[i] = cloned(e)
		}
		return out
	}
	return v
}

// invalid words the error with the sentence that OpenCode's tools use, which models know how to answer.
func (t Tool) invalid(fields []FieldError) error {
	cause := &InvalidInput{Tool: t.ID, Fields: fields}
	text := fmt.Sprintf("The %s tool was called with invalid arguments: %s.\nPlease rewrite the input so it satisfies the expected schema.", t.ID, cause)
	return &Error{Kind: "invalid", Message: text, Err: cause}
}

// parse reads JSON and looks through strings that hold an object; read is the JSON that it found v in. No input at all is the empty
// object: models send that for tools without required parameters.
func parse(raw []byte) (v any, read json.RawMessage, bad *FieldError) {
	for range 4 { // a string in a string in a string is not a mistake of one escaping any more
		raw = bytes.TrimSpace(raw)
		if len(raw) == 0 || string(raw) == "null" {
			return map[string]any{}, nil, nil
		}
		if len(raw) >= longInput && raw[0] == '{' && json.Valid(raw) {
			return textutil.Tree(raw), raw, nil
		}
		dec := json.NewDecoder(bytes.NewReader(raw))
		// Large integers, such as ids, stay exact; float64 would round them.
		dec.UseNumber()
		v = nil
		err := dec.Decode(&v)
		if err == nil {
			if rest := bytes.TrimSpace(raw[dec.InputOffset():]); len(rest) > 0 {
				return nil, nil, notJSON(raw, dec.InputOffset()+1, "there is text after the end of the object")
			}
			s, ok := v.(string)
			if !ok {
				return v, raw, nil
			}
			raw = []byte(s)
			continue
		}
		var syntax *json.SyntaxError
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &syntax) && syntax.Error() == "unexpected end of JSON input":
			return nil, nil, notJSON(raw, int64(len(raw))+1, "it ends too early; it may have been cut off, so send it whole or as several smaller calls")
		case errors.As(err, &syntax):
			return nil, nil, notJSON(raw, syntax.Offset, syntax.Error())
		}
		return nil, nil, notJSON(raw, dec.InputOffset()+1, err.Error())
	}
	return nil, nil, &FieldError{Problem: "Expected object, got a string within strings"}
}

// notJSON says where, for offset counted from 1 as encoding/json does.
func notJSON(raw []byte, offset int64, why string) *FieldError {
	at := min(max(int(offset)-1, 0), len(raw))
	line := 1 + bytes.Count(raw[:at], []byte("\n"))
	column := 1 + utf8.RuneCount(raw[bytes.LastIndexByte(raw[:at], '\n')+1:at])
	near := strings.ToValidUTF8(string(raw[max(0, at-30):min(len(raw), at+10)]), "")
	return &FieldError{Problem: fmt.Sprintf("the input is not valid JSON at line %d, column %d (near %s): %s", line, column, strconv.Quote(near), why)}
}

// encode is JSON without a final newline and without HTML escapes.
func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // code is full of < and >
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// decoder walks a value beside its schema and collects what is wrong. Keywords it does not know are left to the
// tool: an MCP server checks its own input again.
type decoder struct {
	root  *jsonschema.Schema
	typed bool // made by New: drop unknown keys, fill in defaults
	errs  []FieldError
}

// Bounds of one input's check.
const (
	maxErrors = 20 // bad fields told at once; more help nobody
	maxDepth  = 64 // of $ref and nesting
)

// fail records one bad field; those beyond maxErrors are dropped.
func (d *decoder) fail(path, format string, a ...any) {
	if len(d.errs) < maxErrors {
		d.errs = append(d.errs, FieldError{Path: path, Problem: fmt.Sprintf(format, a...)})
	}
}

// value returns v as schema s wants it and records what does not fit. A nil schema, and a schema nested deeper than maxDepth,
// accept everything: a schema may refer to itself without end.
func (d *decoder) value(s *jsonschema.Schema, v any, path string, depth int) any {
	// A reference that leads nowhere here accepts everything: a mistake in a server's schema must not make its tool unusable.
	s = d.resolve(s)
	if s == nil || depth > maxDepth {
		return v
	}
	for _, sub := range s.AllOf {
		v = d.value(sub, v, path, depth+1)
	}
	for _, alternatives := range [][]*jsonschema.Schema{s.AnyOf, s.OneOf} {
		if len(alternatives) > 0 {
			v = d.choose(alternatives, v, path, depth+1)
		}
	}
	want := s.Types
	if s.Type != "" {
		want = []string{s.Type}
	}
	if len(want) > 0 {
		fit, ok := coerce(want, v)
		if !ok {
			d.fail(path, "Expected %s, got %s", strings.Join(want, " | "), show(v))
			return v
		}
		v = fit
	}
	v = d.enum(s, v, path)
	switch x := v.(type) {
	case map[string]any:
		return d.object(s, x, path, depth)
	case []any:
		return d.array(s, x, path, depth)
	case string:
		// JSON Schema counts characters, not bytes.
		n := utf8.RuneCountInString(x)
		if s.MinLength != nil && n < *s.MinLength {
			d.fail(path, "Expected at least %d characters, got %d", *s.MinLength, n)
		}
		if s.MaxLength != nil && n > *s.MaxLength {
			d.fail(path, "Expected at most %d characters, got %d", *s.MaxLength, n)
		}
	case json.Number:
		d.limits(s, x, path)
	}
	return v
}

// resolve follows local references ("#/$defs/…", "#/definitions/…", "#"). Others are not fetched: nil, which accepts everything. References
// that go in a circle end after maxDepth.
func (d *decoder) resolve(s *jsonschema.Schema) *jsonschema.Schema {
	for range maxDepth {
		if s == nil || s.Ref == "" {
			return s
		}
		if s.Ref == "#" {
			s = d.root
			continue
		}
		name, ok := strings.CutPrefix(s.Ref, "#/$defs/")
		defs := d.root.Defs
		if !ok {
			name, ok = strings.CutPrefix(s.Ref, "#/definitions/")
			defs = d.root.Definitions
		}
		if !ok {
			return nil
		}
		s = defs[name]
	}
	return nil
}

// choose takes the first alternative the value fits as it is, else the first it fits after coercion: "5" stays a text where a text is
// allowed. When none fits, the errors are those of the alternative with the value's own type, most likely the one that was meant.
func (d *decoder) choose(alternatives []*jsonschema.Schema, v any, path string, depth int) any {
	var closest []FieldError
	for _, exact := range []bool{true, false} {
		for _, s := range alternatives {
			r := d.resolve(s)
			if r == nil {
				return v
			}
			if exact && !slices.ContainsFunc(append(slices.Clone(r.Types), r.Type), func(t string) bool { return t == "" || is(t, v) }) {
				continue
			}
			// A decoder of its own, whose errors are dropped when another alternative fits.
			try := decoder{root: d.root, typed: d.typed}
			out := try.value(r, v, path, depth)
			if len(try.errs) == 0 {
				return out
			}
			if exact && closest == nil {
				closest = try.errs
			}
		}
	}
	if closest == nil {
		var names []string
		for _, s := range alternatives {
			if r := d.resolve(s); r != nil {
				names = append(names, append(slices.Clone(r.Types), r.Type)...)
			}
		}
		names = slices.DeleteFunc(names, func(n string) bool { return n == "" })
		closest = []FieldError{{Path: path, Problem: fmt.Sprintf("Expected %s, got %s", strings.Join(names, " | "), show(v))}}
	}
	d.errs = append(d.errs, closest...)
	return v
}

// enum returns the allowed value that v is or means: case, "_" and "-" do not count, as models write the words of other
// languages' conventions.
func (d *decoder) enum(s *jsonschema.Schema, v any, path string) any {
	allowed := s.Enum
	if s.Const != nil {
		allowed = []any{*s.Const}
	}
	if allowed == nil {
		return v
	}
	var shown []string
	for _, a := range allowed {
		if equal(a, v) {
			return v
		}
		shown = append(shown, show(a))
	}
	if str, ok := v.(string); ok { // "Markdown" is meant as "markdown", "find_references" as "findReferences"
		for _, a := range allowed {
			if as, ok := a.(string); ok && fold(as) == fold(strings.TrimSpace(str)) {
				return as
			}
		}
	}
	d.fail(path, "Expected %s, got %s", strings.Join(shown, " | "), show(v))
	return v
}

// limits checks a number's bounds.
func (d *decoder) limits(s *jsonschema.Schema, n json.Number, path string) {
	f, _ := n.Float64()
	if s.Minimum != nil && f < *s.Minimum {
		d.fail(path, "Expected a value greater than or equal to %v, got %s", *s.Minimum, n)
	}
	if s.Maximum != nil && f > *s.Maximum {
		d.fail(path, "Expected a value less than or equal to %v, got %s", *s.Maximum, n)
	}
	if s.ExclusiveMinimum != nil && f <= *s.ExclusiveMinimum {
		d.fail(path, "Expected a value greater than %v, got %s", *s.ExclusiveMinimum, n)
	}
	if s.ExclusiveMaximum != nil && f >= *s.ExclusiveMaximum {
		d.fail(path, "Expected a value less than %v, got %s", *s.ExclusiveMaximum, n)
	}
}

// array checks a list and converts its items in place.
func (d *decoder) array(s *jsonschema.Schema, a []any, path string, depth int) any {
	if s.MinItems != nil && len(a) < *s.MinItems {
		d.fail(path, "Expected at least %d items, got %d", *s.MinItems, len(a))
	}
	if s.MaxItems != nil && len(a) > *s.MaxItems {
		d.fail(path, "Expected at most %d items, got %d", *s.MaxItems, len(a))
	}
	if s.Items != nil {
		for i := range a {
			a[i] = d.value(s.Items, a[i], path+"["+strconv.Itoa(i)+"]", depth+1)
		}
	}
	return a
}

// object checks an object and converts it in place: keys spelled another way get the parameter's name, null for an optional
// parameter is removed, defaults are filled in. Keys are visited in order, so that the same input gives the same errors.
func (d *decoder) object(s *jsonschema.Schema, m map[string]any, path string, depth int) any {
	if s.Properties == nil && s.AdditionalProperties == nil && len(s.Required) == 0 {
		return m
	}
	var unknown []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if s.Properties[k] == nil {
			unknown = append(unknown, k)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		v, there := m[name]
		if !there { // file_path for filePath
			if i := slices.IndexFunc(unknown, func(k string) bool { return fold(k) == fold(name) }); i >= 0 {
				v, there = m[unknown[i]], true
				delete(m, unknown[i])
				unknown = slices.Delete(unknown, i, i+1)
			}
		}
		required := slices.Contains(s.Required, name)
		if there && v == nil && !required && !nullable(d.resolve(p)) {
			there = false
			delete(m, name)
		}
		if !there {
			if d.typed && p.Default != nil {
				def, _ := parseDefault(p.Default)
				m[name] = def
			}
			continue
		}
		m[name] = d.value(p, v, path+"["+strconv.Quote(name)+"]", depth+1)
	}
	for _, k := range unknown {
		switch {
		case s.AdditionalProperties != nil && !never(s.AdditionalProperties):
			m[k] = d.value(s.AdditionalProperties, m[k], path+"["+strconv.Quote(k)+"]", depth+1)
		// Models add keys that other programs' tools have; a refusal would cost a step and help nobody.
		case d.typed && s.Properties != nil || never(s.AdditionalProperties):
			delete(m, k)
		}
	}
	for _, name := range s.Required {
		if _, ok := m[name]; ok {
			continue
		}
		hint := ""
		if len(unknown) > 0 {
			hint = fmt.Sprintf(" (unknown key %q was ignored)", unknown[0])
		}
		d.fail(path+"["+strconv.Quote(name)+"]", "Missing key%s", hint)
	}
	return m
}

// parseDefault decodes JSON as the inputs are decoded, with json.Number.
func parseDefault(raw json.RawMessage) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	err := dec.Decode(&v)
	return v, err
}

// fold makes file_path, FilePath and file-path one.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// never reports whether s is the schema false, which jsonschema-go holds as {"not": {}}.
func never(s *jsonschema.Schema) bool {
	return s != nil && s.Not != nil && s.Type == "" && s.Types == nil && s.Not.Type == "" && s.Not.Types == nil && s.Not.Properties == nil && s.Not.Enum == nil && s.Not.Const == nil
}

// nullable reports whether null is a value of its own here, and not just a missing one.
func nullable(s *jsonschema.Schema) bool {
	return s != nil && (s.Type == "null" || slices.Contains(s.Types, "null") || slices.Contains(s.Enum, nil) ||
		slices.ContainsFunc(s.AnyOf, nullable) || slices.ContainsFunc(s.OneOf, nullable))
}
