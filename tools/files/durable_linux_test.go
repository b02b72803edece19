package files

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// call is a system call of a traced commit: its name, the path of its descriptor ("" without one) and its paths.
type call struct {
	name, of string
	paths    []string
}

var (
	straceLine = regexp.MustCompile(`^\d+ +(?:<\.\.\. )?(\w+)\((.*)\) += 0$`)
	straceFd   = regexp.MustCompile(`^\d+<([^>]*)>`)
	stracePath = regexp.MustCompile(`"([^"]*)"`)
)

// A power failure may lose what was not flushed, and may keep it in any order. So each file's bytes are flushed before the file takes its name,
// the journal before the first name changes, and the folders before the only copy of an old text is removed. What reached the disk cannot be
// seen from here; what was asked of the kernel, and in which order, can.
func TestACommitIsFlushedInOrder(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed")
	}
	dir := t.TempDir()
	ops, _, _ := patch20(t, filepath.Join(dir, "p"), rand.New(rand.NewPCG(1, 1)))
	b, _ := json.Marshal(killCase{Ops: ops})
	write(t, filepath.Join(dir, "case.json"), string(b))
	log := filepath.Join(dir, "log")
	cmd := exec.Command(strace, "-f", "-y", "-qq", "-s", "1000", "-e", "signal=none", "-e", "trace=fsync,fdatasync,syncfs,rename,renameat,renameat2,unlink,unlinkat", "-o", log, os.Args[0])
	cmd.Env = append(os.Environ(), "PILLION_TEST_KILL="+dir, "GODEBUG=asyncpreemptoff=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		if strings.Contains(string(out), "ptrace") {
			t.Skipf("strace cannot run here: %s", out)
		}
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	calls := straced(string(text))
	index := func(from int, what func(call) bool) int {
		if i := slices.IndexFunc(calls[from:], what); i >= 0 {
			return from + i
		}
		return -1
	}
	project := func(c call) bool { // a change of a name of the project, beside clean-up
		return strings.HasPrefix(c.name, "rename") && !strings.HasSuffix(c.paths[len(c.paths)-1], ".json")
	}
	journal := func(c call) bool {
		return strings.HasPrefix(c.name, "rename") && strings.HasSuffix(c.paths[len(c.paths)-1], ".json")
	}
	flushes := func(path string) func(call) bool {
		return func(c call) bool { return strings.HasSuffix(c.name, "sync") && c.of == path }
	}
	first, begun := index(0, project), index(0, journal)
	if begun < 0 || first < begun {
		t.Fatalf("the journal's entry comes at %d, the first change at %d", begun, first)
	}
	entry := index(0, func(c call) bool { return strings.HasSuffix(c.name, "sync") && strings.HasSuffix(c.of, ".tmp") })
	if entry < 0 || entry > begun {
		t.Errorf("the journal's entry got its name at %d and was flushed at %d", begun, entry)
	}
	if named := index(begun, flushes(filepath.Join(dir, "j"))); named < 0 || named > first {
		t.Errorf("the journal's folder was flushed at %d, the first change was made at %d", named, first)
	}
	temps, last := 0, first
	for i, c := range calls {
		if !project(c) {
			continue
		}
		last = i
		from := filepath.Base(c.paths[0])
		if !strings.HasSuffix(from, ".tmp") {
			continue
		}
		temps++
		at := index(0, func(c call) bool { return strings.HasSuffix(c.name, "sync") && filepath.Base(c.of) == from })
		if at < 0 || at > i {
			t.Errorf("%s took its name at %d and was flushed at %d", from, i, at)
		}
	}
	if temps < 10 {
		t.Errorf("%d temporary files were seen in\n%s", temps, text)
	}
	// The old texts go after the folders are on the disk and the journal says that the commit has ended.
	applied := index(last, journal)
	removed := index(last, func(c call) bool {
		return strings.HasPrefix(c.name, "unlink") && strings.Contains(c.paths[0], ".pillion-")
	})
	folders := map[string]bool{}
	for _, op := range ops {
		folders[filepath.Dir(op.Path)] = true
	}
	for folder := range folders {
		if at := index(last, flushes(folder)); at < 0 || at > applied {
			t.Errorf("%s was flushed at %d, the journal said that the commit had ended at %d", folder, at, applied)
		}
	}
	if applied < 0 || removed < applied {
		t.Errorf("the commit ended at %d, and the first old text was removed at %d", applied, removed)
	}
}

// straced are the calls of a log that succeeded, in the order in which they ended. A call that another thread interrupts has two lines.
func straced(log string) (calls []call) {
	begun := map[string]string{} // by thread
	for line := range strings.Lines(log) {
		line = strings.TrimSuffix(line, "\n")
		thread, _, _ := strings.Cut(line, " ")
		if head, ok := strings.CutSuffix(line, " <unfinished ...>"); ok {
			begun[thread] = head
			continue
		}
		if _, rest, ok := strings.Cut(line, " resumed>"); ok {
			line = begun[thread] + rest
		}
		m := straceLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		c := call{name: m[1]}
		if fd := straceFd.FindStringSubmatch(m[2]); fd != nil {
			c.of = fd[1]
		}
		for _, p := range stracePath.FindAllStringSubmatch(m[2], -1) {
			c.paths = append(c.paths, p[1])
		}
		calls = append(calls, c)
	}
	return calls
}
