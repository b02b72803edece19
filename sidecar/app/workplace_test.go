package app

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/sidecar/config"
)

// What is said at each start fits on a screen, however much there is of it.
func TestNoticesAtAStartAreShort(t *testing.T) {
	for n, want := range map[int]string{1: "x 0", 9: "x 8", 10: "configuration: 2 more mistakes; pillion config check lists them", 500: "configuration: 492 more mistakes; pillion config check lists them"} {
		var problems []config.Problem
		for i := range n {
			problems = append(problems, config.Problem{File: "f", Line: 1, Column: 1, Message: fmt.Sprintf("x %d", i)})
		}
		var out strings.Builder
		Warn(&out, problems)
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) > 9 || len(lines) != min(n, 9) || !strings.HasSuffix(lines[len(lines)-1], want) {
			t.Errorf("%d mistakes: %q", n, lines)
		}
	}
	if got := replaced([]string{"grep"}); got != "The custom tool grep replaces the built-in tool of that name." {
		t.Error(got)
	}
	if got := replaced([]string{"glob", "grep"}); got != "The custom tools glob, grep replace the built-in tools of these names." {
		t.Error(got)
	}
}

func TestAnIndexKeepsNothingOfFilesWithKeys(t *testing.T) {
	withheld := withheldFromIndex()
	for rel, want := range map[string]bool{
		".env": true, "a/.env.local": true, ".envrc": true, "deploy/ID_RSA": true, "certs/server.key": true, ".npmrc": true, "credentials.json": true,
		".env.example": false, "main.go": false, "keys.go": false, "environment.md": false,
	} {
		if got := withheld(rel); got != want {
			t.Errorf("%s: %v", rel, got)
		}
	}
}
