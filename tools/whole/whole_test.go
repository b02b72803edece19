package whole

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func TestReadersSeeWholeTextsOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "er", "x")
	texts := [][]byte{bytes.Repeat([]byte("a"), 100_000), bytes.Repeat([]byte("b"), 50_000)}
	var wait sync.WaitGroup
	for _, text := range texts {
		wait.Go(func() {
			for range 20 {
				if err := Write(path, text, 0o600); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Go(func() {
		for range 200 {
			if got, err := os.ReadFile(path); err == nil && !bytes.Equal(got, texts[0]) && !bytes.Equal(got, texts[1]) {
				t.Errorf("%d bytes of a mixture", len(got))
			}
		}
	})
	wait.Wait()
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("%v", left)
	}
	if err := Write(path, nil, 0o640); err != nil {
		t.Error(err)
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o640 || info.Size() != 0 {
		t.Error(info.Mode(), info.Size())
	}
	if err := Write(filepath.Join(path, "below a file"), nil, 0o600); err == nil {
		t.Error("written")
	}
}
