package change

import "strings"

// Side is what is at a path at one moment, for Compare. The zero value is nothing.
type Side struct {
	Exists   bool
	Text     string // decoded; of a link, where it leads
	Encoding string // in package files' words, or Link
	Mode     uint32 // permission bits; 0: not known, as of a link
}

// Compare is the change of a path between two moments, found by looking at it and not by the tool that made it: what commands did.
// umask is that of the process that will write the file, see File.Mode. ok is false when both sides are the same. The caller sets
// BaseHash, which is of the bytes and not of the text.
//
// Text with zero bytes, a link, and a change of encoding are Binary: they are accepted as a whole, as no hunk could express them.
func Compare(path string, before, after Side, umask uint32) (f File, ok bool) {
	f = File{Path: path, Kind: Edit, Old: before.Text, New: after.Text, Encoding: after.Encoding}
	if before.Encoding != Link {
		f.OldMode = before.Mode
	}
	if !after.Exists {
		f.Encoding = before.Encoding
	}
	both := before.Exists && after.Exists
	links := before.Encoding == Link || after.Encoding == Link
	recoded := both && before.Encoding != after.Encoding
	f.Binary = links || recoded || strings.Contains(f.Old, "\x00") || strings.Contains(f.New, "\x00")
	if f.Binary && both {
		f.OldEncoding = before.Encoding
	}
	switch {
	case !before.Exists && !after.Exists:
		return f, false // made and removed again
	case !after.Exists:
		f.Kind = Delete
		return f, true
	case !before.Exists, before.Encoding == Link && after.Encoding != Link: // a link has no mode to compare with
		if !before.Exists {
			f.Kind = Create
		}
		// A mode that the file gets anyway is not part of the change: the person's umask may be another one.
		if after.Encoding != Link && after.Mode != 0o666&^umask {
			f.Mode = after.Mode
		}
	case !links && after.Mode != before.Mode && before.Mode != 0 && after.Mode != 0:
		f.Mode = after.Mode // chmod +x is all that some commands are for
	}
	return f, f.Kind != Edit || f.Old != f.New || recoded || f.Mode != 0
}
