package editors

import "strings"

// Profile is what an ACP client does with what it is sent, as far as that is less than the protocol offers. What a
// person approves must be on their screen, so an unknown client has the zero profile, which assumes the least of what it
// shows: the title and the first diff of a permission request, and options by kind alone.
//
// For files it assumes what the protocol promises, that fs/read_text_file gives unsaved text: each write compares that
// text with the disk, and refuseUnsavedElsewhere catches the clients that break the promise in Vim and Emacs.
//
// A client that announces _meta.pillion shows hunks and needs none of what is said here of requests (see
// Client.ShowsHunks).
type Profile struct {
	Diffs       Diffs // which diffs of a permission request are shown
	OptionNames bool  // options are shown with their names; else with words of the client's own for their kind
	TitleOnly   bool  // a request shows nothing but its title: what is approved is said in the conversation before
	PathTitle   bool  // the first location's path is shown as the title of a diff

	HidesThoughts bool // thoughts are folded, or only counted: what a person must read comes as a message

	ReadsDisk         bool // fs/read_text_file gives the file, not the buffer: it cannot tell what is unsaved
	OverwritesBuffers bool // fs/write_text_file replaces the buffer, with what the person had not saved
}

// Diffs says which diffs of a permission request a client draws.
type Diffs int

const (
	FirstDiff Diffs = iota // the first, and perhaps the texts beside it
	AllDiffs
	NoDiffs // of a diff only its path; texts are shown
)

// profiles are by clientInfo.name in lower case. Each row says what it rests on: "run" rows are held by
// test/e2e/screens.test.mjs, which looks at the rendered screen of the unmodified client and writes the table of
// docs/editors.md. A row that was not run may only name what a source or the client's documentation says, and a wrong
// claim in Diffs or OptionNames hides what is approved: leave it out when in doubt.
var profiles = map[string]Profile{
	// Run. It renders content[1] of a request when that is a diff, else kind and title; options are keyed by their kind, so the
	// last of several "always" wins. It reads the disk, then sets the buffer's lines and writes it: an unsaved line is
	// destroyed. Written on disk instead, Neovim notices the newer file and the buffer keeps its unsaved line.
	"codecompanion.nvim": {PathTitle: true, HidesThoughts: true, ReadsDisk: true, OverwritesBuffers: true},
	"codecompanion":      {PathTitle: true, HidesThoughts: true, ReadsDisk: true, OverwritesBuffers: true},
	// Run. It shows nothing of a request but the options' names; above them the card of the tool call with the title that
	// came first, its texts, and the path of each diff.
	"agentic.nvim": {Diffs: NoDiffs, OptionNames: true},
	// Run. It asks "Allow <title>? (y/N)" and offers no "always", so that no scope has to be said.
	"acpx": {TitleOnly: true, OptionNames: true},
	// Source of 0.2.0, not run. A quick pick with the title as its placeholder, and the options' names; cards have a title only.
	"vscode-acp-client": {TitleOnly: true, OptionNames: true},
	// Not run: as its documentation and users describe it. Its panel shows title, diffs and option names.
	"zed": {Diffs: AllDiffs, OptionNames: true},
}

// profileOf gives the zero profile for a name that is not known.
func profileOf(name string) Profile { return profiles[strings.ToLower(name)] }
