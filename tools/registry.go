package tools

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/tools/fuzzy"
	"github.com/pillion-dev/pillion/tools/permission"
)

// OfferOptions say for whom the tools are chosen.
type OfferOptions struct {
	UsesPatch     bool                 // apply_patch instead of edit, multiedit and write; see UsesPatch. A switch for apply_patch overrides it
	Rules         permission.Ruleset   // the agent's effective rules
	Within        []permission.Ruleset // of the sessions it was started from: what one of them hides is hidden
	Switches      map[string]bool      // by tool id or permission, wildcards allowed; the most specific counts
	HasQuestioner bool                 // somebody can answer questions
	HasSpawner    bool                 // sub-agents can be started
	Without       []string             // ids that miss what they need: a key, a server
}

// Offer returns the tools a model sees, sorted by id: the same set is always the same bytes, for prompt caches. Of two tools with one id the
// first counts, so a caller puts what replaces a tool in front of it.
func Offer(all []Tool, o OfferOptions) []Tool {
	if v, ok := o.Switches["apply_patch"]; ok { // said outright: one of the two ways to edit must be left
		o.UsesPatch = v
	}
	seen := make(map[string]bool, len(all))
	out := make([]Tool, 0, len(all))
	for _, t := range all {
		if seen[t.ID] {
			continue
		}
		seen[t.ID] = true
		if !o.fits(t.ID) || !o.on(t) || hidden(t, o.Rules) || slices.ContainsFunc(o.Within, func(r permission.Ruleset) bool { return hidden(t, r) }) {
			continue
		}
		// t is a copy; the caller's tool keeps its own description.
		if t.Describe != nil {
			var ok bool
			if t.Description, ok = t.Describe(o.Rules); !ok {
				continue
			}
		}
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b Tool) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// fits reports whether the session has what the tool needs. invalid is never offered: Unavailable calls it.
func (o OfferOptions) fits(id string) bool {
	switch id {
	case "invalid":
		return false
	case "edit", "write", "multiedit":
		return !o.UsesPatch
	case "apply_patch", "patch":
		return o.UsesPatch
	case "question", "plan_enter", "plan_exit":
		return o.HasQuestioner && !slices.Contains(o.Without, id)
	case "task":
		return o.HasSpawner && !slices.Contains(o.Without, id)
	}
	return !slices.Contains(o.Without, id)
}

// on reads the switches: the tool's own name, then its permission, then wildcards, the longest first. Off wins a tie.
func (o OfferOptions) on(t Tool) bool {
	// A name said in full beats every wildcard; "edit": false switches off all tools that change files.
	for _, name := range []string{t.ID, t.Permission} {
		if v, ok := o.Switches[name]; ok {
			return v
		}
	}
	if t.OptIn {
		return false
	}
	best, on := -1, true
	for pattern, v := range o.Switches {
		if !wild(pattern, t.ID) || len(pattern) < best || len(pattern) == best && !on {
			continue
		}
		best, on = len(pattern), v
	}
	return on
}

// hidden: the last rule about the tool's permission (or its own name) denies everything. Grants are skipped,
// since they never override a configured deny.
func hidden(t Tool, rules permission.Ruleset) bool {
	for _, r := range slices.Backward(rules) {
		if r.Origin == "session" || r.Origin == "project" || r.Managed && r.Action != permission.Deny { // a floor loosens nothing
			continue
		}
		// The last rule decides, as everywhere; a deny of some patterns only leaves the tool useful for the others.
		if wild(r.Permission, cmp.Or(t.Permission, t.ID)) || wild(r.Permission, t.ID) {
			return r.Pattern == "*" && r.Action == permission.Deny
		}
	}
	return false
}

// wild matches a tool's name against a pattern with * and ?. It is not permission.Match: names are not paths, so neither "~" nor a trailing
// " *" has a meaning. It goes back to the last * only, so its time is bounded by the product of the lengths.
func wild(pattern, name string) bool {
	star, mark := -1, 0
	p, n := 0, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, n
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == name[n]):
			p++
			n++
		case star >= 0:
			mark++
			p, n = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// UsesPatch reports whether a model was trained on apply_patch: GPT-5 and later, not the open ones.
func UsesPatch(model string) bool {
	m := strings.ToLower(model)
	return strings.Contains(m, "gpt-") && !strings.Contains(m, "oss") && !strings.Contains(m, "gpt-4") && !strings.Contains(m, "gpt-3")
}

// Repair finds the tool a model meant by a name that is not offered: other case, blanks, quotes, a namespace
// ("functions.read"), channel marks, an old name.
func Repair(name string, offered []Tool) (Tool, bool) {
	// Some open models leave a channel mark such as "<|channel|>" behind the name.
	name, _, _ = strings.Cut(name, "<|")
	name = strings.ToLower(strings.Trim(name, " \t\r\n\"'`"))
	for _, prefix := range []string{"functions.", "tools.", "default_api.", "default_api:"} {
		name = strings.TrimPrefix(name, prefix)
	}
	names := []string{name}
	switch name {
	case "ls":
		names = append(names, "list")
	case "patch", "applypatch":
		names = append(names, "apply_patch")
	}
	for _, n := range names {
		if i := slices.IndexFunc(offered, func(t Tool) bool { return strings.ToLower(t.ID) == n }); i >= 0 {
			return offered[i], true
		}
	}
	return Tool{}, false
}

// Unavailable words the error for a name that Repair could not place, for the tool invalid; also for a group without one of its
// operations.
func Unavailable(name string, offered []Tool) string {
	if all := operations(name, offered); all != nil {
		return fmt.Sprintf("%s needs %s, one of: %s.", name, groupOperation, strings.Join(all, ", "))
	}
	offered = Grouped(offered)
	ids := make([]string, len(offered))
	for i, t := range offered {
		ids[i] = t.ID
	}
	near := ""
	if c := Close(name, offered); len(c) > 0 {
		near = " Did you mean " + strings.Join(c, " or ") + "?"
	}
	return fmt.Sprintf("Model tried to call unavailable tool '%s'.%s Available tools: %s.", name, near, strings.Join(ids, ", "))
}

// Close returns up to three offered names like the one given, the likeliest first.
func Close(name string, offered []Tool) []string {
	type scored struct {
		id string
		d  int
	}
	name = strings.ToLower(name)
	// A longer name is not a slip; comparing it costs the product of the lengths.
	if len(name) > 100 {
		return nil
	}
	var all []scored
	for _, t := range offered {
		id := strings.ToLower(t.ID)
		// A name within the other ("read_file" for read) counts as one slip.
		d := fuzzy.Slips(name, id)
		if len(id) > 2 && len(name) > 2 && (strings.Contains(name, id) || strings.Contains(id, name)) {
			d = min(d, 1)
		}
		if d <= max(1, min(len(name), len(id))/3) {
			all = append(all, scored{t.ID, d})
		}
	}
	slices.SortStableFunc(all, func(a, b scored) int { return cmp.Or(a.d-b.d, cmp.Compare(a.id, b.id)) })
	var out []string
	for _, s := range all[:min(3, len(all))] {
		out = append(out, s.id)
	}
	return out
}
