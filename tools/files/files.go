// Package files reads and writes the project's files: text with its encoding and hash, read tracking per session, locks
// per real path, and writes that are atomic over one or many files, also across a crash. It leaves to others what may be
// read or written (tools/permission), merging (tools/replace, tools/change) and editors, whose open buffers come in
// through Buffers.
//
//	f, err := files.Open(path, bufs)   // the text the person sees
//	err = tracker.Check(f)             // read before, unchanged since?
//	err = files.Commit(ctx, ops, &files.DirJournal{Dir: dir})
package files

// Encoding names how a file's bytes hold its text.
type Encoding string

// The encodings that survive an edit byte for byte. Bytes is text that is none of the others: every byte is
// kept as one rune U+0000..U+00FF (Latin-1), so untouched bytes come back as they were.
const (
	UTF8    Encoding = "utf-8"
	UTF8BOM Encoding = "utf-8-bom"
	// LinkTarget is not an encoding of bytes: the text is the path that a symbolic link holds.
	LinkTarget Encoding = "link"
	UTF16LE    Encoding = "utf-16le" // with BOM
	UTF16BE    Encoding = "utf-16be" // with BOM
	Bytes      Encoding = "latin-1"
)

// Buffers are an editor's open documents. Implementations answer from memory.
type Buffers interface {
	// Buffer returns the live text of an open document by absolute path.
	Buffer(path string) (Buffer, bool)
	// Dirty returns the open documents whose text differs from the disk.
	Dirty() []Buffer
}

// Buffer is an open document: unsaved text wins over the disk.
type Buffer struct {
	Path    string // absolute, as the editor names it: links are not resolved
	Text    string // as the editor has it, line endings included
	Version int32  // the editor's number for this text, as in LSP
	Dirty   bool   // not saved
}
