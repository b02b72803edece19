//go:build linux && cgo

package programs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// What runs without a question is run for real here, under strace, in a throw-away folder without a network. A program
// that starts, a file that is written, a socket that is opened, or a file outside that is read, and that the analysis
// did not name, is a hole.
//
// make fuzz FUZZTIME=1h runs FuzzSilent for as long as you like; TestSilentCommands is its short form.

// lab is the place where silent commands run.
type lab struct {
	dir, work, home, secret string
	git                     bool
}

func newLab(t testing.TB) *lab {
	t.Helper()
	for _, program := range []string{"strace", "unshare", "bash"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%s is missing: scripts/setup.sh installs it", program)
		}
	}
	if out, err := exec.Command("unshare", "-rnpm", "--fork", "true").CombinedOutput(); err != nil {
		t.Skipf("user namespaces are not allowed here: %v %s", err, out)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{dir: dir, work: filepath.Join(dir, "home", "work"), home: filepath.Join(dir, "home"), secret: filepath.Join(dir, "home", "outside")}
	for name, text := range map[string]string{
		"work/a.txt": "one two three\nfour five six\ne touch made\n", "work/b.json": `{"a": [1, {"b": "c"}], "d": null}`, "work/sub/c.txt": "x y\n", "work/list": "../outside/secret\n",
		"work/evil.jq": `env`, "work/evil.sed": "e touch made\n", "work/evil.awk": `BEGIN{system("touch made")}`, "work/-e": "x\n", "outside/secret": "key\n", "work/.hidden": "x\n",
	} {
		write(t, filepath.Join(l.home, name), text)
	}
	if err := os.Symlink("../outside", filepath.Join(l.work, "link")); err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("git"); err == nil {
		l.git = true
		runGit(t, l.work, "init", "-q", "-b", "main")
		runGit(t, l.work, "add", "a.txt", "b.json", "sub")
		runGit(t, l.work, "commit", "-q", "-m", "one")
		runGit(t, l.work, "tag", "v1")
		// What a repository may bring along to make git run something.
		write(t, filepath.Join(l.work, ".gitattributes"), "*.txt merge=evil diff=evil filter=evil\n")
	}
	return l
}

func (l *lab) request(command string) scan.Request {
	return scan.Request{Patience: time.Minute, Command: command, Dir: l.work, Root: l.work, Home: l.home, Getenv: func(string) (string, bool) { return "", false }}
}

// calls of the kernel that show what a command does. Those that only look at names say nothing.
const traced = "execve,execveat,openat,open,openat2,creat,unlink,unlinkat,rename,renameat,renameat2,mkdir,mkdirat,rmdir,link,linkat,symlink,symlinkat,chmod,fchmod,fchmodat,chown,lchown,fchown,fchownat,truncate,ftruncate,mknod,mknodat,connect,bind,utimensat,setxattr"

var (
	traceLine  = regexp.MustCompile(`^(\d+) +(.*)$`)
	traceCall  = regexp.MustCompile(`^([a-z0-9_]+)\((.*)\) += (-?\d+|\?)`)
	tracePath  = regexp.MustCompile(`"((?:[^"\\]|\\.)*)"`)
	unfinished = " <unfinished ...>"
	resumed    = regexp.MustCompile(`^<\.\.\. [a-z0-9_]+ resumed>`)
)

// run runs a command and returns what it did that a silent command may not.
func (l *lab) run(t testing.TB, command string, allowed []string) []string {
	t.Helper()
	log := filepath.Join(l.dir, fmt.Sprintf("trace.%d", rand.Uint64()))
	defer os.Remove(log)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	// All but the lab is read-only meanwhile, where that is possible: a hole must not cost anything.
	const isolate = `mount --bind "$1" "$1" && mount -o remount,bind,ro / ; cd "$2" && shift 2 && exec "$@"`
	cmd := exec.CommandContext(ctx, "unshare", "-rnpm", "--kill-child", "--fork", "--", "sh", "-c", isolate, "sh", l.dir, l.work, "strace", "-f", "-qq", "-s", "512", "-e", "trace="+traced, "-o", log, "bash", "-c", command)
	cmd.Dir, cmd.WaitDelay = l.work, time.Second
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + l.home, "LC_ALL=C.UTF-8", "GIT_CONFIG_NOSYSTEM=1", "GIT_OPTIONAL_LOCKS=0"}, QuietGit()...) // as package run sets it
	_ = cmd.Run()                                                                                                                                               // how it ended says nothing: most of them fail
	file, err := os.Open(log)
	if err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil
		}
		t.Fatalf("%s left no trace: %v", command, err)
	}
	defer file.Close()
	var did []string
	started := 0
	open := map[string]string{} // by process: a call that is not finished yet
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		m := traceLine.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		text := m[2]
		if before, ok := strings.CutSuffix(text, unfinished); ok {
			open[m[1]] = before
			continue
		}
		if at := resumed.FindString(text); at != "" {
			text = open[m[1]] + text[len(at):]
		}
		c := traceCall.FindStringSubmatch(text)
		if c == nil {
			continue
		}
		name, args, failed := c[1], c[2], strings.HasPrefix(c[3], "-")
		path := ""
		if p := tracePath.FindStringSubmatch(args); p != nil {
			path = p[1]
		}
		if path != "" && path[0] != '/' {
			path = filepath.Join(l.work, path)
		}
		switch name {
		case "execve", "execveat":
			if failed {
				continue
			}
			if started++; started > 1 && !slices.Contains(allowed, filepath.Base(path)) && !strings.Contains(path, "/git-core/") {
				did = append(did, "starts "+path)
			}
		case "openat", "open", "openat2", "creat":
			writes := name == "creat" || strings.Contains(args, "O_WRONLY") || strings.Contains(args, "O_RDWR") || strings.Contains(args, "O_CREAT")
			switch {
			case strings.HasPrefix(path, "/dev/"), strings.HasPrefix(path, "/proc/"):
			case failed && strings.Contains(text, "EISDIR"):
			case writes && !(failed && !strings.HasPrefix(path, l.dir)):
				did = append(did, "writes "+path)
			case !failed && within(path, l.secret):
				did = append(did, "reads "+path)
			}
		case "connect", "bind":
			if !strings.Contains(args, "/nscd/") {
				did = append(did, name+"s "+args)
			}
		default:
			if !failed {
				did = append(did, name+" "+path)
			}
		}
	}
	return did
}

func within(path, dir string) bool {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		real = path
	}
	return real == dir || strings.HasPrefix(real, dir+"/")
}

// check runs a command if it is silent. It reports whether it was.
func (l *lab) check(t testing.TB, command string) bool {
	t.Helper()
	a := Analyze(l.request(command))
	if !a.ReadOnly {
		return false
	}
	var allowed []string
	for _, c := range a.Calls {
		allowed = append(allowed, c.Program)
		if path, err := exec.LookPath(c.Program); err == nil { // awk may be a link to mawk
			if real, err := filepath.EvalSymlinks(path); err == nil {
				allowed = append(allowed, filepath.Base(real))
			}
			if data, err := os.ReadFile(path); err == nil && strings.HasPrefix(string(data[:min(2, len(data))]), "#!") { // egrep is a script
				allowed = append(allowed, "grep", "sh", "bash", "perl")
			}
		}
	}
	if did := l.run(t, command, allowed); len(did) > 0 {
		t.Errorf("%s\nruns without a question, and %s", command, strings.Join(did[:min(5, len(did))], ", "))
	}
	return true
}

// silentPrograms are those with a silent form that are installed.
var silentPrograms = sync.OnceValue(func() []string {
	var out []string
	for name, s := range builtIn().at {
		switch name {
		case "sleep", "[", "hostname":
			continue
		case "git", "find", "xargs", "tar", "curl", "timeout", "nice", "node", "python3", "gcc", "make":
		default:
			if !loaded.get(s).Reads {
				continue
			}
		}
		if _, err := exec.LookPath(name); err == nil {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
})

// commandMaker makes commands that are nearly silent: of programs that only read, with options that the records list,
// options that nobody lists, and scripts in the programs' own languages.
type commandMaker struct{ *rand.Rand }

func (g commandMaker) pick(s ...string) string { return s[g.IntN(len(s))] }

func (g commandMaker) word() string {
	return g.pick("a.txt", "b.json", "sub", ".", "sub/c.txt", "list", "x", "1", "3", "@list", "-", "HEAD", "v1", "*.txt", "link", "made", "evil.jq", "--", "+%Y", "a", "'*'", "HEAD:a.txt", "1,2p", "-e")
}

func (g commandMaker) option(r *Record) string {
	var all []string
	for _, list := range r.Options {
		all = append(all, strings.Fields(list)...)
	}
	all = append(all, strings.Fields(r.Ends)...)
	all = append(all, strings.Fields(r.Version)...)
	all = append(all, strings.Fields(r.Starts)...)
	letter := func() string {
		return string(rune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"[g.IntN(62)]))
	}
	var o string
	switch g.IntN(5) {
	case 0:
		o = "-" + letter()
	case 1:
		o = "-" + letter() + letter()
	case 2:
		o = "--" + g.pick("output", "exec", "file", "config", "pre", "compress-program", "files0-from", "check", "remerge-diff", "textconv", "ext-diff", "no-index", "in-place", "include", "load", "eval", "pager", "help", "version", "args", "rawfile x", "slurpfile x")
	default:
		if len(all) == 0 {
			return "-" + letter()
		}
		o = all[g.IntN(len(all))]
		if strings.HasPrefix(o, "--") && g.IntN(4) == 0 { // abbreviations
			o = o[:2+1+g.IntN(len(o)-2)]
		}
	}
	switch g.IntN(5) {
	case 0:
		return o + "=" + g.word()
	case 1:
		return o + " " + g.word()
	case 2:
		return o + strings.Trim(g.word(), "-")
	}
	return o
}

func (g commandMaker) sed() string {
	address := func() string { return g.pick("", "", "1", "$", "1,3", "/e/", "0~2", "/[/]/", `\,x,`, "1!", "$!") }
	re := func() string {
		return g.pick("a", "[/]", "[^/]", ".*", `\(x\)`, "[]/]", "e", "[a", "a]", "[[:alpha:]]", `\/`, "x*", "")
	}
	var parts []string
	for range 1 + g.IntN(3) {
		switch g.IntN(3) {
		case 0:
			parts = append(parts, address()+g.pick("p", "d", "q", "=", "n", "e", "e touch made", "w made", "r list", "R list", "W made", "F", "l", "D", "a text", "}"))
		default:
			d := g.pick("/", "/", "|", "#", ",", "s")
			parts = append(parts, address()+"s"+d+re()+d+g.pick("", "b", "&", re())+d+g.pick("", "g", "p", "e", "w made", "gp", "2", "pe", "ge;p", "I"))
		}
	}
	return quoteShell(strings.Join(parts, g.pick(";", "\n", " ", "; ")))
}

func (g commandMaker) awk() string {
	expr := func() string {
		return g.pick("$1", "$NF", "1", "NR", `"x"`, `"touch made"`, `ENVIRON["HOME"]`, "$(1)", "a", "(1 &&\n2)", "1,\n2", `"list"`)
	}
	body := g.pick("print "+expr(), "print "+expr()+","+expr(), "print "+expr()+" > "+`"made"`, "print > $1", "system("+expr()+")", "getline x < "+`"../outside/secret"`, expr()+" | getline", "print | "+`"sh"`, "close(x)", "print "+expr()+" >> \"made\"", "printf "+expr())
	return quoteShell(g.pick("", "BEGIN", "END", "NR==1", "/x/", "$1 > 0") + g.pick("{", " { ") + body + g.pick("", ";", " ; "+body) + g.pick("}", " }"))
}

func (g commandMaker) jq() string {
	f := func() string {
		return g.pick(".", ".a", ".a[]", "keys", "env", "$ENV", "input", "inputs", "debug", "input_filename", "@base64", "@sh", `"\(.a)"`, `"\(env)"`, "$__prog_args", "halt_error", "getpath([\"a\"])", "modulemeta", `include "evil"; .`, `import "evil" as e; .`, "limit(1; .a[])", "ltrimstr(\"x\")", "get_search_list", "$__loc__")
	}
	return quoteShell(f() + g.pick("", " | "+f(), ", "+f()))
}

func quoteShell(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func (g commandMaker) find() string {
	s := "find " + g.pick("", ".", "sub", "-L .", "-P .", "link/")
	for range 1 + g.IntN(3) {
		s += " " + g.pick("-name '*.txt'", "-type f", "-print", "-print0", "-ls", "-delete", "-exec cat {} +", "-exec touch made ';'", "-ok cat {} ';'", "-fprint made", "-fls made", "-fprintf made %p", "-printf '%p\n'", "-newer a.txt", "-maxdepth 1", "-o", "!", "-quit", "-prune", "-execdir cat {} ';'", "-files0-from list", "-samefile a.txt", "-regex '.*'", "-D exec", "-follow")
	}
	return s
}

func (g commandMaker) git() string {
	subs := slices.Sorted(maps.Keys((*Set)(nil).record("git").Sub))
	sub := subs[g.IntN(len(subs))]
	for !(*Set)(nil).record("git").Sub[sub].Reads { // the others are not silent
		sub = subs[g.IntN(len(subs))]
	}
	s := "git " + g.pick("", "", "--no-pager ", "-C sub ", "-c color.ui=always ") + sub
	for range g.IntN(3) {
		s += " " + g.pick("--stat", "-p", "--oneline", "-1", "--name-only", "--textconv", "--ext-diff", "--output=made", "--remerge-diff", "--cc", "-m", "--diff-merges=r", "--no-index", "--format=%h", "--format=%G?", "-S x", "-G x", "-O", "-Omade", "--open-files-in-pager=touch", "--recurse-submodules", "--contents list", "-L1,1:a.txt", "--word-diff", "--all", "--batch", "--filters", "-v", "-d", "-D", "--edit-description", "-l", "--list", "--contains", "--show-signature", "--exclude-standard", "-o", "--cached", "--submodule=log", "--ignore-revs-file=list", g.option(&Record{}))
	}
	for range g.IntN(3) {
		s += " " + g.word()
	}
	return s
}

func (g commandMaker) command() string {
	switch g.IntN(12) {
	case 0, 1:
		return "sed " + g.pick("", "", "-n ", "-E ", "-s ", "-z ", "-i ", "-ne ", "-e ", "-f ", "--posix ") + g.pick(g.sed(), g.sed(), g.sed(), g.word()) + " " + g.word()
	case 2:
		return g.pick("awk", "awk", "gawk", "mawk") + " " + g.pick("", "", "-F: ", "-F ' ' ", "-v x=1 ", "-f ", "-e ", "-i ") + g.awk() + " " + g.word()
	case 3:
		return "jq " + g.pick("", "", "-n ", "-r ", "-c ", "-f ", "-nf ", "-L . ", "--arg a b ", "--rawfile a list ", "-e ") + g.jq() + " " + g.pick("b.json", g.word())
	case 4:
		return g.find()
	case 5:
		return g.git()
	case 6:
		return g.command() + " | " + g.command()
	}
	names := silentPrograms()
	name := names[g.IntN(len(names))]
	r := (&Set{}).record(name)
	s := name
	if len(r.spec.words) > 0 && r.spec.words[0] == kindText {
		s += " " + g.word()
	}
	for range g.IntN(4) {
		s += " " + g.option(r)
	}
	for range 1 + g.IntN(2) {
		s += " " + g.word()
	}
	return s
}

func TestSilentCommands(t *testing.T) {
	l := newLab(t)
	for _, c := range []string{ // each was a hole once
		"sed 's/[/]/g;s/e;p;/x/g' a.txt", "awk '{print $1,\n\"x\" > \"made\"}' a.txt", "jq -nf evil.jq", "strings @list", "md5sum -c list", "git log --remerge-diff", "find -files0-from list", "wc --files0-from=list", "cat link/secret",
	} {
		l.check(t, c)
	}
	// The same build must say the same twice; PILLION_SEED and FuzzSilent continue to other commands.
	seed := uint64(1)
	if s := os.Getenv("PILLION_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	t.Logf("seed %d", seed)
	g := commandMaker{rand.New(rand.NewPCG(seed, 2))}
	want := 300
	if testing.Short() {
		want = 60
	}
	ran, made := 0, 0
	for ; ran < want && made < 60*want; made++ {
		if l.check(t, g.command()) {
			ran++
		}
	}
	t.Logf("%d of %d commands were silent", ran, made)
	if ran < want {
		t.Errorf("only %d of %d commands were silent: the test proves little", ran, made)
	}
}

// Commands that nobody had in mind when the analysis was written: features of the shell that few use, wrappers, and options that few
// people know of tools that all people use. Those that run unasked do nothing that a silent command may not.
func TestStrangersCommands(t *testing.T) {
	l := newLab(t)
	silent := 0
	rows := readTable(t, "testdata/strangers.txt")
	for _, e := range rows {
		if l.check(t, e.command) {
			silent++
		}
	}
	t.Logf("%d of %d ran unasked", silent, len(rows))
	if silent < len(rows)/4 {
		t.Errorf("only %d of %d commands ran: the test proves little", silent, len(rows))
	}
}

// The lab sees what it is there to see.
func TestTheLabSeesWhatCommandsDo(t *testing.T) {
	l := newLab(t)
	for command, want := range map[string]string{
		"touch made": "writes", "cat link/secret": "reads", "/usr/bin/env true": "starts", "echo x > made": "writes", "rm -f -- -e": "unlink", "exec 3<>/dev/tcp/127.0.0.1/9": "connect", "mkdir q": "mkdir", "sed '3e' a.txt": "starts",
	} {
		if did := l.run(t, command, []string{"sed", "cat"}); !slices.ContainsFunc(did, func(s string) bool { return strings.HasPrefix(s, want) }) {
			t.Errorf("%s: %q, want one that %s", command, did, want)
		}
	}
}

// FuzzSilent mutates scripts of sed, awk and jq, and the choices of the generator.
func FuzzSilent(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, "")
	}
	for i, script := range []string{"s/a/b/", "s/[/]/g;s/e;p;/x/g", "1,3p", "{print $1}", "{print $1,\n2}", ".a", ".a | keys"} {
		f.Add(uint64(i), script)
	}
	l := newLab(f)
	f.Fuzz(func(t *testing.T, seed uint64, script string) {
		command := commandMaker{rand.New(rand.NewPCG(seed, 3))}.command()
		if script != "" {
			command = [...]string{"sed", "sed -n", "awk", "jq"}[seed%4] + " " + quoteShell(script) + " a.txt"
		}
		l.check(t, command)
	})
}
