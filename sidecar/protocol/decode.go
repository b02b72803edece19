package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/pillion-dev/pillion/tools/textutil"
)

// DecodeError says where in a message a value is wrong, for the author of a client.
type DecodeError struct {
	Path string // e.g. prompt[0].text; empty is the whole
	Text string // e.g. want a string, got a number
}

// Error is "path: text".
func (e *DecodeError) Error() string {
	if e.Path == "" {
		return e.Text
	}
	return e.Path + ": " + e.Text
}

// longMessage is the size of a message in bytes, such as a prompt with a pasted log, from which Decode avoids a Decoder's buffer.
const longMessage = 256 << 10

// Decode reads JSON into one of this package's types. Unlike encoding/json it knows which members are required, tells
// exactly where a value is wrong, and matches names exactly. Members marked lenient in the schema fall back to their
// default when they are wrong, as ACP asks; unknown members are ignored.
func Decode(data []byte, v any) error {
	if len(data) >= longMessage && json.Valid(data) {
		return Assign(textutil.Tree(data), v)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var tree any
	if err := d.Decode(&tree); err != nil {
		return &DecodeError{Text: "not valid JSON: " + err.Error()}
	}
	if _, err := d.Token(); err != io.EOF {
		return &DecodeError{Text: "more than one JSON value"}
	}
	return Assign(tree, v)
}

// Assign is Decode for a value that is already a tree of map[string]any, []any, string, json.Number, bool and nil, as
// _meta members are.
func Assign(tree, v any) error { return assign("", tree, reflect.ValueOf(v).Elem()) }

// rawType is kept as JSON.
var (
	rawType = reflect.TypeFor[json.RawMessage]()
)

// tagged is a union whose variant is named by a member. variant("") only tells the member's name.
type tagged interface {
	variant(tag string) (key string, value any, ok bool)
}

// assign sets dst from a tree; path is the place in the message.
func assign(path string, tree any, dst reflect.Value) error {
	if dst.Type() == rawType {
		raw, err := json.Marshal(tree)
		dst.SetBytes(raw)
		return err
	}
	if dst.CanAddr() {
		if u, ok := dst.Addr().Interface().(tagged); ok {
			return assignTagged(path, tree, dst, u)
		}
	}
	switch dst.Kind() {
	case reflect.Pointer:
		if tree == nil {
			return nil
		}
		p := reflect.New(dst.Type().Elem())
		if err := assign(path, tree, p.Elem()); err != nil {
			return err
		}
		dst.Set(p)
	case reflect.Interface:
		if tree != nil {
			dst.Set(reflect.ValueOf(tree))
		}
	case reflect.Struct:
		m, ok := tree.(map[string]any)
		if !ok {
			return mismatch(path, "an object", tree)
		}
		return assignStruct(path, m, dst)
	case reflect.Slice:
		list, ok := tree.([]any)
		if !ok {
			return mismatch(path, "an array", tree)
		}
		s := reflect.MakeSlice(dst.Type(), len(list), len(list))
		for i, x := range list {
			if err := assign(path+"["+strconv.Itoa(i)+"]", x, s.Index(i)); err != nil {
				return err
			}
		}
		dst.Set(s)
	case reflect.Map:
		m, ok := tree.(map[string]any)
		if !ok {
			return mismatch(path, "an object", tree)
		}
		out := reflect.MakeMapWithSize(dst.Type(), len(m))
		for k, x := range m {
			e := reflect.New(dst.Type().Elem()).Elem()
			if err := assign(join(path, k), x, e); err != nil {
				return err
			}
			out.SetMapIndex(reflect.ValueOf(k), e)
		}
		dst.Set(out)
	case reflect.String:
		s, ok := tree.(string)
		if !ok {
			return mismatch(path, "a string", tree)
		}
		dst.SetString(s)
	case reflect.Bool:
		b, ok := tree.(bool)
		if !ok {
			return mismatch(path, "true or false", tree)
		}
		dst.SetBool(b)
	case reflect.Int, reflect.Int32, reflect.Int64:
		return assignInt(path, tree, dst)
	case reflect.Float64:
		n, ok := tree.(json.Number)
		f, err := n.Float64()
		if !ok || err != nil {
			return mismatch(path, "a number", tree)
		}
		dst.SetFloat(f)
	default:
		return &DecodeError{path, "cannot hold " + dst.Type().String()}
	}
	return nil
}

// assignInt accepts 3.0 for 3, as JavaScript clients write it; other fractions are errors.
func assignInt(path string, tree any, dst reflect.Value) error {
	n, ok := tree.(json.Number)
	if !ok {
		return mismatch(path, "an integer", tree)
	}
	i, err := n.Int64()
	if err != nil {
		f, ferr := n.Float64()
		if ferr != nil || f != float64(int64(f)) {
			return mismatch(path, "an integer", tree)
		}
		i = int64(f)
	}
	if dst.OverflowInt(i) {
		return &DecodeError{path, fmt.Sprintf("%d is out of range", i)}
	}
	dst.SetInt(i)
	return nil
}

// assignStruct sets the members of a struct by the rules in its acp tags: required, lenient, or neither.
func assignStruct(path string, m map[string]any, dst reflect.Value) error {
	t := dst.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		rule := f.Tag.Get("acp")
		x, there := m[name]
		if !there || x == nil && rule != "required" {
			if rule == "required" {
				return &DecodeError{join(path, name), "is missing"}
			}
			continue
		}
		if err := assign(join(path, name), x, dst.Field(i)); err != nil {
			if rule != "lenient" {
				return err
			}
			dst.Field(i).SetZero()
		}
	}
	return nil
}

// assignTagged chooses the variant of a union and sets it. An unknown tag is an error unless the union has a variant
// for it.
func assignTagged(path string, tree any, dst reflect.Value, u tagged) error {
	m, ok := tree.(map[string]any)
	if !ok {
		return mismatch(path, "an object", tree)
	}
	key, _, _ := u.variant("")
	tag, isString := m[key].(string)
	if x, there := m[key]; there && !isString && x != nil {
		return mismatch(join(path, key), "a string", x)
	}
	_, value, ok := u.variant(tag)
	if !ok {
		if tag == "" {
			return &DecodeError{join(path, key), "is missing"}
		}
		return &DecodeError{join(path, key), fmt.Sprintf("unknown value %q", clip(tag))}
	}
	if value != nil {
		if err := assign(path, tree, reflect.ValueOf(value).Elem()); err != nil {
			return err
		}
		dst.Field(1).Set(reflect.ValueOf(value))
	}
	dst.Field(0).SetString(tag)
	return nil
}

// join is the path of a member.
func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// mismatch is the error of a value of the wrong type.
func mismatch(path, want string, got any) error {
	kind := "null"
	switch got.(type) {
	case string:
		kind = "a string"
	case json.Number:
		kind = "a number"
	case bool:
		kind = "a boolean"
	case []any:
		kind = "an array"
	case map[string]any:
		kind = "an object"
	}
	return &DecodeError{path, "want " + want + ", got " + kind}
}

// clip shortens a value for an error.
func clip(s string) string {
	if len(s) > 60 {
		return strings.ToValidUTF8(s[:60], "") + "…"
	}
	return s
}

// marshalTagged writes an object with its tag first, as readers of a log expect.
func marshalTagged(key, tag string, value any) ([]byte, error) {
	if text, ok := plainText(tag, value); ok {
		b := make([]byte, 0, len(text)+len(text)/8+80)
		if _, block := value.(*TextContent); block {
			return append(textutil.AppendJSON(append(b, `{"type":"text","text":`...), text), '}'), nil
		}
		b = append(b, `{"type":"content","content":{"type":"text","text":`...)
		return append(textutil.AppendJSON(b, text), "}}"...), nil
	}
	var b bytes.Buffer
	b.WriteByte('{')
	if tag != "" {
		k, _ := json.Marshal(key)
		t, _ := json.Marshal(tag)
		b.Write(k)
		b.WriteByte(':')
		b.Write(t)
	}
	if value == nil {
		b.WriteByte('}')
		return b.Bytes(), nil
	}
	start := b.Len()
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, err
	}
	out := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	switch {
	case out[start] != '{':
		return nil, fmt.Errorf("%s %q: the value is not an object", key, tag)
	case out[start+1] == '}' || tag == "":
		return append(out[:start], out[start+1:]...), nil
	}
	out[start] = ','
	return out, nil
}

// plainText is the text of a block that is nothing but text: most of what is sent. encoding/json would copy it once
// more for each object around it.
func plainText(tag string, value any) (string, bool) {
	switch v := value.(type) {
	case *TextContent:
		return v.Text, tag == "text" && v.Meta == nil && v.Annotations == nil
	case *Content:
		if t, ok := v.Content.Value.(*TextContent); ok && tag == "content" && v.Meta == nil {
			return plainText(v.Content.Type, t)
		}
	}
	return "", false
}
