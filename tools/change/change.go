// Package change holds change sets: what a tool proposes to do to files, cut into hunks a person decides on.
// Text in, text out: it knows no disk, no editor and no language server.
//
//	set := change.New("c1", []change.File{{Path: "/p/a.go", Kind: change.Edit, Old: old, New: text}})
//	decided, err := set.Decide(change.Decisions{Hunks: map[string]change.Decision{set.Files[0].Hunks[1].ID: {Kind: change.Reject}}})
//
// The life of a set: New cuts it into hunks, WithVerdict adds what the check says, Decide applies the person's decisions,
// Rebase moves a file's proposal onto a text that changed meanwhile, Undo proposes the way back, Sum adds up what several
// sets did to one file. Writing files, and recording the State, is the caller's.
package change

// Kind says what happens to a file.
type Kind string

// The members of a change set.
const (
	Edit   Kind = "edit"
	Create Kind = "create"
	Delete Kind = "delete"
	Rename Kind = "rename" // NewPath, and the text may change too
)

// Set is one proposal. Its members are written all together or not at all. Its JSON is stored in the event log and sent to
// editors, so names of fields stay. A published set is shared between goroutines and never modified; methods return a new one.
type Set struct {
	ID        string    `json:"id"`
	Title     string    `json:"title,omitempty"`
	Tool      string    `json:"tool,omitempty"`
	SessionID string    `json:"sessionID,omitempty"`
	CallID    string    `json:"callID,omitempty"`
	Files     []File    `json:"files"`
	Verdict   *Verdict  `json:"diagnostics,omitempty"` // nil until checked; the JSON name is older than the word
	Evidence  *Evidence `json:"evidence,omitempty"`    // nil: nothing but the verdict is known
	Source    Source    `json:"source,omitempty"`
	Undoes    string    `json:"undoes,omitempty"`   // id of the set of which this one takes back hunks, where it is one set
	Uncaught  string    `json:"uncaught,omitempty"` // of a command's set, for people: what else the command changed, not recorded here
}

// Source says who made a set.
type Source string

// A set comes from the agent's edit tools; from a command that the agent ran, recorded after the fact and so already written; or
// from the person, who undoes or restores.
const (
	ByAgent   Source = ""
	ByCommand Source = "command"
	ByPerson  Source = "person"
)

// File is one member. Old and New are decoded text (UTF-8, no BOM, line endings as in the file).
type File struct {
	Path string `json:"path"` // absolute
	// NewPath is where a rename leads, absolute; empty for every other kind.
	NewPath     string `json:"newPath,omitempty"`
	Kind        Kind   `json:"kind"`
	Old         string `json:"old"`
	New         string `json:"new"`
	BaseHash    string `json:"baseHash,omitempty"`    // sha256 hex of the bytes Old was read from; empty: did not exist
	BaseBuffer  *int32 `json:"baseVersion,omitempty"` // version of the open buffer Old was read from
	Mode        uint32 `json:"mode,omitempty"`        // permission bits to set; 0 keeps the file's own
	Encoding    string `json:"encoding,omitempty"`    // of the bytes, in package files' words; empty: not known, UTF-8 for new files
	OldMode     uint32 `json:"oldMode,omitempty"`     // permission bits before; 0: not known
	OldEncoding string `json:"oldEncoding,omitempty"` // of a binary's Old, when it is another
	Binary      bool   `json:"binary,omitempty"`      // Old and New are not text to show or to merge: one hunk, or none
	OldRef      string `json:"oldRef,omitempty"`      // Old is kept elsewhere under this name, and empty here; see package checkpoint
	NewRef      string `json:"newRef,omitempty"`
	Takes       []Ref  `json:"takes,omitempty"` // what this member takes back
	// Folders were made for a file that is created, outermost first; they go with it when it is deleted, if nothing else is in them.
	Folders []string `json:"folders,omitempty"`
	Hunks   []Hunk   `json:"hunks"`

	// Real and NewReal are where Path and NewPath led when the change was decided, links resolved; empty: not known. They are for
	// the writer and neither stored nor sent: after a restart the paths are judged anew.
	Real    string `json:"-"`
	NewReal string `json:"-"`

	diffed diffed // the line diff that Hunks were cut from; recomputed when the texts are others
}

// Link is the Encoding of a member that is a symbolic link: its text is the link's target. Such a member is Binary, because two
// targets cannot be merged.
const Link = "link"

// Links reports whether the member is a symbolic link before or after the change.
func (f *File) Links() bool { return f.Encoding == Link || f.OldEncoding == Link }

// Ref names a member of an earlier set, or some of its hunks.
type Ref struct {
	Set   string   `json:"set"`
	Path  string   `json:"path"`            // its Path
	Hunks []string `json:"hunks,omitempty"` // empty: all of it
}

// Hunk is a run of changed lines without context. Lines count from 1; OldStart of a pure insertion is the line before it (git's convention).
type Hunk struct {
	ID       string `json:"id"` // stable across rebases within the set
	OldStart int    `json:"oldStart"`
	OldLines int    `json:"oldLines"`
	NewStart int    `json:"newStart"`
	NewLines int    `json:"newLines"`
	OldText  string `json:"oldText"`
	NewText  string `json:"newText"`
}

// DecisionKind says what becomes of a hunk.
type DecisionKind string

// The decisions of the editor protocol.
const (
	Accept  DecisionKind = "accept"
	Reject  DecisionKind = "reject"
	Replace DecisionKind = "edit" // accept with the person's own text
)

// Decision is what the person said about one hunk.
type Decision struct {
	Kind    DecisionKind `json:"decision"`
	NewText string       `json:"newText,omitempty"` // with Replace
	Comment string       `json:"comment,omitempty"`
}

// Decisions answer a set. A hunk that is missing gets Default (empty: accept).
type Decisions struct {
	Default DecisionKind        `json:"default,omitempty"`
	Hunks   map[string]Decision `json:"hunks,omitempty"` // by hunk id
	Comment string              `json:"comment,omitempty"`
}
