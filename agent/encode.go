package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"unicode/utf8"

	"github.com/pillion-dev/pillion/agent/store"
)

// Events with a very long text, such as a build's output or a large file, are encoded by encodeLong instead of json.Marshal.
const (
	longText  = 256 << 10 // bytes; longer texts are quoted by encodeLong itself
	quoteStep = 64 << 10  // bytes of a long text that are quoted at a time
)

// encodeLong is json.Marshal for values with long texts, which it does not copy: it encodes the value with short marks in place of the long
// texts (and long JSON values), and quotes these piece by piece when the pieces are asked for. json.Marshal grows a buffer by copying and
// copies it once more at the end: an event of 32 MB took 200 MB. What the value holds besides its strings and JSON values may be changed
// afterwards. ok is false when there is no long text, or when a mark cannot be trusted; the caller then uses json.Marshal.
func encodeLong(v any) (encoded *store.Long, ok bool) {
	if !hasLong(reflect.ValueOf(v)) {
		return nil, false
	}
	long := map[int]longValue{}
	short := withMarks(reflect.ValueOf(v), long)
	if len(long) == 0 {
		return nil, false
	}
	frame, err := json.Marshal(short.Interface())
	if err != nil {
		return nil, false // json.Marshal will fail on v in the same way
	}
	var between []longValue // in turns: a part of the frame, a long value, a part of the frame …
	rest := frame
	for at := bytes.Index(rest, markHead); at >= 0; at = bytes.Index(rest, markHead) {
		number, after, _ := bytes.Cut(rest[at+len(markHead):], markTail)
		n, err := strconv.Atoi(string(number))
		s, known := long[n]
		if err != nil || !known {
			return nil, false // a text that looks like a mark
		}
		delete(long, n)
		between = append(between, longValue{json: rest[:at:at]}, s)
		rest = after
	}
	if len(long) > 0 {
		return nil, false // a mark was left out by omitempty or a field's tag
	}
	between = append(between, longValue{json: rest})
	pieces := func(yield func([]byte)) {
		for _, s := range between {
			s.parts(yield)
		}
	}
	encoded = &store.Long{Pieces: pieces}
	pieces(func(piece []byte) { encoded.Size += len(piece) })
	return encoded, true
}

// markHead and markTail surround the number of a mark in its JSON form. Models and tools do not write NUL; a value whose text happens to
// contain a mark is encoded by json.Marshal.
var (
	markHead = []byte(`"\u0000long text `)
	markTail = []byte(`\u0000"`)
)

// longValue is a long text, or a long JSON value such as the arguments of a call.
type longValue struct {
	text string
	json json.RawMessage // valid; nil for a text
}

// parts passes the value as JSON to yield piece by piece.
func (l longValue) parts(yield func([]byte)) {
	if l.json != nil {
		yield(l.json)
		return
	}
	yield([]byte{'"'})
	quotedParts(l.text, yield)
	yield([]byte{'"'})
}

// mark returns the placeholder of the i-th long text.
func mark(i int) string { return fmt.Sprintf("\x00long text %d\x00", i) }

// quotedParts passes a text in JSON form, without its quotation marks, to yield piece by piece. It leaves the quoting to encoding/json, so
// that the result equals that of json.Marshal.
func quotedParts(s string, yield func([]byte)) {
	var buf bytes.Buffer // reused for all pieces, so that garbage is not as large as the text
	enc := json.NewEncoder(&buf)
	for s != "" {
		n := min(len(s), quoteStep)
		for n < len(s) && n > quoteStep-utf8.UTFMax && !utf8.RuneStart(s[n]) {
			n-- // do not cut inside a character: each half would become U+FFFD
		}
		buf.Reset()
		_ = enc.Encode(s[:n]) // a string always encodes
		part := bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
		yield(part[1 : len(part)-1])
		s = s[n:]
	}
}

// hasLong reports whether a value may have a long text. Nearly every event has none, and this only looks, where withMarks copies.
func hasLong(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String:
		return v.Len() >= longText
	case reflect.Pointer, reflect.Interface:
		return !v.IsNil() && hasLong(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if hasLong(v.Field(i)) {
				return true
			}
		}
	case reflect.Slice, reflect.Array:
		switch v.Type().Elem().Kind() {
		case reflect.Uint8:
			return v.Kind() == reflect.Slice && v.Len() >= longText
		case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
			return false
		}
		for i := range v.Len() {
			if hasLong(v.Index(i)) {
				return true
			}
		}
	case reflect.Map:
		for each := v.MapRange(); each.Next(); {
			if hasLong(each.Value()) {
				return true
			}
		}
	}
	return false
}

// withMarks returns a copy of v with marks in place of its long texts, which it adds to long; a value without long texts is returned
// unchanged. Types with their own MarshalJSON are left alone: where their texts end up is unknown.
func withMarks(v reflect.Value, long map[int]longValue) reflect.Value {
	if v.IsValid() && v.Type() == reflect.TypeFor[json.RawMessage]() && v.Len() >= longText && json.Valid(v.Bytes()) {
		// As it was written: json.Marshal would take the white space out and escape <, > and &, which means the same.
		short, _ := json.Marshal(mark(len(long)))
		long[len(long)] = longValue{json: v.Bytes()}
		return reflect.ValueOf(json.RawMessage(short))
	}
	if !v.IsValid() || v.Type().Implements(reflect.TypeFor[json.Marshaler]()) || reflect.PointerTo(v.Type()).Implements(reflect.TypeFor[json.Marshaler]()) {
		return v
	}
	before := len(long)
	switch v.Kind() {
	case reflect.String:
		if v.Len() < longText {
			return v
		}
		out := reflect.New(v.Type()).Elem()
		out.SetString(mark(len(long)))
		long[len(long)] = longValue{text: v.String()}
		return out
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return v
		}
		inner := withMarks(v.Elem(), long)
		if len(long) == before {
			return v
		}
		if v.Kind() == reflect.Interface {
			return inner
		}
		out := reflect.New(v.Type().Elem())
		out.Elem().Set(inner)
		return out
	case reflect.Struct:
		out := reflect.New(v.Type()).Elem()
		out.Set(v)
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out.Field(i).Set(withMarks(v.Field(i), long))
			}
		}
		return out
	case reflect.Slice:
		// A []byte is written as base64, which needs no quoting.
		if v.IsNil() || v.Type().Elem().Kind() == reflect.Uint8 {
			return v
		}
		out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			out.Index(i).Set(withMarks(v.Index(i), long))
		}
		return out
	case reflect.Map:
		if v.IsNil() {
			return v
		}
		out := reflect.MakeMapWithSize(v.Type(), v.Len())
		for _, k := range v.MapKeys() { // the order does not matter: a mark carries its number
			out.SetMapIndex(k, withMarks(v.MapIndex(k), long))
		}
		return out
	}
	return v
}
