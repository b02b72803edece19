package files

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/states.txt anew")

// What recovery does is recorded for every kind of step and everything that can be at its names after a crash and after other programs have
// been there, alone and beside a second step that was done, can be done or cannot be done any more. A text that is neither the old nor the
// new one is somebody's work: whatever else the record says, the test wants to find it again.
func TestRecoveryOfEveryState(t *testing.T) {
	const somebody = "somebody's"
	things := map[string]func(path string) error{
		"none": func(string) error { return nil },
		"dir":  func(p string) error { return os.Mkdir(p, 0o777) },
		"link": func(p string) error { return os.Symlink("old", p) },
	}
	for _, text := range []string{"old text", "new, longer text", "new,", "new,text", "new, lot", somebody} {
		things[text] = func(p string) error { return os.WriteFile(p, []byte(text), 0o644) }
	}
	at := func(names ...string) []string { return names }
	none := at("none")
	kinds := []struct {
		kind                   string
		path, to, temp, backup []string
	}{
		{stepCreate, at("none", "new, longer text", somebody, "dir", "link"), none, at("none", "new, longer text", "new,", "link"), none},
		{stepReplace, at("none", "old text", "new, longer text", somebody, "dir", "link"), none, at("none", "new, longer text", "new,"), at("none", "old text")},
		{stepRemove, at("none", "old text", somebody, "dir"), none, none, at("none", "old text")},
		{stepRename, at("none", "old text", somebody), at("none", "old text", somebody, "dir"), none, none},
		{stepInPlace, at("none", "old text", "new, longer text", "new,", "new,text", "new, lot", somebody, "dir"), none, none, none},
		{stepLink, at("none", "link", somebody, "dir"), none, none, none},
	}
	var record []string
	for _, k := range kinds {
		for _, path := range k.path {
			for _, to := range k.to {
				for _, temp := range k.temp {
					for _, backup := range k.backup {
						for _, second := range []string{"", "done", "ready", "stuck"} {
							dir := t.TempDir()
							in := func(name string) string { return filepath.Join(dir, name) }
							s := step{Kind: k.kind, Path: in("f"), OldHash: Hash([]byte("old text")), NewHash: Hash([]byte("new, longer text"))}
							names := map[string]string{"f": path, "to": to, "temp": temp, "backup": backup}
							switch k.kind {
							case stepCreate:
								s.Temp, s.OldHash = in("temp"), ""
							case stepReplace:
								s.Temp, s.Backup = in("temp"), in("backup")
							case stepRemove:
								s.Backup, s.NewHash = in("backup"), ""
							case stepRename:
								s.To, s.NewHash = in("to"), ""
							case stepInPlace:
								s.Old, s.New = []byte("old text"), []byte("new, longer text")
							case stepLink:
								s.Target, s.OldHash, s.NewHash = "old", "", ""
							}
							for name, what := range names {
								if err := things[what](in(name)); err != nil {
									t.Fatal(err)
								}
							}
							p := &plan{ID: "w1", Steps: []step{s}, Dirs: []string{in("made")}}
							if err := os.Mkdir(in("made"), 0o777); err != nil {
								t.Fatal(err)
							}
							if second != "" {
								p.Steps = append(p.Steps, step{Kind: stepCreate, Path: in("g"), Temp: in("gtemp"), NewHash: Hash([]byte("g"))})
								if err := os.WriteFile(in(map[string]string{"done": "g", "ready": "gtemp", "stuck": "elsewhere"}[second]), []byte("g"), 0o600); err != nil {
									t.Fatal(err)
								}
							}
							before := listed(dir)
							r, err := p.recover()
							after := listed(dir)
							line := fmt.Sprintf("%s f=%q to=%q temp=%q backup=%q second=%s: ", k.kind, path, to, temp, backup, cmp.Or(second, "no"))
							line += fmt.Sprintf("%s %s %v → %s", r.Outcome, r.Detail, reasonOf(err), after)
							record = append(record, strings.ReplaceAll(line, dir+"/", ""))
							if strings.Contains(before, somebody) && !strings.Contains(after, somebody) {
								t.Errorf("somebody's text is lost: %s", line)
							}
							// A replacement whose temporary file is still there has not happened: the person has the old text, or has changed it.
							replaced := k.kind != stepReplace || temp == "none"
							if replaced && strings.Contains(before, `"old text"`) && !strings.Contains(after, `"old text"`) && r.Outcome != Finished {
								t.Errorf("the old text is lost: %s", line)
							}
							// After an error recovery is tried again at the next start, and finds the same.
							if err == nil {
								continue
							}
							p.dirs = Anchors{}
							if _, again := p.recover(); reasonOf(again) != reasonOf(err) {
								t.Errorf("again %v: %s", again, line)
							}
						}
					}
				}
			}
		}
	}
	const golden = "testdata/states.txt"
	if *update {
		if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(golden, []byte(strings.Join(record, "\n")+"\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	for i := range max(len(want), len(record)) {
		if i >= len(want) || i >= len(record) || want[i] != record[i] {
			t.Fatalf("line %d of %s (%d lines; %d now)\nwas %s\nis  %s", i+1, golden, len(want), len(record), want[min(i, len(want)-1)], record[min(i, len(record)-1)])
		}
	}
}

// listed is everything below a folder, with texts and where links lead.
func listed(dir string) string {
	var out []string
	_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		name, _ := filepath.Rel(dir, p)
		switch b, _ := os.ReadFile(p); {
		case d.IsDir():
			name += "/"
		case d.Type()&fs.ModeSymlink != 0:
			to, _ := os.Readlink(p)
			name += "→" + to
		default:
			name += fmt.Sprintf("=%q", b)
		}
		out = append(out, name)
		return nil
	})
	slices.Sort(out)
	return strings.Join(out, " ")
}

// reasonOf is an error without the descriptor numbers in its paths.
func reasonOf(err error) string {
	var link *os.LinkError
	var path *fs.PathError
	switch {
	case errors.As(err, &link):
		return link.Op + ": " + link.Err.Error()
	case errors.As(err, &path):
		return path.Op + ": " + path.Err.Error()
	case err != nil:
		return err.Error()
	}
	return ""
}
