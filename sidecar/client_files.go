package main

import (
	"context"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools/files"
)

// sessionFiles are the open documents of whichever editor has the session.
type sessionFiles struct {
	e       *Editors
	session string
}

// maxAsked is the largest file, in bytes, a generic editor is asked about; larger ones are read from the disk.
const maxAsked = 8 << 20

// Buffer implements files.Buffers. An editor that reports its buffers is answered from memory. A generic one is asked:
// where its text differs from the disk's, it is a buffer with unsaved changes, and that is what the person sees.
func (f sessionFiles) Buffer(path string) (files.Buffer, bool) {
	all, session := f.e.all(f.session)
	return firstDirty(all, func(s *Server) (files.Buffer, bool) { return s.showsFile(session, path) })
}

// showsFile is a document as this editor shows it.
func (s *Server) showsFile(session, path string) (files.Buffer, bool) {
	c := s.currentClient()
	if c.liveBuffers() {
		return s.o.Buffers.Buffer(path)
	}
	if !c.readsFiles() {
		return files.Buffer{}, false
	}
	return s.asksFile(s.ctx, session, path)
}

// asksFile asks a generic editor, and remembers what it says.
func (s *Server) asksFile(ctx context.Context, session, path string) (files.Buffer, bool) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxAsked {
		return files.Buffer{}, false
	}
	disk, err := os.ReadFile(path)
	if err != nil || !utf8.Valid(disk) {
		return files.Buffer{}, false
	}
	text, err := s.shownText(ctx, session, path, string(disk))
	dirty := err == nil && !sameText(text, string(disk))
	s.unsaved.keep(path, session, text, info, dirty)
	if !dirty {
		return files.Buffer{}, false
	}
	return files.Buffer{Path: path, Text: text, Dirty: true}, true
}

// Dirty implements files.Buffers. A generic editor cannot be asked for a list.
func (f sessionFiles) Dirty() []files.Buffer {
	all, _ := f.e.all(f.session)
	var out []files.Buffer
	for _, s := range all {
		if s.currentClient().liveBuffers() {
			out = append(out, s.o.Buffers.Dirty()...)
		}
	}
	return out
}

func (s *Server) readText(ctx context.Context, session, path string) (string, error) {
	var got protocol.ReadTextFileResponse
	err := s.ask(ctx, protocol.MethodFsReadTextFile, protocol.ReadTextFileRequest{SessionID: session, Path: path}, &got)
	return got.Content, err
}

// sameText compares what an editor says with the disk as editors change it on the way: line ends, BOM, last newline.
func sameText(editor, disk string) bool { return editor == disk || plain(editor) == plain(disk) }

func plain(s string) string {
	s = strings.TrimPrefix(s, "\ufeff")
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	return strings.TrimSuffix(s, "\n")
}
