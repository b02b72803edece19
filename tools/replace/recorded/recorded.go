// Package recorded compares the answers to thousands of generated cases with those that a file records: a change that changes an answer is
// seen, and must be meant. Only tests use it.
package recorded

import (
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"testing"
)

// Check compares the answers to the seeds from 0 to n-1 with the lines of a file: the kind of the answer and a digest of whole. about says
// which case a seed is, and is printed with the first answer that differs. With rewrite, the file is first written anew.
func Check(t *testing.T, path string, n int, rewrite bool, answer func(seed uint64) (kind, whole, about string)) {
	t.Helper()
	var got []string
	kinds := map[string]int{}
	for seed := range uint64(n) {
		kind, whole, _ := answer(seed)
		kinds[kind]++
		sum := sha256.Sum256([]byte(whole))
		got = append(got, fmt.Sprintf("%s %x", kind, sum[:4]))
	}
	t.Log(kinds)
	if rewrite {
		if err := os.WriteFile(path, []byte(strings.Join(got, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	if len(want) != n {
		t.Fatalf("%d answers are recorded", len(want))
	}
	differ, first := 0, 0
	for i := range want {
		if got[i] != want[i] {
			if differ++; differ == 1 {
				first = i
			}
		}
	}
	if differ > 0 {
		_, whole, about := answer(uint64(first))
		t.Errorf("%d of %d answers are others than recorded. The first is %d, which was %s and is %s:\n%s\ngives %s", differ, n, first, want[first], got[first], about, whole)
	}
}
