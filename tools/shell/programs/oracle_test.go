//go:build linux && cgo

package programs

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// oracle is a place where commands made of invented programs really run. Its PATH holds nothing but the inventions,
// which only write their names to a log, and a few wrappers; so nothing of the machine can be touched whatever the
// command says, as long as no path in it leaves the directory.
type oracle struct {
	dir, bin, log string
	bash          string
}

// invented programs p0 … p9.
const invented = 10

// realWrappers run what they are given, which is an invention.
var realWrappers = []string{"env", "nohup", "timeout", "nice", "xargs", "setsid", "stdbuf"}

func newOracle(t testing.TB) *oracle {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	dir := t.TempDir()
	o := &oracle{dir: filepath.Join(dir, "work"), bin: filepath.Join(dir, "bin"), log: filepath.Join(dir, "log"), bash: bash}
	for _, d := range []string{o.dir, o.bin, filepath.Join(o.dir, "sub")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for i := range invented {
		script := fmt.Sprintf("#!%s\necho p%d >> %s\necho out\n", bash, i, o.log)
		if err := os.WriteFile(filepath.Join(o.bin, fmt.Sprintf("p%d", i)), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range realWrappers {
		if p, err := exec.LookPath(name); err == nil {
			if err := os.Symlink(p, filepath.Join(o.bin, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, name := range []string{"bash", "sh"} {
		if err := os.Symlink(bash, filepath.Join(o.bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// run returns the names of the programs that bash started.
func (o *oracle) run(t testing.TB, command string) []string {
	t.Helper()
	_ = os.Remove(o.log)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, o.bash, "-c", command)
	cmd.Dir, cmd.Env, cmd.WaitDelay = o.dir, []string{"PATH=" + o.bin, "HOME=" + o.dir}, time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// What it left behind dies with it. How it ended says nothing: most of these commands fail.
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	data, _ := os.ReadFile(o.log)
	ran := strings.Fields(string(data))
	slices.Sort(ran)
	return slices.Compact(ran)
}

func (o *oracle) check(t testing.TB, command string) {
	t.Helper()
	a := Analyze(scan.Request{Patience: time.Minute, Command: command, Dir: o.dir, Root: o.dir, Home: o.dir})
	if len(a.External) > 0 {
		t.Fatalf("%s would leave the directory: %v", command, a.External)
	}
	if a.Opaque {
		return // asked as a whole
	}
	var named []string
	for _, c := range a.Calls {
		named = append(named, c.Program)
	}
	for _, p := range o.run(t, command) {
		if !slices.Contains(named, p) {
			t.Errorf("%s\nran %s, but the analysis names only %q", command, p, a.Commands())
		}
	}
}

// TestEveryProgramThatRunsWasNamed runs constructs of bash around invented programs in the real bash.
func TestEveryProgramThatRunsWasNamed(t *testing.T) {
	o := newOracle(t)
	for _, command := range []string{
		"p1", "p1 | p2", "p1 && p2 || p3; p4", "p1 & p2; wait", "! p1", "(p1)", "{ p1; }", "time p1", "A=1 p1", "A=$(p1) p2", "A=$(p1)",
		`\p1`, `"p1"`, "'p1'", `p"1"`, `$'p\x31'`, `$"p1"`, "p\\\n1", "command p1", "builtin command p1", "exec p1", "exec -a x p1", "env p1", "env -i PATH=$PATH p1", "env A=1 -- p1",
		"nohup p1", "timeout 5 p1", "timeout -k 1 5 p1", "nice p1", "nice -n 3 p1", "stdbuf -oL p1", "setsid -w p1", "env nice timeout 3 p1", "echo a | xargs p1", "echo a | xargs -I{} p1 {}", "echo a | xargs -n1 env p1", "xargs -a /dev/null p1",
		"bash -c p1", "bash -c 'p1; p2'", "sh -c 'bash -c p1'", "bash -ec p1", "bash -o pipefail -c 'p1 | p2'", "bash <<< p1", "bash <<E\np1\nE", "bash <<'E'\np1 $(p2)\nE", "echo p1 | bash",
		"echo $(p1)", "echo `p1`", "echo \"$(p1)\"", "echo \"`p1`\"", "echo \"${x:-$(p1)}\"", "echo ${x:-`p1`}", "echo ${x:=$(p1)}", "echo ${x/a/$(p1)}", "x=abc; echo ${x:$(p1)}", "echo $(echo $(p1))", "echo `echo \\`p1\\``", "echo $((1 + $(p1; echo 1)))", "echo $(( $(p1) ))",
		"cat <(p1)", ": <(p1); wait", ": > >(p1); wait", "p1 < <(p2)", "read x < <(p1)", "p1 <<E\n$(p2)\nE", "p1 <<E\n`p2`\nE", "p1 <<-E\n\t$(p2)\n\tE", "p1 <<'E'\n$(p2)\nE", "p1 <<< $(p2)", "p1 <<< \"`p2`\"",
		"if p1; then p2; elif p3; then p4; else p5; fi", "while p1; do p2; break; done", "until p1; do p2; done", "for i in $(p1); do p2; done", "for i in a b; do p1; done", "for ((i=0;i<2;i++)); do p1; done", "for ((i=$(p1;echo 0);i<1;i++)); do p2; done", "case $(p1) in out) p2;; *) p3;; esac", "case a in $(p1)) p2;; a) p3;& b) p4;; esac", "select i in $(p1); do p2; break; done <<< 1",
		"[[ -n $(p1) ]]", "[[ a == $(p1) ]] || p2", "[[ -f x && -n $(p1) ]]", "[ -n \"$(p1)\" ]", "test -n `p1`", "(( $(p1; echo 1) ))", "let \"x=$(p1;echo 1)\"",
		"f() { p1; }; f", "f() ( p1 ); f", "function f { p1; }; f", "f() { p1; } ; g() { f; }; g", "f() { \"$@\"; }; f p1", "f() { $1; }; f p1", "f() p1; f", "p1() { p2; }; p1", "env() { p1; }; env p2", "command() { p1; }; command p2",
		"trap p1 EXIT", "trap 'p1; p2' EXIT", "trap 'p1' DEBUG; p2", "f() { p1; }; trap f EXIT", "coproc p1; wait", "coproc X { p1; }; wait", "eval p1", "eval 'p1; p2'", "eval \"$(echo p1)\"", "x=p1; $x", "x=p1; ${x}", "x=p; ${x}1", "{p1,a}", "p{1,2}", "p?", "p[1]", "$(echo p1)", "`echo p1`", "$(echo p1) a",
		"a=(1 $(p1))", "a[$(p1;echo 1)]=2", "declare -a a=($(p1))", "declare x=$(p1)", "export x=$(p1)", "export \"x=$(p1)\"", "local x=$(p1)", "readonly x=`p1`", "declare -A m=([$(p1)]=1)", "x='a[$(p1)]'; echo $((x))", "x='a[$(p1)]'; ((x))", "x='a[$(p1)]'; [[ x -eq 0 ]]", "x='a[$(p1)]'; let x", "declare -i y='a[$(p1)]'", "declare -i y; x='a[$(p1)]'; y=x", "test -v 'a[$(p1)]'", "a=(1); [[ -v 'a[$(p1)]' ]]", "printf -v 'a[$(p1)]' x", "read 'a[$(p1)]' <<< 1", "unset 'a[$(p1)]'", "a=(1); unset 'a[$(p1)]'", "x='a[$(p1)]'; echo ${!x}", "x='$(p1)'; echo ${x@P}", "PS4='$(p1)'; set -x; p2", "PS4='$(p1)' bash -xc p2", "mapfile -C p1 -c 1 a <<< x", "getopts a 'x[$(p1)]' -a", "x='a[$(p1)]'; echo ${b[x]}", "x='a[$(p1)]'; echo ${b:x}", "x='a[$(p1)]'; b[x]=1", "x='a[$(p1)]'; for ((;x;)); do :; done", "x='a[$(p1)]'; echo $[x]", "declare -n r='a[$(p1)]'; echo $r", "wait -p 'a[$(p1)]' -n",
		"alias q=p1; q", "shopt -s expand_aliases\nalias q=p1\nq", "BASH_ENV=<(echo p1) bash -c p2", "PATH=. p1", "hash -p ./p1 q; q", "enable -f x y", "source <(echo p1)", ". <(echo p1)", ". /dev/stdin <<< p1", "p1 # p2", "# p1", "p1 #\np2", "echo 'p1'", "echo \\$(p1\\)", "echo \"\\$(p1)\"", "p1;p2", "p1\np2", "p1|&p2", "p1&p2\nwait", "p1 2>&1 | p2", ">x p1", "2>/dev/null p1", "<x p1; p2", "p1 >$(p2)", "p1 > \"x$(p2)\"", "exec {fd}>x; p1", "p1 {a}>x", "a=b c=d p1 e=f", "cd sub && p1", "cd sub; p1; cd -; p2", "pushd sub; p1; popd", "set -e; p1; p2", "set -- p1; \"$1\"", "set -- p1; $@", "\"$@\" p1", "$x p1", "$x\"\" p1", "${x:+a} p1", "$(:) p1", "p1 | while read l; do p2; done", "printf p1 | sh", "echo 'p1' > s; bash s", "echo 'p1' > s; . ./s", "if true; then\n  p1\nfi", "{ p1\n}", "(p1\np2)", "p1 &&\np2", "p1 |\np2", "p1 \\\n| p2", "rm() { p1; }; rm", "ls() { p1; }; ls", "echo() { p1; }; echo", "cd() { p1; }; cd sub", "[() { p1; }; [ x ]", "trap() { p1; }; trap x y", "export() { p1; }; export x", "read() { p1; }; read x", "true() { p1; }; true", "f() { p1; }; export -f f; bash -c f", "f() { p1; }; x=f; $x", "ls() { p1; }; nohup ls", "printf() { p1; }; printf x", "nice() { p1; }; nice p2", "unset -f p1; p1", "p1 -- ; p2", "time -p p1", "time { p1; p2; }", "time (p1)", "! { p1; }", "coproc { p1; p2; }; wait",
		`echo "${x:-'$(p1)'}"`, "cat <<E\n${x:-'$(p1)'}\nE", `echo "${x:-${y:-'$(p1)'}}"`, "declare -a x='($(p1))'", `x='($(p1))'; declare -a y="$x"`, "declare -a x=\\(\\$\\(p1\\)\\)", `k='a[$(p1;echo 0)]'; declare "-i" n=k`, `k='a[$(p1;echo 0)]'; command declare -i n=k`,
		"RANDOM='a[$(p1;echo 0)]'", "mapfile -t OPTIND <<< 'a[$(p1;echo 0)]'", "jobs -x p1", "jobs -x -- p1", `echo ${x:-'$(p1)'}`, "cat <<E\n'$(p1)'\nE",
	} {
		t.Run(command, func(t *testing.T) { o.check(t, command) })
	}
}

// TestRandomCommandsRunNothingUnnamed is the same for commands put together at random.
func TestRandomCommandsRunNothingUnnamed(t *testing.T) {
	o := newOracle(t)
	n := 150
	if testing.Short() {
		n = 30
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	g := generator{rand.New(rand.NewPCG(seed, 1))}
	for range n {
		command := g.list(4)
		o.check(t, command)
		if t.Failed() {
			return
		}
	}
}

// generator makes bash of invented programs, harmless builtins and all the syntax around them.
type generator struct{ *rand.Rand }

func (g generator) pick(s ...string) string { return s[g.IntN(len(s))] }

func (g generator) list(depth int) string {
	s := g.command(depth)
	for range g.IntN(3) {
		s += g.pick("; ", " && ", " || ", " | ", "\n", " & ", " |& ") + g.command(depth-1)
	}
	return s
}

func (g generator) command(depth int) string {
	if depth <= 0 {
		return g.simple(0)
	}
	d := depth - 1
	switch g.IntN(14) {
	case 0:
		return "{ " + g.list(d) + "\n}"
	case 1:
		return "(" + g.list(d) + ")"
	case 2:
		return "if " + g.list(d) + "\nthen " + g.list(d) + "\nfi"
	case 3:
		return "for v in " + g.word(d) + " " + g.word(d) + "; do " + g.list(d) + "\ndone"
	case 4:
		return "case " + g.word(d) + " in " + g.pick("a", "*", `"x"`) + ") " + g.list(d) + "\n;; esac"
	case 5:
		return "f" + fmt.Sprint(g.IntN(3)) + "() { " + g.list(0) + "\n}"
	case 6:
		return "! " + g.simple(d)
	case 7:
		return g.pick("env", "nohup", "timeout 2", "nice", "command", "env A=1 nice") + " " + g.simple(d)
	case 8:
		return g.pick("bash -c ", "sh -c ") + "'" + strings.ReplaceAll(g.list(d), "'", `'\''`) + "'"
	case 9:
		return "[[ -n " + g.word(d) + " ]]"
	case 10:
		return "v=" + g.word(d)
	}
	return g.simple(d)
}

func (g generator) simple(depth int) string {
	s := ""
	if g.IntN(6) == 0 {
		s = "A=" + g.word(depth-1) + " "
	}
	p := fmt.Sprintf("p%d", g.IntN(invented))
	switch g.IntN(8) {
	case 0:
		p = `"` + p + `"`
	case 1:
		p = `\` + p
	case 2:
		p = g.pick("echo", ":", "true", "f0", "f1", "printf x")
	}
	s += p
	for range g.IntN(3) {
		s += " " + g.word(depth-1)
	}
	switch g.IntN(8) {
	case 0:
		s += " > out"
	case 1:
		s += " 2>/dev/null"
	case 2:
		s += " <<< " + g.word(depth-1)
	}
	return s
}

func (g generator) word(depth int) string {
	if depth <= 0 {
		return g.pick("a", "'b c'", `"d"`, "-x", "$v", `"$v"`, "${v:-e}", "*", "~", "$((1+1))", `\;`, "'$(p9)'")
	}
	switch g.IntN(5) {
	case 0:
		return "$(" + g.list(depth-1) + "\n)"
	case 1:
		return `"x$(` + g.list(depth-1) + "\n)\""
	case 2:
		return "${v:-$(" + g.simple(depth-1) + ")}"
	case 3:
		return "<(" + g.simple(depth-1) + ")"
	}
	return g.word(0)
}
