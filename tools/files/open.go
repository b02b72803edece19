package files

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// MaxText is the most bytes that Open reads into memory; larger files can be read with OpenRaw but not edited. A change
// holds several copies of a text (before, after, in the journal), so memory use is a multiple of it.
const MaxText = 64 << 20

// Errors that Open and OpenRaw return, wrapped with the path.
var (
	ErrTooBig     = errors.New("too big to edit")
	ErrNotRegular = errors.New("not a regular file")
	ErrIsDir      = errors.New("is a directory, not a file")
	ErrSwapped    = errors.New("was replaced by a symbolic link while it was being opened; try again")
	ErrBlocks     = errors.New("has nothing to read now, and reading it would block")
)

// File is a file as the person sees it.
type File struct {
	Path     string // absolute, clean, as the caller named it
	Real     string // with all symbolic links resolved: where a write lands
	Exists   bool   // on the disk
	Text     string // the open buffer's when it is dirty, else the disk's
	Encoding Encoding
	EOL      EOL
	Hash     string      // sha256 hex of the bytes on the disk; empty when it does not exist
	Mode     fs.FileMode // on the disk
	Version  *int32      // of the open buffer, nil when it is not open
	Dirty    bool        // Text is unsaved
}

// Open reads a whole file. A path that does not exist gives a File with Exists false and no error.
// It never waits: FIFOs, devices and sockets are ErrNotRegular, directories ErrIsDir, files above MaxText ErrTooBig.
func Open(path string, bufs Buffers) (*File, error) {
	real, err := Real(path)
	if err != nil {
		return nil, err
	}
	return OpenAt(path, real, bufs)
}

// OpenAt is Open for a path that was resolved to real before, and whose permission was decided on real: it opens that very file, or
// fails with ErrSwapped when a part of real has become a link since.
func OpenAt(path, real string, bufs Buffers) (*File, error) { return OpenLike(path, real, "", bufs) }

// OpenLike is OpenAt for a file that most likely has the given text: as far as it does, Text is that string and not a copy of it.
func OpenLike(path, real, like string, bufs Buffers) (*File, error) {
	f := &File{Path: filepath.Clean(path), Real: real, Encoding: UTF8}
	r, err := OpenExact(real)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		defer r.Close()
		f.Exists, f.Mode = true, r.Mode
		if r.Size > MaxText {
			return nil, tooBig(f.Path, r.Size)
		}
		var text string
		// The hash is always of the disk's bytes, even where the text below is a buffer's: Commit compares it with the disk.
		if text, f.Hash, err = readText(r, r.Size, like); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Path, err)
		}
		if len(text) > MaxText {
			return nil, tooBig(f.Path, int64(len(text)))
		}
		f.Text, f.Encoding = decode(text)
	}
	// The editor may know the file by the name that was asked for or by the one it resolved.
	if bufs != nil {
		b, ok := bufs.Buffer(f.Path)
		if !ok && real != f.Path {
			b, ok = bufs.Buffer(real)
		}
		if ok {
			v := b.Version
			f.Version = &v
			// A clean buffer follows the disk; a dirty one is what the person sees.
			if b.Dirty || !f.Exists {
				f.Text, f.Dirty = b.Text, true
			}
		}
	}
	f.EOL = EOLOf(f.Text)
	return f, nil
}

// tooBig is ErrTooBig with the figures, for the model.
func tooBig(path string, size int64) error {
	return fmt.Errorf("%s is %w: it has %d bytes, the limit is %d; use the shell for files of this size", path, ErrTooBig, size, MaxText)
}

// readAll reads to the end, or until there are more than MaxText bytes: a file may grow while it is read, and those under
// /proc have size 0. size is only a hint for the buffer.
func readAll(r io.Reader, size int64) ([]byte, error) {
	b := make([]byte, 0, min(size, MaxText)+512)
	for {
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			return nil, err
		}
		if len(b) > MaxText {
			return b, nil
		}
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
	}
}

// readText is readAll for a file that is most likely UTF-8: its bytes are a string at once, since the usual file needs no conversion and
// one of megabytes should not be in memory twice. As long as the bytes are those of like, they are not copied at all. hash is Hash of the
// bytes.
func readText(r io.Reader, size int64, like string) (text, hash string, err error) {
	var sb strings.Builder
	same := like != ""
	n := 0 // bytes of like, while same
	sum := sha256.New()
	buf := make([]byte, min(max(size, 512), 64<<10)+1) // a byte more than a small file has: the first read then sees its end
	for max(n, sb.Len()) <= MaxText {
		k, err := r.Read(buf)
		sum.Write(buf[:k])
		if same && n+k <= len(like) && like[n:n+k] == string(buf[:k]) {
			n += k
		} else {
			if sb.Len() == 0 {
				sb.Grow(int(max(min(size, MaxText), int64(n+k))))
				sb.WriteString(like[:n])
			}
			same, n = false, 0
			sb.Write(buf[:k])
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return "", "", err
		}
	}
	if text = sb.String(); same {
		text = like[:n]
	}
	return text, hex.EncodeToString(sum.Sum(nil)), nil
}

// hashText is Hash of a text, without a copy of it.
func hashText(text string) string {
	if len(text) < 64<<10 { // less than the buffer below
		return Hash([]byte(text))
	}
	sum := sha256.New()
	_, _ = io.Copy(sum, struct{ io.Reader }{strings.NewReader(text)}) // without strings.Reader's WriteTo, which copies all of it
	return hex.EncodeToString(sum.Sum(nil))
}

// Hash is the hash files are compared by: sha256 in hex. Journals and sessions keep it, so it cannot change.
func Hash(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// State is the hash of the text the person sees, as UTF-8. Unlike Hash it stays the same when an unsaved buffer is saved, or when
// the file is stored in another encoding, so the session need not read the file again. For a UTF-8 file without a BOM it is Hash,
// which is known already.
func (f *File) State() string {
	if f.Exists && !f.Dirty && f.Encoding == UTF8 {
		return f.Hash
	}
	return hashText(f.Text)
}

// Raw is an open regular file that never makes its reader wait. It is not safe for concurrent use.
type Raw struct {
	Size int64       // bytes when it was opened; files of /proc say 0 and have text
	Mode fs.FileMode // of the opened file, not of what the path names since
	Info fs.FileInfo
	file *os.File
	read func(p []byte) (int, error) // the system's way to read without waiting
}

// Read implements io.Reader. The error wraps ErrBlocks where there is nothing to read yet.
func (r *Raw) Read(p []byte) (int, error) { return r.read(p) }

// Close closes the file.
func (r *Raw) Close() error { return r.file.Close() }

// kind returns an error that names the kind of file when it is not a regular one: reading a pipe or a device could wait
// for ever, or do something.
func kind(path string, fi fs.FileInfo) error {
	switch m := fi.Mode(); {
	case m.IsRegular():
		return nil
	case m.IsDir():
		return fmt.Errorf("%s %w", path, ErrIsDir)
	case m&fs.ModeNamedPipe != 0:
		return fmt.Errorf("%s is %w but a named pipe", path, ErrNotRegular)
	case m&fs.ModeSocket != 0:
		return fmt.Errorf("%s is %w but a socket", path, ErrNotRegular)
	case m&fs.ModeDevice != 0:
		return fmt.Errorf("%s is %w but a device", path, ErrNotRegular)
	}
	return fmt.Errorf("%s is %w", path, ErrNotRegular)
}
