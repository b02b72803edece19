package config_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/pillion-dev/pillion/sidecar/config"
)

// A project that is not trusted may tighten rules; what would start a program is held back, and a mistake is reported with
// its place. The rest of the file is used.
func ExampleLoad() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "pillion.jsonc")
	_ = os.WriteFile(file, []byte("{\n  \"shell\": \"./evil\",\n  \"steps\": 20,\n  \"reveiw\": \"preview\",\n  \"permission\": {\"bash\": \"deny\"}\n}\n"), 0o600)

	c, problems := config.Load(config.Sources{Cwd: dir, Root: dir})
	fmt.Println("steps", c.Steps, "from", filepath.Base(c.Origin("steps")))
	for _, p := range problems {
		fmt.Printf("line %d: %s\n", p.Line, p.Message)
	}
	for _, h := range c.Held() {
		fmt.Printf("line %d: %s is held back: %s\n", h.Line, h.Setting, h.Reason)
	}
	// Output:
	// steps 20 from pillion.jsonc:3:12
	// line 4: unknown key "reveiw"; did you mean "review"?
	// line 2: shell is held back: it would start a program that the project chose
}
