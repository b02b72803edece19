package editors

import "strings"

// Profile is what an ACP client does with what it is sent, as far as that is less than the protocol offers. What a
// person approves must stand on their screen, so a client that nobody has looked at has the zero profile, which takes
// the least for granted: the title and the first diff of a permission request are shown, and options by kind alone.
//
// A client that announces _meta.pillion shows hunks and needs none of this (see Client.ShowsHunks).
type Profile struct {
	AllDiffs    bool // every diff of a request is shown, not only the first
	OptionNames bool // options are shown with their names; else with words of the client's own for their kind

	ReadsDisk         bool // fs/read_text_file gives the file, not the buffer: it cannot tell what is unsaved
	OverwritesBuffers bool // fs/write_text_file replaces the buffer, with what the person had not saved
}

// profiles are by clientInfo.name in lower case. Each row was read off a run of the client, with a command whose
// description lies, an edit of three files, and a file with one unsaved line.
var profiles = map[string]Profile{
	// It renders content[1] of a request when that is a diff, else kind and title; options are keyed by their kind, so the
	// last of several "always" wins. It reads the disk, then sets the buffer's lines and writes it: an unsaved line is
	// destroyed. Written on disk instead, Neovim notices the newer file and the buffer keeps its unsaved line.
	"codecompanion.nvim": {ReadsDisk: true, OverwritesBuffers: true},
	"codecompanion":      {ReadsDisk: true, OverwritesBuffers: true},
	// It shows the tool call's card with the title that came first and all of its diffs; below it the options' names.
	"agentic.nvim": {AllDiffs: true, OptionNames: true},
	// Its panel shows title, diffs and option names.
	"zed": {AllDiffs: true, OptionNames: true},
	// It asks "Allow <title>?" and lists the options by name.
	"acpx": {OptionNames: true},
}

func profileOf(name string) Profile { return profiles[strings.ToLower(name)] }
