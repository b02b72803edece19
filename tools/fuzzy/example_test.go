package fuzzy_test

import (
	"fmt"

	"github.com/pillion-dev/pillion/tools/fuzzy"
)

func ExampleList_Best() {
	list := fuzzy.New([]string{"docs/server.md", "lspbridge/servers.go", "sidecar/server_test.go"})
	best, more := list.Best("srvgo", 10)
	for _, m := range best {
		fmt.Println(list.Name(m.Index), list.Positions("srvgo", m.Index))
	}
	fmt.Println(more)
	// Output:
	// lspbridge/servers.go [10 12 13 18 19]
	// sidecar/server_test.go [8 10 11 20 21]
	// false
}

func ExampleSlips() {
	fmt.Println(fuzzy.Slips("gopls", "golps"), fuzzy.Slips("gopls", "rust-analyzer"))
	// Output: 1 12
}
