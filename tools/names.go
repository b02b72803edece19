package tools

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// WithNames gives parameters the other names that models have for them: parameter → names. A parameter that is there is
// never overwritten.
func WithNames(also map[string][]string) ToolOption { return func(t *Tool) { t.also = also } }

// WithIgnored says in the result which parameters meant nothing, for tools whose parameters no other program has
// settled: who asked for something it did not get should know. Elsewhere they are left out silently.
func WithIgnored() ToolOption { return func(t *Tool) { t.tells = true } }

// rename gives the parameters of a call their own names.
func (t Tool) rename(m map[string]any) {
	if t.also == nil || t.typed == nil {
		return
	}
	// Keys are sorted, so of two names for one parameter the same one counts each time; the other is left as unknown.
	for _, k := range t.strange(m) {
		for _, name := range t.typed.PropertyOrder {
			if v, ok := m[k]; ok && m[name] == nil && t.means(k, name) {
				m[name] = v
				delete(m, k)
			}
		}
	}
}

// means reports whether key is another name of the parameter name; see WithNames.
func (t Tool) means(key, name string) bool {
	return slices.ContainsFunc(t.also[name], func(n string) bool { return fold(n) == fold(key) })
}

// strange are the keys that are not parameters, in order.
func (t Tool) strange(m map[string]any) []string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if !slices.ContainsFunc(t.typed.PropertyOrder, func(name string) bool { return fold(name) == fold(k) }) {
			out = append(out, k)
		}
	}
	return out
}

// ignored is what a result says of parameters that meant nothing; empty where all did.
func (t Tool) ignored(raw json.RawMessage) string {
	if !t.tells || t.typed == nil {
		return ""
	}
	v, _, bad := parse(raw)
	m, ok := v.(map[string]any)
	if bad != nil || !ok {
		return ""
	}
	t.rename(m)
	left := t.strange(m)
	if len(left) == 0 {
		return ""
	}
	for i, k := range left {
		// A model may send a whole text as a key.
		left[i] = fmt.Sprintf("%.60q", k)
	}
	return fmt.Sprintf("\n\n(Ignored: %s. %s takes %s.)", strings.Join(left, ", "), t.ID, strings.Join(t.typed.PropertyOrder, ", "))
}
