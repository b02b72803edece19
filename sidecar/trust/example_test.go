package trust_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/pillion-dev/pillion/sidecar/trust"
)

// A decision about a folder with everything below it covers the projects in there, also by another name of the folder.
func ExampleStore() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	project, link := filepath.Join(dir, "work", "shop"), filepath.Join(dir, "link")
	_ = os.MkdirAll(project, 0o700)
	_ = os.Symlink(filepath.Join(dir, "work"), link)

	s := &trust.Store{Dir: filepath.Join(dir, "trust")}
	fmt.Println(s.Trusted(project))
	if err := s.Trust(filepath.Join(dir, "work"), true); err != nil {
		panic(err)
	}
	fmt.Println(s.Trusted(project), s.Trusted(filepath.Join(link, "shop")))
	revoked, _ := s.Revoke(filepath.Join(dir, "work"))
	fmt.Println(revoked, s.Trusted(project))
	// Output:
	// false
	// true true
	// true false
}
