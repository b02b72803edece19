package guard_test

import (
	"fmt"
	"strings"

	"github.com/pillion-dev/pillion/tools/guard"
)

func ExampleKeyName() {
	for _, name := range []string{"GITHUB_TOKEN", "DB_PWD", "PWD", "TOKENIZERS_PARALLELISM"} {
		fmt.Println(name, guard.KeyName(name))
	}
	// Output:
	// GITHUB_TOKEN true
	// DB_PWD true
	// PWD false
	// TOKENIZERS_PARALLELISM false
}

func ExampleWithoutKeys() {
	env := []string{"HOME=/home/x", "API_KEY=secret", "DATABASE_URL=postgres://x:secret@db/x"}
	fmt.Println(strings.Join(guard.WithoutKeys(env, guard.Bash, "bash"), " "))
	// Output: HOME=/home/x
}
