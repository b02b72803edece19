package builtin

import (
	"context"
	_ "embed"
	"fmt"
	"path/filepath"
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

// maxSkillFiles is how many files are listed with a skill, so that the model knows of its scripts; the tool list shows the others.
const maxSkillFiles = 10

// Skill loads the instructions of a skill. The tool's description has only the names and what each is for, which keeps the prompt short; the
// model loads the text of those that it needs.
func Skill(e Env) tools.Tool {
	return tools.New("skill", skillText, func(ctx context.Context, p skillParams, call *tools.Call) (tools.Result, error) {
		var names []string
		var found skill.Skill
		ok := false
		if e.Skills != nil {
			for _, s := range e.Skills.Skills() {
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
		body, err := found.Body()
		if err != nil {
			return tools.Result{}, &tools.Error{Kind: "io", Message: fmt.Sprintf("The skill %s cannot be read (%s: %v); continue without it.", p.Name, found.Path, err), Err: err}
		}
		var b strings.Builder
		fmt.Fprintf(&b, "<skill_content name=%q>\n# Skill: %s\n\n%s\n\nBase directory for this skill: %s\nRelative paths in this skill (e.g., scripts/, reference/) are relative to this base directory.", p.Name, p.Name, body, found.Dir)
		files, more := found.Files(maxSkillFiles)
		if len(files) > 0 {
			if more {
				b.WriteString("\nNote: file list is sampled.")
			}
			b.WriteString("\n\n<skill_files>")
			for _, f := range files {
				fmt.Fprintf(&b, "\n<file>%s</file>", filepath.Join(found.Dir, filepath.FromSlash(f)))
			}
			b.WriteString("\n</skill_files>")
		}
		b.WriteString("\n</skill_content>")
		return tools.Result{Title: "Loaded skill: " + p.Name, Output: b.String(), Metadata: map[string]any{"name": p.Name, "dir": found.Dir},
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
		if action, _ := rules.Evaluate("skill", s.Name); action != permission.Deny {
			fmt.Fprintf(&b, "\n- %s: %s", s.Name, oneLine(s.Description, ""))
		}
	}
	if b.Len() == 0 {
		return "", false
	}
	return strings.TrimSpace(skillText) + "\n\nThe skills:" + b.String(), true
}
