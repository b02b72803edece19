package web_test

import (
	"fmt"
	"net/netip"

	"github.com/pillion-dev/pillion/tools/web"
)

func ExampleClean() {
	u, err := web.Clean(" go.dev/doc/#install ")
	fmt.Println(u, err)
	_, err = web.Clean("https://go.dev@example.com/")
	fmt.Println(err != nil)
	// Output:
	// https://go.dev/doc/ <nil>
	// true
}

// The second address is this machine's, reached through a NAT64 gateway.
func ExamplePublic() {
	for _, s := range []string{"2606:4700::1", "64:ff9b::7f00:1", "169.254.169.254"} {
		fmt.Println(web.Public(netip.MustParseAddr(s)))
	}
	// Output:
	// true
	// false
	// false
}
