package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/tools/fuzzy"
)

// check compares a tree with the Go type that will hold it and reports unknown keys and wrong values. What is wrong
// is removed from the tree, so that the rest of the file is used. The schema is not involved: its errors would have
// no positions.
// n is at the dotted path, "" for the file as a whole.
func check(n *node, t reflect.Type, path string) []Problem {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t {
	case reflect.TypeFor[Any]():
		return nil
	case reflect.TypeFor[Permission]():
		return checkPermission(n, path)
	case reflect.TypeFor[Plugin]():
		if n.kind == kindString {
			return nil
		}
		if n.kind != kindArray || len(n.elems) == 0 || len(n.elems) > 2 || n.elems[0].kind != kindString || len(n.elems) == 2 && n.elems[1].kind != kindObject {
			return []Problem{wrong(n, path, "a plugin's name, or a list of its name and options")}
		}
		return nil
	// A list of ids is the short form of an object without settings.
	case reflect.TypeFor[Models]():
		if n.kind == kindArray {
			return checkElems(n, reflect.TypeFor[string](), path)
		}
	}
	// Generic types have their arguments in the name, so only the part before the bracket can be compared.
	if strings.HasPrefix(t.Name(), "Switch[") {
		if n.kind == kindBool {
			return nil
		}
		by, _ := t.FieldByName("By")
		return check(n, by.Type, path)
	}
	if strings.HasPrefix(t.Name(), "OrFalse[") {
		if n.kind == kindBool {
			return nil
		}
		value, _ := t.FieldByName("Value")
		return check(n, value.Type, path)
	}
	switch t.Kind() {
	case reflect.Struct:
		if n.kind != kindObject {
			return []Problem{wrong(n, path, "an object")}
		}
		return checkStruct(n, t, path)
	case reflect.Map:
		if n.kind != kindObject {
			return []Problem{wrong(n, path, "an object")}
		}
		return checkMembers(n, func(m member) []Problem { return check(m.value, t.Elem(), join(path, m.key)) })
	case reflect.Slice:
		if n.kind != kindArray {
			return []Problem{wrong(n, path, "a list")}
		}
		return checkElems(n, t.Elem(), path)
	case reflect.String:
		if n.kind != kindString {
			return []Problem{wrong(n, path, "a string")}
		}
	case reflect.Bool:
		if n.kind != kindBool {
			return []Problem{wrong(n, path, "true or false")}
		}
	case reflect.Int:
		if n.kind != kindNumber || !isInteger(n.text) {
			return []Problem{wrong(n, path, "a whole number")}
		}
	case reflect.Float64:
		if n.kind != kindNumber {
			return []Problem{wrong(n, path, "a number")}
		}
	}
	return nil
}

// checkStruct checks an object against the fields of a struct. A key of OpenCode that Pillion does not use gets
// the reason, an unknown one the closest known key. null stands for an absent value, as in encoding/json.
func checkStruct(n *node, t reflect.Type, path string) []Problem {
	fields := fieldsOf(t)
	names := slices.Sorted(maps.Keys(fields))
	return checkMembers(n, func(m member) []Problem {
		f, ok := fields[m.key]
		if _, rest := fields[restName]; !ok && rest {
			return nil
		}
		if !ok {
			if why := unusedSettings[m.key]; path == "" && why != "" {
				return []Problem{m.at.problem("%s is a setting of OpenCode's that is not used here: %s", m.key, why)}
			}
			return []Problem{m.at.problem("unknown key %q%s%s", m.key, in(path), didYouMean(m.key, names))}
		}
		if m.value.kind == kindNull {
			return nil
		}
		ps := check(m.value, f.Type, join(path, m.key))
		// Only for a value of the right type: otherwise one mistake would be reported twice.
		if enum := f.Tag.Get("enum"); enum != "" && len(ps) == 0 {
			values := strings.Split(enum, ",")
			if !slices.Contains(values, m.value.text) {
				ps = append(ps, m.value.problem("%q is not a value of %s; it takes %s%s", m.value.text, join(path, m.key), oneOf(values), didYouMean(m.value.text, values)))
			}
		}
		return ps
	})
}

// fieldsOf are a struct's exported fields by their names in JSON; a field without a json tag has none. The rest field is among them, as
// restName.
func fieldsOf(t reflect.Type) map[string]reflect.StructField {
	fields := map[string]reflect.StructField{}
	for i := range t.NumField() {
		f := t.Field(i)
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); f.IsExported() && name != "" {
			fields[name] = f
		}
	}
	return fields
}

// checkMembers removes the members that f reports. Only those whose own key or value is reported are removed:
// deeper mistakes have been removed where they are, and the rest of their section is used.
func checkMembers(n *node, f func(member) []Problem) []Problem {
	var out []Problem
	kept := n.members[:0:0]
	for _, m := range n.members {
		ps := f(m)
		out = append(out, ps...)
		bad := false
		// Problems carry positions and no nodes, so the position tells whose they are.
		for _, p := range ps {
			if (p.Line == m.value.line && p.Column == m.value.column) || (p.Line == m.at.line && p.Column == m.at.column) {
				bad = true
			}
		}
		if !bad {
			kept = append(kept, m)
		}
	}
	n.members = kept
	return out
}

// checkElems checks the elements of a list and removes the wrong ones. An element with a mistake anywhere in it
// goes as a whole: half an entry of a list has no meaning of its own.
func checkElems(n *node, t reflect.Type, path string) []Problem {
	var out []Problem
	kept := n.elems[:0:0]
	for i, e := range n.elems {
		ps := check(e, t, fmt.Sprintf("%s[%d]", path, i))
		out = append(out, ps...)
		if len(ps) == 0 {
			kept = append(kept, e)
		}
	}
	n.elems = kept
	return out
}

// actionAuto, as the value of the whole permission section, decides commands by their effects (see Permission.Auto).
const actionAuto = "auto"

// actions are the actions of a rule, as people write them.
var actions = []string{"allow", "ask", "deny"}

// checkPermission checks OpenCode's grammar: an action, or an object whose values are actions or {pattern:
// action}. Only the rules with a wrong action are removed; the others of the section apply.
func checkPermission(n *node, path string) []Problem {
	action := func(v *node, where string) []Problem {
		if v.kind == kindString && slices.Contains(actions, v.text) {
			return nil
		}
		if v.kind == kindString {
			return []Problem{v.problem("%q is not an action for %s; write allow, ask or deny%s", v.text, where, didYouMean(v.text, actions))}
		}
		return []Problem{wrong(v, where, `"allow", "ask" or "deny"`)}
	}
	if n.kind != kindObject {
		if n.kind == kindString && n.text == actionAuto && path == "permission" {
			return nil
		}
		return action(n, path)
	}
	return checkMembers(n, func(m member) []Problem {
		if m.value.kind != kindObject {
			return action(m.value, join(path, m.key))
		}
		return checkMembers(m.value, func(p member) []Problem { return action(p.value, join(join(path, m.key), p.key)) })
	})
}

// wrong is the problem of a value that has another type than want.
func wrong(n *node, path, want string) Problem {
	got := kindName(n.kind)
	if n.kind == kindString {
		got = fmt.Sprintf("the string %q", n.text)
	} else if n.kind == kindNumber {
		got = n.text
	}
	if path == "" {
		path = "the file"
	}
	return n.problem("%s takes %s, not %s", path, want, got)
}

// join is the dotted path of a member.
func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// in names the section of an unknown key; "" at the top.
func in(path string) string {
	if path == "" {
		return ""
	}
	return " in " + path
}

// oneOf lists values as prose: "a, b or c".
func oneOf(values []string) string {
	if len(values) < 2 {
		return strings.Join(values, "")
	}
	return strings.Join(values[:len(values)-1], ", ") + " or " + values[len(values)-1]
}

// didYouMean names the closest known word, if at most two letters differ, as the end of a message; "" when there
// is none. Case does not count. d < len(k) keeps it from suggesting a short word of which every letter differs.
func didYouMean(word string, known []string) string {
	best, at := 3, ""
	for _, k := range known {
		if strings.EqualFold(k, word) {
			return fmt.Sprintf("; did you mean %q?", k)
		}
		if d := fuzzy.Slips(strings.ToLower(word), strings.ToLower(k)); d < best && d < len(k) {
			best, at = d, k
		}
	}
	if at == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", at)
}
