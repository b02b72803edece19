package editors

import "strings"

// Profile is what an ACP client does with what it is sent, as far as that is less than the protocol offers. What a
// person approves must be on their screen, so an unknown client has the zero profile, which assumes the least of what it
// shows: the title and the first diff of a permission request, and options by kind alone.
//
// What it assumes of files is the protocol's word, that fs/read_text_file gives unsaved text: each write compares that
// text with the disk, and refuseUnsavedElsewhere catches the clients that break the promise in Vim and Emacs.
//
// A client that announces _meta.pillion shows hunks and needs none of the first two (see Client.ShowsHunks).
type Profile struct {
	AllDiffs    bool // every diff of a request is shown, not only the first
	OptionNames bool // options are shown with their names; else with words of the client's own for their kind

	ReadsDisk         bool // fs/read_text_file gives the file, not the buffer: it cannot tell what is unsaved
	OverwritesBuffers bool // fs/write_text_file replaces the buffer, with what the person had not saved
}

// profiles are by clientInfo.name in lower case. Each row says what it rests on. The rows of Neovim's clients were read
// in their sources; extension/nvim/tests/clients_test.lua runs both clients for a turn with Pillion's own review, so not
// for the rendering that a row claims. A row that was not run may only name what a source or the client's documentation
// says, and a wrong true in AllDiffs or OptionNames hides what is approved: leave it false when in doubt.
var profiles = map[string]Profile{
	// Source. It renders content[1] of a request when that is a diff, else kind and title; options are keyed by their kind, so the
	// last of several "always" wins. It reads the disk, then sets the buffer's lines and writes it: an unsaved line is
	// destroyed. Written on disk instead, Neovim notices the newer file and the buffer keeps its unsaved line.
	"codecompanion.nvim": {ReadsDisk: true, OverwritesBuffers: true},
	"codecompanion":      {ReadsDisk: true, OverwritesBuffers: true},
	// Source. It shows the tool call's card with the title that came first and all of its diffs; below it the options' names.
	"agentic.nvim": {AllDiffs: true, OptionNames: true},
	// Not run: as its users describe it. Its panel shows title, diffs and option names.
	"zed": {AllDiffs: true, OptionNames: true},
	// Turns are run in test/e2e/acpx.test.mjs, its question on a terminal is not: as described. It asks "Allow <title>?" and lists the options by name.
	"acpx": {OptionNames: true},
}

func profileOf(name string) Profile { return profiles[strings.ToLower(name)] }
