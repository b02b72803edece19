package patch

import "io/fs"

// Kinds of refusal; stable, they appear in machine output.
const (
	EmptyText           = "empty_text"
	BadEnvelope         = "bad_envelope"
	EmptyPatch          = "empty_patch"
	NoHunks             = "no_hunks"
	ContextNotFound     = "context_not_found"
	LinesNotFound       = "lines_not_found"
	UpdateTargetMissing = "update_target_missing"
	DeleteFailed        = "delete_failed"
	WriteFailed         = "write_failed" // for the one who writes; never returned here
	Exists              = "exists"
	Conflict            = "conflict" // the hunk changes lines that are not as it quotes them
)

// Error says which part of a patch cannot be done and what to do instead. Message is for the model.
type Error struct {
	Kind    string // one of the constants above
	Path    string // the file concerned, as the patch names it; empty for the whole patch
	Message string
	Line    int   // 1-based line of the patch text, 0 when unknown
	Lines   []int // 1-based lines of the file: the nearest miss, or the places that match alike
}

// Error is Message, which has the line of the patch and the next step in it.
func (e *Error) Error() string { return e.Message }

// Kind is what a patch does to a file.
type Kind string

// The kinds of changes. The strings appear in machine output.
const (
	Add    Kind = "add"    // the file must not exist
	Delete Kind = "delete" // the file must exist
	Update Kind = "update"
	Move   Kind = "move" // to NewPath, with or without changes to the text
)

// Patch is a parsed patch: one Op for each section, in the order of the text.
type Patch struct {
	Ops     []Op
	Unified bool // a unified diff, not a *** Begin Patch envelope

	// Key maps every spelling of a path to one name, so that "a.go" and "/project/a.go" are one file to Apply. The caller, who knows
	// directories and links, sets it between Parse and Apply; nil only cleans the paths (./ and ..).
	Key func(path string) string

	// Literals finds the literals of several lines in a file's text, see replace.Literals. The caller, who knows languages, sets it likewise;
	// nil: not known.
	Literals func(path, text string) (literals [][2]int, ok bool)
}

// Op is one section. Parse fills it; Apply does not change it.
type Op struct {
	Kind    Kind
	Path    string
	NewPath string // Move (and a copy's Add): the other path
	Copy    bool   // git's "copy from": Path stays, NewPath is added
	Hunks   []Hunk
	Content string      // Add of an envelope: the whole text
	Mode    fs.FileMode // permission bits git states, 0 when it states none
	Instead string      // plain diff -u with two names: the file meant when there is none at Path
	Line    int         // 1-based line of the section in the patch text
}

// Hunk is one change within a file. Line numbers in it are hints: the lines decide, see updater.place. The order of Lines is
// that of the patch.
type Hunk struct {
	Context  []string // the texts after @@, outermost first
	Lines    []Line
	EOF      bool // *** End of File: the hunk's last line is the file's last
	OldStart int  // 1-based line a unified diff states, 0 when unknown
	Top      bool // a unified diff states line 0: before the first line
	Line     int  // 1-based line of the hunk in the patch text
}

// Line is one line of a hunk.
type Line struct {
	Op    byte   // ' ' stays, '-' goes, '+' comes
	Text  string // without its line ending
	NoEOL bool   // "\ No newline at end of file" follows
	Bare  bool   // an empty line that stays, without the blank in front: it may be a line of the file, or only space in the patch
}

// FileChange is what Apply wants done to one file. Old and New are whole texts; Old is what the caller must still find
// when it writes.
type FileChange struct {
	Kind     Kind
	Path     string
	NewPath  string // Move: where it goes
	Old, New string
	Mode     fs.FileMode // permission bits to set, 0: keep
	Loose    []Loose     // the places that were not exactly as the patch quotes them
}

// Loose is a place in a file that a hunk does not quote exactly. The result shows it to the model, so that its next hunk is exact.
type Loose struct {
	First, Last int    // 1-based lines of the file as it was, both included
	Text        string // those lines, without the last line ending
	Reworded    bool   // they differ in more than white space and typography
}

// Paths lists every path the patch touches, both ends of a move, in order, each once: what to ask permission for.
func (p *Patch) Paths() []string {
	var out []string
	seen := map[string]bool{"": true}
	for _, op := range p.Ops {
		for _, path := range []string{op.Path, op.NewPath, op.Instead} {
			if !seen[path] {
				seen[path] = true
				out = append(out, path)
			}
		}
	}
	return out
}
