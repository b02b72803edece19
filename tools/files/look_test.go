package files

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLook(t *testing.T) {
	dir := t.TempDir()
	file, link, broken := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "broken")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if os.Symlink(file, link) != nil || os.Symlink(filepath.Join(dir, "none"), broken) != nil {
		t.Skip("no symbolic links here")
	}
	for path, want := range map[string][2]bool{dir: {true, false}, file: {true, false}, link: {true, true}, broken: {true, true},
		filepath.Join(dir, "none"): {}, filepath.Join(file, "below"): {}, filepath.Join(dir, "a\x00b"): {}} {
		if there, link := Look(path); there != want[0] || link != want[1] {
			t.Errorf("%s: %v, a link %v", path, there, link)
		}
	}
}
