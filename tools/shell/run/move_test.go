//go:build unix

package run

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
)

// Long output goes from the pipe to the file without being read, unless somebody wants every byte: nobody can tell.
func TestLongOutputIsTheSameHoweverItIsKept(t *testing.T) {
	var want bytes.Buffer
	for i := range 400_000 {
		fmt.Fprintln(&want, i+1)
	}
	for name, raw := range map[string]func([]byte){"moved": nil, "read": func([]byte) {}} {
		live := ""
		out := run(t, Command{Text: "seq 1 400000", SpillDir: t.TempDir(), Raw: raw, OnOutput: func(s string) { live = s }}).Output
		whole, err := os.ReadFile(out.Path)
		if err != nil || !bytes.Equal(whole, want.Bytes()) {
			t.Errorf("%s: a file of %d bytes, %v", name, len(whole), err)
		}
		if out.SpillErr != "" || out.Bytes != int64(want.Len()) || !strings.HasPrefix(out.Head, "1\n2\n") || !strings.HasSuffix(want.String(), out.Tail) || len(out.Tail) < 1000 ||
			out.Cut != out.Bytes-int64(len(out.Head)+len(out.Tail)) {
			t.Errorf("%s: %q, %d bytes, %d cut, head %.10q, tail %.10q", name, out.SpillErr, out.Bytes, out.Cut, out.Head, out.Tail)
		}
		if live = strings.TrimPrefix(live, "...\n\n"); !strings.Contains(want.String(), live) {
			t.Errorf("%s: shown last while it ran: %.40q", name, live)
		}
	}
}
