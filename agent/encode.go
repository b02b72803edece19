package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"unicode/utf8"
)

const (
	longText  = 256 << 10 // bytes from which a text is written into its event by itself
	quoteStep = 64 << 10  // bytes of a long text that are quoted at a time
)

// encodeLong is json.Marshal for a value with long texts, in memory for the result and little more. Marshal lets a buffer grow by
// copying, and copies it once more at the end: an event of 32 MB took 200 MB. Here the value is encoded with short marks in the place
// of its long texts, and these are quoted into a result that was made as large as it must be. ok is false when there is no long text.
func encodeLong(v any) (data []byte, ok bool) {
	long := map[int]string{}
	short := withMarks(reflect.ValueOf(v), long)
	if len(long) == 0 {
		return nil, false
	}
	frame, err := json.Marshal(short.Interface())
	if err != nil {
		return nil, false // json.Marshal says the same of v
	}
	size := len(frame)
	for _, s := range long {
		quotedParts(s, func(part []byte) { size += len(part) })
	}
	data = make([]byte, 0, size)
	for rest := frame; ; {
		at := bytes.Index(rest, markHead)
		if at < 0 {
			if len(long) > 0 {
				return nil, false // a mark was left out
			}
			return append(data, rest...), true
		}
		data = append(data, rest[:at]...)
		number, after, _ := bytes.Cut(rest[at+len(markHead):], markTail)
		n, err := strconv.Atoi(string(number))
		s, known := long[n]
		if err != nil || !known {
			return nil, false // another text looks like a mark
		}
		delete(long, n)
		data = append(data, '"')
		quotedParts(s, func(part []byte) { data = append(data, part...) })
		data = append(data, '"')
		rest = after
	}
}

// A mark as JSON. NUL does not occur in what models and tools write; where it does, the value is encoded the usual way.
var (
	markHead = []byte(`"\u0000long text `)
	markTail = []byte(`\u0000"`)
)

// mark stands for the i-th long text.
func mark(i int) string { return fmt.Sprintf("\x00long text %d\x00", i) }

// quotedParts gives a text as JSON, without the quotation marks, part by part. Marshal does the quoting, so that the result is the same.
func quotedParts(s string, yield func([]byte)) {
	var buf bytes.Buffer // kept from part to part: garbage of the size of the text would be the memory this is to save
	enc := json.NewEncoder(&buf)
	for s != "" {
		n := min(len(s), quoteStep)
		for n < len(s) && n > quoteStep-utf8.UTFMax && !utf8.RuneStart(s[n]) {
			n-- // a character is not cut
		}
		buf.Reset()
		_ = enc.Encode(s[:n]) // a string always encodes
		part := bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
		yield(part[1 : len(part)-1])
		s = s[n:]
	}
}

// withMarks is a copy of v in which long texts are replaced by marks; what has none is not copied. Types that encode themselves are
// left as they are.
func withMarks(v reflect.Value, long map[int]string) reflect.Value {
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
		long[len(long)] = v.String()
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
		for _, k := range v.MapKeys() { // Marshal sorts them: the marks may come in another order
			out.SetMapIndex(k, withMarks(v.MapIndex(k), long))
		}
		return out
	}
	return v
}
