package builtin

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/fuzzy"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/skill"
)

//go:embed skill.txt
var skillText string

// skillParams name the skill as the description lists it.
type skillParams struct {
	Name string `json:"name" minLength:"1"`
}

// Skill loads the instructions of a skill. The tool's description has only the names and what each is for, which keeps the prompt short; the
// model loads the text of those that it needs.
func Skill(e Env) tools.Tool {
	return tools.New("skill", skillText, func(ctx context.Context, p skillParams, call *tools.Call) (tools.Result, error) {
		var all []fuzzy.Described
		var found skill.Skill
		ok := false
		if e.Skills != nil {
			for _, s := range e.Skills.Skills() {
				if s.PersonOnly {
					continue
				}
				all = append(all, fuzzy.Described{Name: s.Name, Text: oneLine(s.Description, "")})
				if s.Name == p.Name {
					found, ok = s, true
				}
			}
		}
		if !ok {
			return skillsLike(p.Name, all)
		}
		// By name, so a rule can deny one skill and allow the others.
		err := ask(ctx, call, permission.Request{Permission: "skill", Patterns: []string{p.Name}, Always: []string{p.Name}, Title: "Load the skill " + p.Name})
		if err != nil {
			return tools.Result{}, err
		}
		text, err := found.Text()
		if err != nil {
			return tools.Result{}, &tools.Error{Kind: "io", Message: fmt.Sprintf("The skill %s cannot be read (%s: %v); continue without it.", p.Name, found.Path, err), Err: err}
		}
		return tools.Result{Title: "Loaded skill: " + p.Name, Output: text, Metadata: map[string]any{"name": p.Name, "dir": found.Dir},
			Locations: []tools.Location{{Path: found.Path}}}, nil
	}, tools.WithReadOnly(), tools.WithKind(tools.KindRead), tools.WithDescribe(func(rules permission.Ruleset) (string, bool) { return describeSkills(e.Skills, rules) }))
}

// maxLike is how many skills a search by words names.
const maxLike = 10

// skillsLike answers a call whose name is no skill's. Models invent names, so the error lists the existing ones. Where the description could
// not list all of them the name may be words of what is needed, as it says there.
func skillsLike(query string, all []fuzzy.Described) (tools.Result, error) {
	fit := fuzzy.ByWords(query, all)
	if _, left := listing(all, maxListing); left > 0 && len(fit) > 0 {
		fit = fit[:min(len(fit), maxLike)]
		like := make([]fuzzy.Described, len(fit))
		for i, j := range fit {
			like[i] = all[j]
		}
		list, _ := listing(like, maxListing)
		return tools.Result{Title: query, Output: "No skill has this name. Those that fit its words best:" + list, Metadata: map[string]any{"count": len(fit)}}, nil
	}
	var names []string
	for _, d := range all {
		names = append(names, d.Name)
	}
	if len(names) == 0 {
		names = []string{"none"}
	}
	return tools.Result{}, &tools.Error{Kind: "not_found", Message: fmt.Sprintf("Skill %q not found. Available skills: %s", query, tools.Cut(strings.Join(names, ", "), maxListing/4))}
}

// describeSkills is the tool's description with the skills that the rules let load; without any the
// tool is not offered.
func describeSkills(skills *skill.Finder, rules permission.Ruleset) (string, bool) {
	if skills == nil {
		return "", false
	}
	var all []fuzzy.Described
	for _, s := range skills.Skills() {
		if action, _ := rules.Evaluate("skill", s.Name); action != permission.Deny && !s.PersonOnly {
			all = append(all, fuzzy.Described{Name: s.Name, Text: oneLine(s.Description, "")})
		}
	}
	if len(all) == 0 {
		return "", false
	}
	list, left := listing(all, maxListing)
	if left > 0 {
		list += fmt.Sprintf("\n%d more are not listed. With a few words of what you need as the name, the tool answers with the skills that fit.", left)
	}
	return strings.TrimSpace(skillText) + "\n\nThe skills:" + list, true
}
