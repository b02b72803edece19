package permission_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/pillion-dev/pillion/tools/permission"
)

// A gate without an Asker rejects what would ask, and says why.
func ExampleGate_Ask() {
	rules := permission.Ruleset{
		{Permission: "edit", Pattern: "*", Action: permission.Ask},
		{Permission: "edit", Pattern: "docs/*", Action: permission.Allow},
		{Permission: "edit", Pattern: "*.lock", Action: permission.Deny, Origin: "pillion.jsonc:4:5"},
	}
	gate := permission.NewGate(permission.GateOptions{Rules: func() permission.Ruleset { return rules }})
	for _, path := range []string{"docs/guide.md", "main.go", "docs/go.lock"} {
		_, err := gate.Ask(context.Background(), permission.Request{Permission: "edit", Patterns: []string{path}})
		fmt.Println(path, err == nil, errors.Is(err, permission.ErrRejected), errors.Is(err, permission.ErrDenied))
	}
	// Output:
	// docs/guide.md true false false
	// main.go false true false
	// docs/go.lock false false true
}

// The last rule that matches decides.
func ExampleRuleset_Evaluate() {
	rules, err := permission.Parse([]byte(`{"bash": {"git *": "allow", "git push *": "ask"}}`), nil)
	if err != nil {
		fmt.Println(err)
	}
	for _, command := range []string{"git status", "git push", "git push origin main", "ls"} {
		action, _ := rules.Evaluate("bash", command)
		fmt.Println(command, "→", action)
	}
	// Output:
	// git status → allow
	// git push → ask
	// git push origin main → ask
	// ls → ask
}

func ExampleMatch() {
	fmt.Println(permission.Match("src/*.go", "src/a/b.go")) // * also stands for "/"
	fmt.Println(permission.Match("ls *", "ls"))
	fmt.Println(permission.Match("?.go", "ab.go"))
	// Output:
	// true
	// true
	// false
}
