package scan

import (
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// What is said to be printed is what bash prints: formats, words of echo and their escapes, put together at random.
func TestPrintsAsBashDoes(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	g := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	pieces := []string{
		"a", "rm", " ", "x y", "%", "%s", "%s ", "%b", "%c", "%d", "%i", "%u", "%x", "%X", "%o", "%5s", "%-5s|", "%.1s", "%.s", "%3d", "%03d", "%-4d|", "%*s", "%%",
		`\`, `\\`, `\n`, `\t`, `\a`, `\e`, `\x72`, `\x7`, `\x`, `\162`, `\0162`, `\16`, `\8`, `\u0072`, `\u`, `\U00000072`, `\c`, `\"`, `\'`, `\?`, `\z`,
		"7", "010", "0x1f", "'r", `"`, "-1", "+3", "3x", "1_0", "0b1", "%q", "%f", "%z", "%5", "%.", "-n", "-e", "-ne", "-E", "--", "-v", "é",
	}
	const rounds = 1500
	var commands, printed []string
	for range rounds {
		words := []string{[]string{"echo", "printf"}[g.IntN(2)]}
		for range 1 + g.IntN(4) {
			word := ""
			for range 1 + g.IntN(3) {
				word += pieces[g.IntN(len(pieces))]
			}
			words = append(words, word)
		}
		var out printing
		ok := true
		if words[0] == "echo" {
			out = echoed(words[1:])
		} else {
			out, ok = formatted(words[1:])
		}
		if !ok {
			continue
		}
		var quoted []string
		for _, word := range words {
			quoted = append(quoted, "'"+strings.ReplaceAll(word, "'", `'\''`)+"'")
		}
		commands = append(commands, strings.Join(quoted, " "))
		printed = append(printed, out.text)
	}
	if len(commands) < rounds/3 {
		t.Fatalf("only %d of %d are decoded", len(commands), rounds)
	}
	// One bash prints all of them; a line of its own tells them apart, and NUL bytes go, as in a script or a word.
	const mark = "\n=====\n"
	script := strings.Join(commands, "; printf '\\n=====\\n'\n")
	run := exec.Command(bash, "-c", script)
	run.Env = []string{"LC_ALL=C.UTF-8"}
	data, _ := run.Output() // printf reports failure for a number it does not understand, and prints all the same
	got := strings.Split(strings.ReplaceAll(string(data), "\x00", ""), mark)
	if len(got) != len(commands) {
		t.Fatalf("%d texts of %d commands", len(got), len(commands))
	}
	for i, want := range got {
		if printed[i] != want {
			t.Errorf("%s\nprints %q, the analysis says %q", commands[i], want, printed[i])
		}
	}
}

// What echo and printf spell is seen by rules that deny, wherever it ends up as a command, and never counts as known.
func TestPrintedCommandsAreSeenByRulesThatDeny(t *testing.T) {
	for _, command := range []string{
		`$(printf '\x72m') x`, `$(printf '\162m') x`, `$(printf '%s' rm) x`, `$(printf %s%s r m) x`, `$(printf '%c%c' r m) x`, `$(printf '%.2s' rmdir) x`,
		`$(printf '%b' '\x72m') x`, `$(printf '\u0072m') x`, `$(printf "\\$(printf %o 114)m") x`, `$(printf "\\x$(printf %x "'r")m") x`, `$(printf 'rm x')`, `$(printf 'rm ')x`,
		`$(echo rm) x`, `$(echo -n rm) x`, `$(echo -e '\x72m') x`, "`echo rm` x", `"$(echo rm)" x`, `r$(echo m) x`, `$(echo r)$(echo m) x`, `$(printf r; printf m) x`,
		`$({ printf r && printf m; }) x`, `$(cat <<<rm) x; $(cat <<E` + "\nrm\nE\n" + `) x`, `a=$(printf '\x72m'); $a x`, `a=$(printf r); ${a}m x`, `rm "$(printf x)"`, `rm $(echo x)`,
		`eval "$(printf '\x72m x')"`, `trap "$(printf '\x72m x')" EXIT`,
	} {
		a := Analyze(Request{Patience: time.Minute, Command: command, Dir: "/", Root: "/"}, silent{})
		seen := false
		for _, c := range a.Calls {
			seen = seen || c.Text == "rm x" || slices.Contains(c.Also, "rm x")
		}
		if !seen {
			t.Errorf("%s\nrm x is not among %+v", command, a.Calls)
		}
		if !a.Opaque && !strings.HasPrefix(command, "rm ") {
			t.Errorf("%s\nis not opaque", command)
		}
	}
	// What does not surely print that is not guessed at.
	for _, command := range []string{`echo() { :; }; $(echo rm) x`, `$(printf -v a rm) x`, `$(echo rm >&2) x`, `$(echo rm &) x`, `$(printf '%q' rm) x`, `A=1; $(A=2 echo rm) x`} {
		a := Analyze(Request{Patience: time.Minute, Command: command, Dir: "/", Root: "/"}, silent{})
		if !a.Opaque {
			t.Errorf("%s\nis not opaque", command)
		}
		for _, c := range a.Calls {
			if c.Text == "rm x" || slices.Contains(c.Also, "rm x") {
				t.Errorf("%s\nis said to run rm x", command)
			}
		}
	}
	deep := strings.Repeat(`echo "$(`, 60) + "a" + strings.Repeat(`)"`, 60)
	if a := Analyze(Request{Patience: time.Minute, Command: deep, Dir: "/", Root: "/"}, silent{}); strings.Contains(a.Why, "too long") {
		t.Error("nested substitutions take exponential time")
	}
}
