package skill_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/pillion-dev/pillion/tools/skill"
)

func ExampleFinder() {
	root, err := os.MkdirTemp("", "skill")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(root)
	dir := filepath.Join(root, ".claude", "skills", "release")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		fmt.Println(err)
		return
	}
	text := "---\nname: release\ndescription: Use when a version is published.\n---\n\nRun make dist.\n"
	if err := os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte(text), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	f := skill.New(skill.Places{Cwd: root, Root: root})
	for _, s := range f.Skills() {
		body, err := s.Body()
		fmt.Println(s.Name+":", s.Description, body, err)
	}
	// Output: release: Use when a version is published. Run make dist. <nil>
}
