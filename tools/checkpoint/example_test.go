package checkpoint_test

import (
	"fmt"
	"os"

	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/checkpoint"
)

// A change set is stored without its texts, which are under their hash; loaded again it is whole, and can be undone.
func ExampleBlobs_Pack() {
	dir, err := os.MkdirTemp("", "checkpoint-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	blobs := &checkpoint.Blobs{Dir: dir}
	long := make([]byte, 64<<10)
	for i := range long {
		long[i] = 'x'
	}
	set := change.New("chg_1", []change.File{{Path: "/p/a.txt", Kind: change.Edit, Old: string(long), New: "short\n"}})
	packed := blobs.Pack(set)
	fmt.Println(len(packed.Files[0].Old), packed.Files[0].OldRef != "")
	whole, err := blobs.Load(packed)
	fmt.Println(len(whole.Files[0].Old), err)
	// Output:
	// 0 true
	// 65536 <nil>
}
