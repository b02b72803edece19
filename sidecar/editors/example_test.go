package editors_test

import (
	"fmt"

	"github.com/pillion-dev/pillion/sidecar/editors"
	"github.com/pillion-dev/pillion/sidecar/protocol"
)

// Characters of a position count in UTF-16 code units: an emoji counts two, and four bytes of the text.
func ExamplePositionOffset() {
	text := "a 😀 = 1\nb = 2\n"
	fmt.Println(editors.PositionOffset(text, protocol.Position{Line: 0, Character: 4}))
	fmt.Println(editors.OffsetPosition(text, len("a 😀 = 1\nb")))
	// Output:
	// 6
	// {1 1}
}
