package editors

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.lsp.dev/jsonrpc2"

	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools/builtin"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/files"
)

// refusing is a generic editor that writes files, but fails or formats at the write with a number, from 1.
type refusing struct {
	t       *testing.T
	refuse  int  // the write that fails
	formats bool // instead it writes something else than it was told
	writes  int
	reads   int
}

func (e *refusing) Call(_ context.Context, method string, params, result any) error {
	answer := any(struct{}{})
	switch p := params.(type) {
	case protocol.ReadTextFileRequest:
		e.reads++
		b, err := os.ReadFile(p.Path)
		if err != nil {
			return err
		}
		answer = protocol.ReadTextFileResponse{Content: string(b)}
	case protocol.WriteTextFileRequest:
		e.writes++
		text := p.Content
		switch {
		case e.writes == e.refuse && e.formats:
			text = strings.ToUpper(text) + "formatted\n"
		case e.writes == e.refuse:
			return jsonrpc2.NewError(jsonrpc2.InternalError, "the user said no") // an answer, not an end of the connection
		}
		if err := os.WriteFile(p.Path, []byte(text), 0o600); err != nil {
			e.t.Error(err)
		}
	default:
		e.t.Errorf("unexpected %s", method)
	}
	b, err := json.Marshal(answer)
	*result.(*json.RawMessage) = b
	return err
}

// toDisk writes as the tools do.
type toDisk struct{ w *builtin.Writer }

func (d toDisk) Apply(ctx context.Context, set *change.Set) error { return d.w.WriteDisk(ctx, set) }

// snapshot is every file of a folder with its text.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = string(b)
	}
	return out
}

// When the editor fails in the middle of a set, all of it is undone: what it wrote before, what it wrote differently, and
// files that were created, deleted and renamed on the disk.
func TestAWriteThatFailsInTheMiddleLeavesNothingBehind(t *testing.T) {
	for _, c := range []struct {
		name    string
		refuse  int
		formats bool
	}{{"the first is refused", 1, false}, {"the second is refused", 2, false}, {"the third is refused", 3, false}, {"the first is formatted", 1, true}, {"the second is formatted", 2, true}, {"the third is formatted", 3, true}} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			path := func(name string) string { return filepath.Join(dir, name) }
			for name, text := range map[string]string{"a.txt": "a\n", "b.txt": "b\n", "c.txt": "c\n", "gone.txt": "gone\n", "old.txt": "old\n"} {
				must(t, os.WriteFile(path(name), []byte(text), 0o600))
			}
			before := snapshot(t, dir)
			list := []change.File{
				{Path: path("a.txt"), Kind: change.Edit, Old: "a\n", New: "A\n"},
				{Path: path("b.txt"), Kind: change.Edit, Old: "b\n", New: "B\n"},
				{Path: path("new.txt"), Kind: change.Create, New: "new\n"},
				{Path: path("gone.txt"), Kind: change.Delete, Old: "gone\n"},
				{Path: path("old.txt"), NewPath: path("moved.txt"), Kind: change.Rename, Old: "old\n", New: "OLD\n"},
				{Path: path("c.txt"), Kind: change.Edit, Old: "c\n", New: "C\n"},
			}
			for i, f := range list {
				if f.Kind != change.Create {
					list[i].BaseHash = files.Hash([]byte(f.Old))
				}
			}
			set := change.New("chg_1", list)
			peer := &refusing{t: t, refuse: c.refuse, formats: c.formats}
			ed := NewEditor(t.Context(), nil, NewBuffers(nil))
			ed.Connect(peer)
			ed.Introduce(NewClient(protocol.InitializeRequest{ClientCapabilities: &protocol.ClientCapabilities{Fs: &protocol.FileSystemCapabilities{ReadTextFile: true, WriteTextFile: true}}}))
			disk := toDisk{builtin.NewWriter(builtin.Env{Cwd: dir, Root: dir})}
			err := fsWriter{ed}.writeFiles(t.Context(), "s", set, disk)
			if err == nil || strings.Contains(err.Error(), "could not be restored") {
				t.Errorf("error: %v", err)
			}
			after := snapshot(t, dir)
			for name, text := range before {
				if after[name] != text {
					t.Errorf("%s is %q, want %q", name, after[name], text)
				}
			}
			for name := range after {
				if _, was := before[name]; !was {
					t.Errorf("%s was left behind", name)
				}
			}
			// The same set is written whole by an editor that writes.
			peer.refuse = 0
			if err := (fsWriter{ed}).writeFiles(t.Context(), "s", set, disk); err != nil {
				t.Fatal(err)
			}
			if got := snapshot(t, dir); got["a.txt"] != "A\n" || got["c.txt"] != "C\n" || got["new.txt"] != "new\n" || got["moved.txt"] != "OLD\n" || len(got) != 5 {
				t.Errorf("written: %q", got)
			}
		})
	}
}

// One edit asks the editor twice: before the write, and for what the write left.
func TestOneEditAsksTheEditorTwice(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.txt")
	must(t, os.WriteFile(path, []byte("a\n"), 0o600))
	peer := &refusing{t: t}
	ed := NewEditor(t.Context(), nil, NewBuffers(nil))
	ed.Connect(peer)
	ed.Introduce(NewClient(protocol.InitializeRequest{ClientCapabilities: &protocol.ClientCapabilities{Fs: &protocol.FileSystemCapabilities{ReadTextFile: true, WriteTextFile: true}}}))
	for range 3 { // a tool opens a file several times
		ed.File("s", path)
	}
	if peer.reads != 1 {
		t.Errorf("one call of a tool asked %d times", peer.reads)
	}
	set := change.New("chg_1", []change.File{{Path: path, Kind: change.Edit, Old: "a\n", New: "A\n"}})
	if err := (fsWriter{ed}).writeFiles(t.Context(), "s", set, nil); err != nil {
		t.Fatal(err)
	}
	ed.File("s", path)
	if peer.reads != 3 || peer.writes != 1 {
		t.Errorf("%d reads and %d writes, want 3 and 1", peer.reads, peer.writes)
	}
}
