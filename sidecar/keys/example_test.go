package keys_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pillion-dev/pillion/sidecar/keys"
)

// Without a keyring keys go into a file that only their owner can read. A lent key (from an editor's secret store) is kept
// in memory and wins while the process lives.
func ExampleStore() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	s := &keys.Store{File: filepath.Join(dir, "auth.json")}
	where, err := s.Set("anthropic", "sk-ant-stored")
	fmt.Println(where == keys.File, err)
	info, _ := os.Stat(s.File)
	fmt.Println(info.Mode().Perm())

	_ = s.Lend("anthropic", "sk-ant-lent")
	fmt.Println(s.All()["anthropic"].Value)
	_ = s.Lend("anthropic", "")
	fmt.Println(s.All()["anthropic"].Value)

	_ = s.Remove("anthropic")
	fmt.Println(errors.Is(s.Remove("anthropic"), keys.ErrNone))
	// Output:
	// true <nil>
	// -rw-------
	// sk-ant-lent
	// sk-ant-stored
	// true
}
