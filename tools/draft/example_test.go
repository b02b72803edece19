package draft_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/pillion-dev/pillion/tools/draft"
)

// What is written in a draft leaves the project as it is. Copy is the view that works everywhere; the caller of the better
// ones runs its commands in the draft and needs no other path.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	project := filepath.Join(dir, "project")
	_ = os.Mkdir(project, 0o700)
	file := filepath.Join(project, "a.txt")
	_ = os.WriteFile(file, []byte("old\n"), 0o600)

	d, err := draft.Create(context.Background(), draft.Options{Dir: filepath.Join(dir, "drafts"), Project: project, View: draft.Copy})
	if err != nil {
		panic(err)
	}
	defer d.Drop()
	start := time.Now()
	_ = os.WriteFile(filepath.Join(d.Root(), "a.txt"), []byte("new\n"), 0o600)
	if err := d.Record(start, nil); err != nil { // what the project had where the draft changed something
		panic(err)
	}
	changes, err := d.Changes(nil)
	if err != nil {
		panic(err)
	}
	for _, c := range changes {
		before, err := c.Before()
		fmt.Printf("%s: %q → %q %v\n", c.Rel, before, c.After(), err)
	}
	text, _ := os.ReadFile(file)
	fmt.Printf("the project has %q\n", text)
	// Output:
	// a.txt: "old\n" → "new\n" <nil>
	// the project has "old\n"
}
