package checkpoint

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/tools/guard"
)

// gitIndex is the index of a Git worktree. It is only read: a file that is unchanged since git checked it out is stored as an object
// already and need not be copied.
type gitIndex struct {
	root    string
	dir     string              // the repository: .git, or where the file .git leads
	written time.Time           // modification time of the index when it was read
	entries map[string]gitEntry // by path relative to root, with slashes
}

// gitEntry is the index entry of a tracked file. Where time and size agree with the disk, the object is the file's content, see clean.
type gitEntry struct {
	mtime int64  // nanoseconds
	size  uint32 // bytes, modulo 2^32
	id    string // of the object, SHA-1 in hex
}

// readIndex reads the index of the worktree at root; nil when there is none, or it is of a kind that is not known.
func readIndex(root string) *gitIndex {
	dir := filepath.Join(root, ".git")
	// "gitdir: " and a path, absolute or relative to the worktree (gitrepository-layout)
	if b, err := os.ReadFile(dir); err == nil { // a worktree or a submodule
		at, ok := strings.CutPrefix(strings.TrimSpace(string(b)), "gitdir: ")
		if !ok {
			return nil
		}
		if dir = at; !filepath.IsAbs(at) {
			dir = filepath.Join(root, at)
		}
	}
	path := filepath.Join(dir, "index")
	info, err := os.Stat(path)
	if err != nil || info.Size() > maxIndex {
		return nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	// The time of the index is what clean compares with.
	x := &gitIndex{root: root, dir: dir, written: info.ModTime()}
	if x.entries, err = parseIndex(b); err != nil {
		return nil
	}
	return x
}

// maxIndex is the largest index, in bytes, that is read; it may be read before every command. With a larger one, files are copied as in
// a folder without Git.
const maxIndex = 64 << 20

// errIndex makes readIndex do without an index.
var errIndex = errors.New("not a git index that can be read")

// parseIndex reads versions 2 to 4 of Git's index with SHA-1 ids (gitformat-index(5)). It leaves out entries that are in conflict, not
// checked out, or no regular files. Extensions after the entries are not read.
func parseIndex(b []byte) (map[string]gitEntry, error) {
	// A header of 12 bytes and a checksum of 20 are the smallest index.
	if len(b) < 32 || string(b[:4]) != "DIRC" {
		return nil, errIndex
	}
	version, n := binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])
	// An entry has 62 bytes at least, so a count that the file cannot hold is refused before the map is made.
	if version < 2 || version > 4 || n > uint32(len(b)/62) {
		return nil, errIndex
	}
	out := make(map[string]gitEntry, n)
	at, name := 12, ""
	for range n {
		if at+62 > len(b) {
			return nil, errIndex
		}
		e := b[at : at+62]
		u32 := func(i int) uint32 { return binary.BigEndian.Uint32(e[i:]) }
		// the two bytes after the id
		flags := binary.BigEndian.Uint16(e[60:])
		head := 62
		skip := false
		if flags&0x4000 != 0 { // extended flags, version 3 and later
			if version < 3 || at+64 > len(b) {
				return nil, errIndex
			}
			head, skip = 64, binary.BigEndian.Uint16(b[at+62:])&0x4000 != 0 // not checked out
		}
		rest := b[at+head:]
		// Version 4 stores how many bytes of the name before are dropped, and what is added.
		if version == 4 {
			strip, k := uvarint(rest)
			if k <= 0 || strip > len(name) {
				return nil, errIndex
			}
			rest = rest[k:]
			end := bytes.IndexByte(rest, 0)
			if end < 0 {
				return nil, errIndex
			}
			name = name[:len(name)-strip] + string(rest[:end])
			at += head + k + end + 1
		} else {
			end := bytes.IndexByte(rest, 0)
			if end < 0 {
				return nil, errIndex
			}
			name = string(rest[:end])
			// An entry is padded with one to eight NULs to a multiple of eight bytes.
			at += (head + end + 8) &^ 7
		}
		// Mode type 1000 (binary) is a regular file; flag bits 12 and 13 are the merge stage, 0 outside conflicts.
		if regular := u32(24)&0xf000 == 0x8000; regular && flags&0x3000 == 0 && !skip {
			// ctime, device, inode and owner are not compared.
			out[name] = gitEntry{mtime: int64(u32(8))*1e9 + int64(u32(12)), size: u32(36), id: hex.EncodeToString(e[40:60])}
		}
	}
	return out, nil
}

// uvarint reads git's offset encoding (gitformat-pack: each continuation adds 1), which is not encoding/binary's. n is 0 when
// b is cut off or the number needs more than five bytes.
func uvarint(b []byte) (v, n int) {
	for i, c := range b {
		if i == 0 {
			v = int(c & 0x7f)
		} else {
			v = (v+1)<<7 | int(c&0x7f)
		}
		if c&0x80 == 0 {
			return v, i + 1
		}
		if i == 4 {
			break
		}
	}
	return 0, 0
}

// clean gives the object with a file's content when the file is certainly unchanged: its size and time are those of the index entry, and
// the index was written later. A file written in the same clock tick as the index could have been changed again within that tick; this
// is Git's own rule for a "racily clean" entry (Documentation/technical/racy-git).
func (x *gitIndex) clean(rel string, s stamp) (id string, ok bool) {
	if x == nil {
		return "", false
	}
	e, known := x.entries[rel]
	if !known || e.mtime != s.mtime || int64(e.size) != s.size || !time.Unix(0, s.mtime).Before(x.written) {
		return "", false
	}
	return e.id, true
}

// objects reads contents from the repository with one git process. want has the object ids, each with the file's length in bytes. Objects
// that cannot be read are left out, and those of another length: the file was changed by a filter at checkout, so the object is not
// its content.
func (x *gitIndex) objects(ctx context.Context, want map[string]int64) map[string]string {
	out := map[string]string{}
	git, err := exec.LookPath("git")
	if err != nil {
		return out
	}
	// The ids come from the index and are hexadecimal, so no line of the input can be read as something else.
	var ids strings.Builder
	for id := range want {
		ids.WriteString(id + "\n")
	}
	cmd := guard.CommandContext(ctx, guard.Helper, git, "-C", x.root, "-c", "core.fsmonitor=false", "cat-file", "--batch")
	// The project's configuration must not start programs (fsmonitor), fetch missing objects over the network, prompt or take
	// locks: this runs beside the person's own git.
	cmd.Env = append(cmd.Env, "GIT_OPTIONAL_LOCKS=0", "GIT_DIR="+x.dir, "GIT_WORK_TREE="+x.root)
	cmd.Stdin = strings.NewReader(ids.String())
	// A grandchild may keep the pipe open after git was killed.
	cmd.WaitDelay = time.Second
	b, err := cmd.Output()
	if err != nil && len(b) == 0 {
		return out
	}
	r := bytes.NewBuffer(b)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return out
		}
		var id, kind string
		var size int64
		// an object that is missing has the word "missing" instead of a size
		if _, err := fmt.Sscanf(line, "%s %s %d", &id, &kind, &size); err != nil || size < 0 || size >= int64(r.Len()) {
			continue // missing
		}
		body := r.Next(int(size))
		// the newline behind the object
		if _, err := r.ReadByte(); err == io.EOF {
			return out
		}
		// A filter such as autocrlf or LFS changes the length of nearly every file.
		if want[id] == size && kind == "blob" {
			out[id] = string(body)
		}
	}
}
