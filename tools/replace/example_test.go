package replace_test

import (
	"errors"
	"fmt"

	"github.com/pillion-dev/pillion/tools/replace"
)

// The quotation lacks the file's indentation: it is found all the same, and the new text gets it.
func ExampleApply() {
	r, err := replace.Apply("func f() {\n\ta := 1\n}\n", "a := 1 ", "a := 2", false)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(r.Text)
	fmt.Println(r.Stage, r.Spans[0].StartLine)
	// Output:
	// func f() {
	// 	a := 2
	// }
	// line_trimmed 2
}

// Two places match, so nothing is changed; the error says where they are.
func ExampleError() {
	_, err := replace.Apply("x = 1\ny = 2\nx = 1\n", "x = 1", "x = 3", false)
	var e *replace.Error
	if errors.As(err, &e) {
		fmt.Println(e.Kind, e.Lines)
	}
	// Output: multiple [1 3]
}

func ExampleMerge() {
	quoted := []string{"a()", "b()"}
	have := []string{"\ta()", "\taudit()", "\tb()"}
	wanted := []string{"a()", "c()"}
	lines, ok := replace.Merge(quoted, have, wanted)
	for _, l := range lines {
		fmt.Printf("%q from %d\n", l.Text, l.From)
	}
	fmt.Println(ok)
	// Output:
	// "\ta()" from 0
	// "\taudit()" from 1
	// "\tc()" from -1
	// true
}
