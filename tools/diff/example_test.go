package diff_test

import (
	"fmt"

	"github.com/pillion-dev/pillion/tools/diff"
)

func ExampleScript_Unified() {
	s := diff.Compute("a\nb\nc\n", "a\nB\nc\nd\n")
	fmt.Print(s.Unified("a/x", "b/x"))
	fmt.Println(s.Stat())
	// Output:
	// --- a/x
	// +++ b/x
	// @@ -1,3 +1,4 @@
	//  a
	// -b
	// +B
	//  c
	// +d
	// 2 1
}

func ExampleScript_NewLine() {
	s := diff.Compute("a\nb\n", "new\na\nb\n")
	fmt.Println(s.NewLine(1)) // 0-based: "b"
	// Output: 2 true
}

func ExampleApply() {
	text := "a\nb\nc\n"
	patch := diff.Unified("x", "x", text, "a\nc\n")
	fmt.Println(diff.Apply("a\nB\nc\n", patch))
	// Output: the patch does not fit the text: line 2
}

func ExampleWords() {
	olds, news := diff.Words("total := count(lines)", "total := count(words)")
	fmt.Println(olds, news) // bytes
	// Output: [{15 20}] [{15 20}]
}
