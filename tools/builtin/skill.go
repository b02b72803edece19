package builtin

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/pillion-dev/pillion/tools"
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
		var names []string
		var found skill.Skill
		ok := false
		if e.Skills != nil {
			for _, s := range e.Skills.Skills() {
				if s.PersonOnly {
					continue
				}
				names = append(names, s.Name)
				if s.Name == p.Name {
					found, ok = s, true
				}
			}
		}
		// Models invent names of skills, so the error lists the existing ones.
		if !ok {
			if len(names) == 0 {
				names = []string{"none"}
			}
			return tools.Result{}, &tools.Error{Kind: "not_found", Message: fmt.Sprintf("Skill %q not found. Available skills: %s", p.Name, strings.Join(names, ", "))}
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

// describeSkills is the tool's description with the skills that the rules let load; without any the
// tool is not offered.
func describeSkills(skills *skill.Finder, rules permission.Ruleset) (string, bool) {
	if skills == nil {
		return "", false
	}
	var b strings.Builder
	for _, s := range skills.Skills() {
		if action, _ := rules.Evaluate("skill", s.Name); action != permission.Deny && !s.PersonOnly {
			fmt.Fprintf(&b, "\n- %s: %s", s.Name, oneLine(s.Description, ""))
		}
	}
	if b.Len() == 0 {
		return "", false
	}
	return strings.TrimSpace(skillText) + "\n\nThe skills:" + b.String(), true
}
