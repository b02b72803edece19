package config

import (
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/tools/permission"
)

// orderRules puts the general rules of a project and those of the person into one order, in which the last match wins. The person's come
// after the project's, so that a project loosens nothing that they have tightened. But where the person allows a permission as a whole
// ({"bash": "allow"}), that stands in the place of Pillion's default: the project's rules for this permission come after it, and then what
// the person has said of it more exactly. Otherwise one such line would switch off every ask and deny that a project has.
//
// written are the project's rules as its files have them, project what counts of them without the person's allow: of a folder that is not
// trusted, less. Behind that allow they count as written, since they can only take from it.
func orderRules(project, written, person permission.Ruleset) permission.Ruleset {
	moved := permission.Ruleset{}
	var behind permission.Ruleset
	take := func(r permission.Rule, about string) {
		if part, ok := narrowed(r, about); ok {
			behind = append(behind, part)
			if part == r {
				moved = append(moved, r)
			}
		}
	}
	for i, general := range person {
		if !allowsAll(general) || replaced(general, person[i+1:]) {
			continue
		}
		for _, r := range written {
			take(r, general.Permission)
		}
		for j, r := range person[i+1:] {
			if !allowsAll(r) && !replaced(r, person[i+1+j+1:]) {
				take(r, general.Permission)
			}
		}
	}
	// A rule that moved as a whole stands once; a rule of a file is known by its place and what it is about.
	isMoved := func(r permission.Rule) bool {
		return slices.ContainsFunc(moved, func(m permission.Rule) bool {
			return m.Origin == r.Origin && m.Permission == r.Permission && m.Pattern == r.Pattern
		})
	}
	return slices.Concat(slices.DeleteFunc(slices.Clone(project), isMoved), slices.DeleteFunc(slices.Clone(person), isMoved), behind)
}

// allowsAll reports whether a rule allows a permission as a whole. One tool of several that share a permission (write, of edit) is not one.
func allowsAll(r permission.Rule) bool {
	part := slices.ContainsFunc([]string{"edit", "todo"}, func(whole string) bool { return r.Permission != whole && standsFor(whole, r.Permission) })
	return r.Pattern == "*" && r.Action == permission.Allow && !part
}

// narrowed is a rule as far as it is about a permission; ok is false if it is about others only.
func narrowed(r permission.Rule, about string) (out permission.Rule, ok bool) {
	if standsFor(about, r.Permission) {
		return r, true
	}
	if !standsFor(r.Permission, about) {
		return r, false
	}
	r.Permission = about
	return r, true
}

// replaced reports whether a later rule decides whatever the rule would.
func replaced(r permission.Rule, later permission.Ruleset) bool {
	return slices.ContainsFunc(later, func(l permission.Rule) bool { return l.Pattern == "*" && standsFor(l.Permission, r.Permission) })
}

// standsFor reports whether rules for the permission name count for everything that those for other count for. A wildcard does for the
// names that it matches, and edit does for the tools that change files, which the evaluation knows.
func standsFor(name, other string) bool {
	if name == "*" || name == other {
		return true
	}
	if strings.ContainsAny(other, "*?") {
		return false
	}
	action, _ := permission.Ruleset{{Permission: name, Pattern: "*", Action: permission.Deny}}.Evaluate(other, "x")
	return action == permission.Deny
}
