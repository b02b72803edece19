package frontmatter_test

import (
	"fmt"

	"github.com/pillion-dev/pillion/tools/frontmatter"
)

func ExampleParse() {
	doc, err := frontmatter.Parse([]byte("---\nname: review\ndescription: Use when: a change is ready\n---\n\nRead the diff.\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(doc.Text("description"))
	fmt.Println("line", doc.Get("description").Line+doc.Line)
	fmt.Println(doc.Body)
	// Output:
	// Use when: a change is ready
	// line 3
	// Read the diff.
}

func ExamplePlace() {
	_, err := frontmatter.Parse([]byte("---\nname: review\nno second line of dashes\n"))
	fmt.Println(frontmatter.Place(err))
	// Output: 1 the front matter that begins with --- is not closed; add a second line of ---
}
