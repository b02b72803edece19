package editors

import "strings"

// quirks are what a generic ACP editor does differently from what it announces. Each was measured with a file that has
// one unsaved line.
type quirks struct {
	readsDisk         bool // fs/read_text_file gives the file, not the buffer: it cannot tell us what is unsaved
	overwritesBuffers bool // fs/write_text_file replaces the buffer, with what the person had not saved
}

// quirksOf looks an editor up by clientInfo.name.
func quirksOf(name string) quirks {
	switch strings.ToLower(name) {
	case "codecompanion.nvim", "codecompanion":
		// Reads the disk, then sets the buffer's lines and writes it: an unsaved line is destroyed. Written on disk
		// instead, Neovim notices the newer file and the buffer keeps its unsaved line.
		return quirks{readsDisk: true, overwritesBuffers: true}
	}
	return quirks{}
}
