package paths_test

import (
	"fmt"

	"github.com/pillion-dev/pillion/tools/paths"
)

// Whole names are compared: "/a/bc" begins with the letters of "/a/b" and is not within it.
func ExampleWithin() {
	fmt.Println(paths.Within("/a/b", "/a/b/c"), paths.Within("/a/b", "/a/b"), paths.Within("/a/b", "/a/bc"), paths.Within("/a/b", "/a/b/../c"))
	// Output: true true false false
}
