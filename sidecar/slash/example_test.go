package slash_test

import (
	"fmt"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/sidecar/config"
	"github.com/pillion-dev/pillion/sidecar/slash"
)

// A person's template may replace a built-in command. What names no command goes to the model as it is.
func ExampleParse() {
	all := slash.WithBuiltin([]slash.Command{slash.Template("review", config.Command{Template: "Review $1.", Description: "Review a branch"}),
		slash.Template("release/beta", config.Command{Template: "Publish a beta.", Description: "Publish a beta"})})
	for _, text := range []string{"/review main", "/fix shop/", "/release:beta", "/usr/bin/env is missing"} {
		c, args, ok := slash.Parse([]provider.Part{{Type: provider.PartText, Text: text}}, all)
		if !ok {
			fmt.Println("a prompt:", text)
			continue
		}
		fmt.Printf("/%s (%s) with %q\n", c.Name, c.Description, args)
	}
	// Output:
	// /review (Review a branch) with "main"
	// /fix (Fix the errors the language servers report) with "shop/"
	// /release/beta (Publish a beta) with ""
	// a prompt: /usr/bin/env is missing
}
