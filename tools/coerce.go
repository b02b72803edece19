package tools

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// coerce returns v as one of the wanted JSON types; ok is false when it fits none. Only text is converted ("5", "true", "[1]"):
// models often quote values, and a number or an object has one meaning only.
func coerce(want []string, v any) (any, bool) {
	for _, t := range want {
		if is(t, v) {
			if n, ok := v.(json.Number); ok && t == "integer" {
				return whole(n)
			}
			return v, true
		}
	}
	s, ok := v.(string)
	if !ok {
		return v, false
	}
	s = strings.TrimSpace(s)
	for _, t := range want {
		switch t {
		case "boolean":
			if strings.EqualFold(s, "true") || strings.EqualFold(s, "false") {
				return strings.EqualFold(s, "true"), true
			}
		case "integer", "number", "array", "object":
			// Valid is asked too, because a decoder stops after the first value: "1 2" is not a number.
			got, err := parseDefault(json.RawMessage(s))
			if err != nil || !json.Valid([]byte(s)) || !is(t, got) {
				continue
			}
			if n, ok := got.(json.Number); ok && t == "integer" {
				return whole(n)
			}
			return got, true
		}
	}
	return v, false
}

// is reports whether v has the JSON type; 10.0 is an integer, as JSON Schema has it.
func is(t string, v any) bool {
	switch x := v.(type) {
	case nil:
		return t == "null"
	case bool:
		return t == "boolean"
	case string:
		return t == "string"
	case []any:
		return t == "array"
	case map[string]any:
		return t == "object"
	case json.Number:
		if t == "integer" {
			f, err := x.Float64()
			return err == nil && f == math.Trunc(f)
		}
		return t == "number"
	}
	return false
}

// whole writes an integral number without fraction or exponent, so that it fits a Go integer. One beyond int64 stays as it is; decoding into
// the field then words the error (see mismatch).
func whole(n json.Number) (any, bool) {
	if _, err := n.Int64(); err == nil {
		return n, true
	}
	f, err := n.Float64()
	if err != nil {
		return n, false
	}
	if math.Abs(f) < 1<<63 {
		return json.Number(strconv.FormatInt(int64(f), 10)), true
	}
	return n, true
}

// equal compares an allowed value a, decoded with float64 numbers, with an input b, decoded with json.Number. Lists and objects
// are compared as JSON: == would panic on them.
func equal(a, b any) bool {
	// 1 and 1.0 are one value, which their texts are not.
	if n, ok := b.(json.Number); ok {
		x, err := n.Float64()
		y, isFloat := a.(float64)
		return err == nil && isFloat && x == y
	}
	switch a.(type) {
	case []any, map[string]any:
		return show(a) == show(b)
	}
	switch b.(type) {
	case []any, map[string]any:
		return false
	}
	return a == b
}

// show is a value as it goes into an error: JSON, cut at 80 bytes. A whole file as a wrong value would fill the context.
func show(v any) string {
	raw, err := encode(v)
	if err != nil {
		return "an unprintable value"
	}
	const most = 80 // bytes
	if len(raw) > most {
		cut := most
		for cut > 0 && !utf8.RuneStart(raw[cut]) {
			cut--
		}
		return string(raw[:cut]) + "…"
	}
	return string(raw)
}
