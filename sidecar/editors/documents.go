package editors

import (
	"context"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/files"
)

// documents are the files of one editor as it shows them: from the buffers that it reports, else by asking it.
type documents struct {
	ed      *Editor
	unsaved unsavedTexts // unsaved texts the editor was asked for
	answers answers      // what it said a moment ago
	lagging lagging      // files the editor has not loaded again since they were written
}

// MaxAsked is the largest file, in bytes, that a generic editor is asked about; larger ones are read from the disk. The text
// comes as one JSON string in one message.
const MaxAsked = 8 << 20

// file is a document as the editor shows it; ok is false where the disk's text is what it shows. A client that is
// asked answers on the connection that its own requests come from, so the caller must not hold up that connection.
func (d *documents) file(session, path string) (files.Buffer, bool) {
	c := d.ed.Client()
	if c.liveBuffers() {
		return d.ed.Buffers.Buffer(path)
	}
	if !c.readsFiles() {
		return files.Buffer{}, false
	}
	return d.asksFile(d.ed.ctx, session, path)
}

// asksFile asks a generic editor what it shows, or takes what it said a moment ago, and remembers an unsaved text. ok is false where the
// editor shows the disk's text, does not answer, or the file is none that an editor could be asked about.
func (d *documents) asksFile(ctx context.Context, session, path string) (files.Buffer, bool) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > MaxAsked {
		return files.Buffer{}, false // no text on the disk to compare an answer with
	}
	disk, err := os.ReadFile(path)
	if err != nil || !utf8.Valid(disk) {
		return files.Buffer{}, false
	}
	text, ok := d.answers.recent(path, info)
	if !ok {
		text, err = d.readText(ctx, session, path)
	}
	if lags, _ := d.lagging.behind(path, text, string(disk)); lags {
		text = string(disk)
	}
	dirty := err == nil && !sameText(text, string(disk))
	d.unsaved.keep(path, session, text, info, dirty)
	if !dirty {
		return files.Buffer{}, false
	}
	return files.Buffer{Path: path, Text: text, Dirty: true}, true
}

// readText asks the editor for a file's text, as it shows it.
func (d *documents) readText(ctx context.Context, session, path string) (string, error) {
	var got protocol.ReadTextFileResponse
	info, statErr := os.Stat(path) // before the question: what is written meanwhile makes the answer an old one
	err := d.ed.Ask(ctx, protocol.MethodFsReadTextFile, protocol.ReadTextFileRequest{SessionID: session, Path: path}, &got)
	if err == nil && statErr == nil {
		d.answers.keep(path, got.Content, info)
	}
	return got.Content, err
}

// shownText is what an editor that must be asked shows of a file, or the disk's text where the editor only lags behind it. Unlike asksFile
// it always asks: fsWriter compares with it before a write.
func (d *documents) shownText(ctx context.Context, session, path, disk string) (string, error) {
	text, err := d.readText(ctx, session, path)
	if err != nil {
		return "", err
	}
	if lags, _ := d.lagging.behind(path, text, disk); lags {
		return disk, nil
	}
	return text, nil
}

// wroteDisk notes what an applier wrote on the disk behind the editor, so that the editor's old text does not count as unsaved work until
// it has loaded the files again. A file that has another text by now was written by somebody else and is left out.
func (d *documents) wroteDisk(set *change.Set) {
	for _, f := range set.Files {
		if f.Kind != change.Edit {
			continue
		}
		if disk, err := os.ReadFile(f.Path); err == nil && sameText(string(disk), f.New) {
			d.lagging.wrote(f.Path, f.Old, string(disk), false)
		}
	}
}

// knownUnsaved is an unsaved text that is known from an earlier question. After shownFor the editor is asked again, for at most shownWait:
// language servers wait for it. A text is forgotten when the file on the disk has changed since.
func (d *documents) knownUnsaved(path string) (files.Buffer, bool) {
	d.unsaved.mu.Lock()
	t, ok := d.unsaved.texts[path]
	d.unsaved.mu.Unlock()
	if !ok {
		return files.Buffer{}, false
	}
	if fi, err := os.Stat(path); err != nil || !fi.ModTime().Equal(t.changed) || fi.Size() != t.size {
		d.unsaved.keep(path, "", "", nil, false)
		return files.Buffer{}, false
	}
	if time.Since(t.asked) > shownFor {
		ctx, cancel := context.WithTimeout(d.ed.ctx, shownWait)
		defer cancel()
		return d.asksFile(ctx, t.session, path)
	}
	return files.Buffer{Path: path, Text: t.text, Dirty: true}, true
}

// sameText compares what an editor says with the disk, apart from what editors change on the way: line endings, byte order mark, last
// newline.
func sameText(editor, disk string) bool { return editor == disk || plain(editor) == plain(disk) }

// plain is a text without what editors change on their own: byte order mark, line endings, one final newline.
func plain(s string) string {
	s = strings.TrimPrefix(s, "\ufeff")
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	return strings.TrimSuffix(s, "\n")
}
