package change_test

import (
	"fmt"
	"path/filepath"

	"github.com/pillion-dev/pillion/tools/change"
)

// The person accepts one hunk and rejects the other; the report is what the model reads.
func ExampleSet_Decide() {
	set := change.New("c1", []change.File{{Path: "/p/a.txt", Kind: change.Edit, Old: "one\ntwo\nthree\n", New: "ONE\ntwo\nTHREE\n"}})
	for _, h := range set.Files[0].Hunks {
		fmt.Printf("%s: line %d\n", h.ID, h.OldStart)
	}
	decided, err := set.Decide(change.Decisions{Hunks: map[string]change.Decision{"1.2": {Kind: change.Reject, Comment: "keep it"}}})
	if err != nil {
		fmt.Println(err)
	}
	fmt.Print(decided.Set.Files[0].New)
	fmt.Println(decided.Report(filepath.Base))
	// Output:
	// 1.1: line 1
	// 1.2: line 3
	// ONE
	// two
	// three
	// The user rejected 1 of 2 changes. These were NOT written; do not propose them again unchanged:
	// @@ a.txt line 3 @@
	// -three
	// +THREE
	// The user's comments:
	// a.txt line 3: keep it
}

// Two changes of different lines merge; two of the same line conflict.
func ExampleMerge() {
	base := "a\nb\nc\n"
	text, conflicts := change.Merge(base, "A\nb\nc\n", "a\nb\nC\n", true)
	fmt.Printf("%q %d\n", text, len(conflicts))
	_, conflicts = change.Merge(base, "A\nb\nc\n", "x\nb\nc\n", true)
	fmt.Println(conflicts[0].Line, conflicts[0].Ours == "A\n", conflicts[0].Theirs == "x\n")
	// Output:
	// "A\nb\nC\n" 0
	// 1 true true
}

// An undo keeps what the person wrote elsewhere in the file since.
func ExampleSet_Undo() {
	set := change.New("c1", []change.File{{Path: "/p/a.txt", Kind: change.Edit, Old: "one\ntwo\nthree\n", New: "ONE\ntwo\nthree\n"}})
	undo, err := set.Undo("c2", nil, func(string) (string, bool) { return "ONE\ntwo\nthree\nfour\n", true })
	if err != nil {
		fmt.Println(err)
	}
	fmt.Print(undo.Files[0].New)
	// Output:
	// one
	// two
	// three
	// four
}
