package patch_test

import (
	"fmt"

	"github.com/pillion-dev/pillion/tools/patch"
)

func ExamplePatch_Apply() {
	p, err := patch.Parse("*** Begin Patch\n*** Update File: a.go\n@@ func main() {\n-\tx()\n+\ty()\n*** End Patch")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Paths()) // what to ask permission for
	changes, err := p.Apply(func(path string) (text string, exists bool, err error) {
		return "func main() {\n\tx()\n}\n", true, nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(changes[0].Kind, changes[0].Path)
	fmt.Print(changes[0].New)
	// Output:
	// [a.go]
	// update a.go
	// func main() {
	// 	y()
	// }
}
