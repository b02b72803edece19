package run

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools/shell/sandbox"
)

// everyday are commands that run without a question many times a day, and two that try more than they say.
var everyday = []string{
	"git status --short", "git log --oneline -3", "git diff", "git grep -n a", "ls -la", "cat a", "grep -rn a .", "find . -name a", "wc -l a | sort", "head -1 a", "sed -n 1p a", "awk '{print $1}' a", "du -s .", "stat a", "date", "id", "hostname",
	"awk 'BEGIN { print \"x\" > \"evil\" }'", "exec 3<>/dev/tcp/127.0.0.1/9",
}

// strace is the witness: it sees what the kernel was asked for, whatever programs say of themselves.
func TestStraceSeesNoWriteAndNoSocketOfContainedCommands(t *testing.T) {
	const child = "PILLION_TEST_CONTAINED_IN"
	if root := os.Getenv(child); root != "" {
		r := &Runner{}
		defer r.Close()
		for _, command := range everyday {
			c := Command{Text: command, Dir: root}
			if os.Getenv("PILLION_TEST_UNCONTAINED") == "" {
				c.Contained = &sandbox.ContainOptions{Root: root, Dir: root}
			}
			if _, err := r.Run(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	containedIn(t, t.TempDir())
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed")
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(root, "a"), "a\n")
	setup := exec.Command("sh", "-c", "git init -q && git add a && git -c user.name=a -c user.email=a@b commit -qm one")
	setup.Dir = root
	if out, err := setup.CombinedOutput(); err != nil {
		t.Skipf("git: %v %s", err, out)
	}
	did := func(extra ...string) []string {
		log := filepath.Join(t.TempDir(), "log")
		cmd := exec.Command(strace, "-f", "-qq", "-o", log, "-e", "trace=%file,%network,%process", "-e", "signal=none", os.Args[0], "-test.run=^TestStraceSeesNoWriteAndNoSocketOfContainedCommands$")
		cmd.Env = append(os.Environ(), append(extra, child+"="+root)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Skipf("strace cannot trace here: %v %.300s", err, out)
		}
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		return effects(string(text))
	}
	if found := did(); len(found) > 0 {
		t.Errorf("contained commands did:\n%s", strings.Join(found, "\n"))
	}
	if found := did("PILLION_TEST_UNCONTAINED=1"); len(found) < 2 {
		t.Errorf("the witness is blind: it found %q of commands that were not contained", found)
	}
}

var (
	execLine   = regexp.MustCompile(`^(\d+) +execve\("[^"]*/bash", `)
	forkLine   = regexp.MustCompile(`^(\d+) .*(?:clone3?|v?fork)(?:\(| resumed).* = (\d+)$`)
	effectLine = regexp.MustCompile(`^(\d+) +(?:<\.\.\. )?(socket|connect|bind|sendto|unlink|unlinkat|rename|renameat2?|link|linkat|symlink|symlinkat|mkdir|mkdirat|mknod|mknodat|chmod|fchmodat2?|chown|lchown|fchownat|utimensat|truncate|creat|setxattr|lsetxattr|open|openat|openat2)[( ]`)
	harmless   = regexp.MustCompile(`"/dev/(null|tty|zero|full)"|"[^"]*pillion-commands-[^"]*"`)
)

// effects are the system calls of shells, and of what they started, that changed a file or got a socket.
func effects(log string) (found []string) {
	commands := map[string]bool{}
	for line := range strings.Lines(log) {
		line = strings.TrimSpace(line)
		if m := execLine.FindStringSubmatch(line); m != nil {
			commands[m[1]] = true
		}
		if m := forkLine.FindStringSubmatch(line); m != nil && commands[m[1]] {
			commands[m[2]] = true
		}
		m := effectLine.FindStringSubmatch(line)
		if m == nil || !commands[m[1]] || strings.Contains(line, "= -1 ") || strings.Contains(line, "<unfinished") || strings.Contains(line, "= ?") || harmless.MatchString(line) {
			continue
		}
		if strings.HasPrefix(m[2], "open") && !strings.Contains(line, "O_WRONLY") && !strings.Contains(line, "O_RDWR") && !strings.Contains(line, "O_CREAT") && !strings.Contains(line, "O_TRUNC") {
			continue
		}
		found = append(found, line)
	}
	return found
}
