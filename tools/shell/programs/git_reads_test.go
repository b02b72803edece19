package programs

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// repository makes one with two commits, a secret among its files and nobody's settings around it.
func repository(t *testing.T, settings ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	runGit(t, dir, "init", "-q", "-b", "main")
	for i, text := range []string{"one\n", "two\n"} {
		for _, name := range []string{"a.txt", "web/b.go", "x.dat"} {
			write(t, filepath.Join(dir, name), text)
		}
		runGit(t, dir, "add", ".")
		runGit(t, dir, "commit", "-q", "-m", text)
		runGit(t, dir, "tag", []string{"v1", "v2"}[i])
	}
	for _, s := range settings {
		key, value, _ := strings.Cut(s, "=")
		runGit(t, dir, "config", key, value)
	}
	return dir
}

func runGit(t testing.TB, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = dir, gitEnviron()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func gitEnviron() []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_TERMINAL_PROMPT=0", "GIT_PAGER=cat"}, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func reads(dir, command string) bool {
	return Analyze(scan.Request{Command: command, Dir: dir, Root: dir, Home: "/home/u"}).ReadOnly
}

var gitReadOnly = []string{
	"git status", "git status -sb", "git status --porcelain=v2 --branch", "git --no-pager log --oneline -20", "git log -p -1", "git log --graph --all --decorate", "git log --author=me --since='2 weeks ago' -- a.txt", "git log main..HEAD --stat", "git log -L1,1:a.txt", "git diff", "git diff HEAD~1 --stat", "git diff --cached", "git diff v1..v2 -- web", "git show", "git show HEAD:a.txt", "git show --name-only v1", "git blame a.txt", "git blame -L 1,1 web/b.go",
	"git branch", "git branch -a", "git branch -vv", "git branch --show-current", "git branch --contains v1", "git tag", "git tag -l 'v*'", "git tag --sort=-creatordate", "git stash list", "git worktree list", "git reflog", "git reflog show -5", "git rev-parse --show-toplevel", "git rev-parse HEAD", "git ls-files", "git ls-files -o --exclude-standard", "git ls-tree -r HEAD", "git cat-file -p HEAD", "git shortlog -sn HEAD", "git describe --tags --always --dirty", "git merge-base HEAD v1", "git grep -n one", "git -C web status", "cd web && git diff | head -20", "git diff-tree -p HEAD", "git for-each-ref", "git rev-list --count HEAD", "git check-ignore -v a.txt", "git show-ref", "git diff --word-diff", "git log --format='%h %an %s'", "git status && git diff --stat",
}

func TestGitCommandsThatOnlyRead(t *testing.T) {
	t.Parallel()
	dir := repository(t)
	for _, c := range gitReadOnly {
		if a := Analyze(scan.Request{Command: c, Dir: dir, Root: dir, Home: "/home/u"}); !a.ReadOnly {
			t.Errorf("%s: not read-only (%s; outside %v, protected %v)", c, a.Why, a.External, a.Protected)
		}
	}
}

func TestGitCommandsThatDoMore(t *testing.T) {
	dir := repository(t)
	for _, c := range []string{
		"git add .", "git commit -m x", "git push", "git fetch", "git pull", "git checkout a.txt", "git stash", "git stash pop", "git stash drop", "git branch new", "git branch -d main", "git branch -m x", "git branch -u origin/main", "git branch --unset-upstream", "git branch --edit-description", "git tag v3", "git tag -d v1", "git tag -v v1", "git tag -a -m x v9", "git worktree add ../x", "git reflog expire --all", "git reflog delete HEAD@{1}", "git config --list", "git config user.name", "git remote -v",
		"git diff --no-index a.txt /etc/passwd", "git diff --no-ind a.txt web/b.go", "git diff --output=x", "git diff --outp=x", "git diff --ext-diff", "git log --ext-diff -p", "git diff --textconv", "git log --show-signature", "git log --format=%G?", "git for-each-ref --format='%(signature)'", "git grep -O one", "git grep --open-files-in-pager=vi one", "git grep --no-index one", "git grep --untracked one", "git -c core.fsmonitor=./x status", "git --git-dir=web status", "git --exec-path=. status", "GIT_DIR=web git status", "GIT_EXTERNAL_DIFF=./x git diff", "GIT_OPTIONAL_LOCKS=1 git status", "git cat-file --batch", "git cat-file --filters HEAD:a.txt", "git $X", "git log $X", "git status > x", "git blame --contents /etc/passwd a.txt", "git gc", "git unknown",
	} {
		if reads(dir, c) {
			t.Errorf("%s counts as read-only", c)
		}
	}
	if a := Analyze(scan.Request{Command: "git diff a.txt ../x", Dir: dir, Root: dir}); a.ReadOnly || len(a.External) == 0 {
		t.Errorf("git diff with a path outside: %+v", a)
	}
}

// A repository's settings may make git run programs. Whatever is set, a command that counts as read-only runs none of
// them: each is run for real, with a program that leaves a mark.
func TestGitRunsNothingOfTheRepositorys(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is missing")
	}
	mark := filepath.Join(t.TempDir(), "mark")
	program := filepath.Join(t.TempDir(), "program")
	write(t, program, "#!/bin/sh\ntouch '"+mark+"'\ncat\n")
	if err := os.Chmod(program, 0o755); err != nil {
		t.Fatal(err)
	}
	fired := 0
	for _, settings := range [][]string{
		{"core.fsmonitor=" + program}, {"diff.external=" + program}, {"diff.dat.textconv=" + program}, {"diff.dat.command=" + program}, {"filter.dat.clean=" + program}, {"filter.dat.process=" + program}, {"core.pager=" + program, "pager.log=true"}, {"core.hooksPath=" + filepath.Dir(program)}, {"log.showSignature=true", "gpg.program=" + program}, {"alias.log=!" + program}, {"alias.status=!" + program}, {"core.sshCommand=" + program}, {"core.alternateRefsCommand=" + program}, {"include.path=" + writeSettings(t, "[core]\n\tfsmonitor = "+program+"\n")}, {"includeIf.onbranch:main.path=" + writeSettings(t, "[diff]\n\texternal = "+program+"\n")}, {"extensions.worktreeConfig=true"}, {"color.ui=always"},
	} {
		dir := repository(t, settings...)
		write(t, filepath.Join(dir, ".gitattributes"), "*.dat diff=dat filter=dat\n")
		write(t, filepath.Join(dir, "x.dat"), "three\n")
		hooks := filepath.Join(dir, ".git", "hooks")
		write(t, filepath.Join(hooks, "post-index-change"), "#!/bin/sh\ntouch '"+mark+"'\n")
		if err := os.Chmod(filepath.Join(hooks, "post-index-change"), 0o755); err != nil {
			t.Fatal(err)
		}
		if settings[0] == "extensions.worktreeConfig=true" {
			write(t, filepath.Join(dir, ".git", "config.worktree"), "[core]\n\tfsmonitor = "+program+"\n")
		}
		for _, c := range []string{"git status", "git diff", "git log -p -2", "git show", "git blame x.dat", "git grep one", "git diff-files -p", "git describe --dirty", "git ls-files -m"} {
			os.Remove(mark)
			cmd := exec.Command("bash", "-c", c)
			cmd.Dir, cmd.Env = dir, gitEnviron()
			out, _ := cmd.CombinedOutput()
			_, err := os.Stat(mark)
			if err == nil {
				fired++
			}
			if err == nil && reads(dir, c) {
				t.Errorf("%s with %v counts as read-only and ran the program\n%s", c, settings, out)
			}
		}
	}
	if fired < 10 {
		t.Errorf("only %d commands ran a program: the test proves little", fired)
	}
}

// Settings that come between the look and the run start nothing either.
func TestQuietGit(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "mark")
	program := filepath.Join(t.TempDir(), "program")
	write(t, program, "#!/bin/sh\ntouch '"+mark+"'\n")
	if err := os.Chmod(program, 0o755); err != nil {
		t.Fatal(err)
	}
	dir := repository(t, "core.fsmonitor="+program)
	for _, more := range [][]string{nil, QuietGit()} {
		os.Remove(mark)
		cmd := exec.Command("git", "status")
		cmd.Dir, cmd.Env = dir, append(gitEnviron(), more...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if _, err := os.Stat(mark); (err == nil) != (more == nil) {
			t.Errorf("with %q the program ran: %v", more, err == nil)
		}
	}
}

func writeSettings(t *testing.T, text string) string {
	path := filepath.Join(t.TempDir(), "settings")
	write(t, path, text)
	return path
}

// Where git would find another repository than the one that the person sees, or enter one within it.
func TestGitInOtherRepositories(t *testing.T) {
	t.Parallel()
	dir := repository(t)
	runGit(t, dir, "worktree", "add", "-q", "tree")
	if c := "git -C tree status"; !reads(dir, c) {
		t.Errorf("%s in a worktree asks", c)
	}
	bare := repository(t)
	runGit(t, bare, "init", "-q", "--bare", "fixture")
	if reads(bare, "cd fixture && git status") {
		t.Error("a bare repository among the files counts as the person's")
	}
	// Git itself says which files make a folder a bare repository.
	for files := range 8 {
		half := repository(t)
		write(t, filepath.Join(half, "fixture/x"), "")
		for i, name := range []string{"objects/x", "refs/x", "HEAD"} {
			if files&(1<<i) != 0 {
				write(t, filepath.Join(half, "fixture", name), "ref: refs/heads/main\n")
			}
		}
		cmd := exec.Command("git", "rev-parse", "--git-dir")
		cmd.Dir, cmd.Env = filepath.Join(half, "fixture"), gitEnviron()
		out, err := cmd.Output()
		if bare := string(out) == ".\n"; err != nil || reads(half, "cd fixture && git status") == bare {
			t.Errorf("with files %b git works in %q (%v), and a status is read-only: %t", files, out, err, !bare)
		}
	}
	inner := repository(t)
	runGit(t, inner, "init", "-q", "inner")
	runGit(t, filepath.Join(inner, "inner"), "commit", "-q", "--allow-empty", "-m", "x")
	runGit(t, filepath.Join(inner, "inner"), "config", "core.fsmonitor", "./x")
	if reads(inner, "git -C inner status") {
		t.Error("a repository within, with settings that run a program, counts as read-only")
	}
	runGit(t, inner, "add", "inner")
	if reads(inner, "git status") {
		t.Error("git status would enter a submodule, whose settings run a program")
	}
	if none := t.TempDir(); reads(none, "git diff a b") {
		t.Error("git diff outside a repository reads any file")
	}
}

func TestIndexPaths(t *testing.T) {
	dir := repository(t)
	for _, version := range []string{"2", "4"} {
		runGit(t, dir, "update-index", "--index-version", version)
		index, err := os.ReadFile(filepath.Join(dir, ".git", "index"))
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := indexPaths(index); !ok || !slices.Equal(got, []string{"a.txt", "web/b.go", "x.dat"}) {
			t.Errorf("version %s: %q, %v", version, got, ok)
		}
		for i := range index { // cut anywhere it is refused, or shorter
			indexPaths(index[:i])
		}
	}
	runGit(t, dir, "update-index", "--split-index")
	if reads(dir, "git status") {
		t.Error("a split index was read as if it were whole")
	}
}

// Git's own index of files with long, similar and odd names is read as git ls-files reads it, in each version, and nothing of it is believed
// once it is damaged.
func TestIndexesAsGitReadsThem(t *testing.T) {
	dir := repository(t)
	long := strings.Repeat("long", 60) // a name of which the next one keeps little: the number of its bytes takes two bytes
	for _, name := range []string{long + "/" + long, long + "/z", "m", "a b/\u00e9", "later"} {
		write(t, filepath.Join(dir, name), "x")
	}
	runGit(t, dir, "add", ".")
	read := func() []byte {
		t.Helper()
		index, err := os.ReadFile(filepath.Join(dir, ".git", "index"))
		if err != nil {
			t.Fatal(err)
		}
		return index
	}
	for _, version := range []byte{2, 3, 4} {
		runGit(t, dir, "update-index", "--index-version", string('0'+version))
		if version > 2 { // it has flags of its own, which version 2 cannot hold
			runGit(t, dir, "update-index", "--skip-worktree", "later", "a.txt")
		}
		list := exec.Command("git", "ls-files", "-z")
		list.Dir, list.Env = dir, gitEnviron()
		out, err := list.Output()
		if err != nil {
			t.Fatal(err)
		}
		index := read()
		got, ok := indexPaths(index)
		if want := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"); index[7] != version || !ok || !slices.Equal(got, want) {
			t.Errorf("version %d (%d): %q, %t, want %q", index[7], version, got, ok, want)
		}
		for i := range index {
			for _, b := range []byte{0, 1, 0x7f, 0x80, 0xff, index[i] + 1} {
				old := index[i]
				index[i] = b
				indexPaths(index) // whatever it finds, it ends
				index[i] = old
			}
			indexPaths(index[:i])
		}
		for b := range 256 {
			index[7] = byte(b)
			if _, ok := indexPaths(index); ok && (b < 2 || b > 4) {
				t.Errorf("version %d is unknown, but was read", b)
			}
		}
	}
	runGit(t, dir, "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1", 40)+",module")
	if paths, ok := indexPaths(read()); ok || paths != nil {
		t.Errorf("a submodule was read as a file: %q", paths)
	}
	sparse := repository(t)
	runGit(t, sparse, "sparse-checkout", "init", "--cone", "--sparse-index")
	index, err := os.ReadFile(filepath.Join(sparse, ".git", "index"))
	if err != nil {
		t.Fatal(err)
	}
	if paths, ok := indexPaths(index); ok {
		t.Errorf("an index that leaves folders out was read as if it were whole: %q", paths)
	}
}

func FuzzIndexPaths(f *testing.F) {
	f.Add([]byte("DIRC\x00\x00\x00\x02\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, p []byte) {
		paths, ok := indexPaths(p)
		if !ok && paths != nil {
			t.Error("paths of what is no index")
		}
	})
}

// settingsOfGit are the settings that git reads from a text; ok is false if it refuses the text.
func settingsOfGit(t *testing.T, text string) (keys []string, ok bool) {
	t.Helper()
	cmd := exec.Command("git", "config", "--file", writeSettings(t, text), "--list", "--name-only", "-z")
	cmd.Env = gitEnviron()
	out, err := cmd.Output()
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 }), err == nil
}

// listedKey reports that quietSections has a setting, which git prints as section.subsection.key.
func listedKey(key string) bool {
	section, rest, _ := strings.Cut(key, ".")
	keys, known := quietSections[section]
	last := rest[strings.LastIndexByte(rest, '.')+1:]
	return known && (keys == "" || hasField(keys, last)) && !(strings.Contains(rest, ".") && (section == "diff" || section == "merge"))
}

// Settings are quiet if all that git reads from them is listed, and never otherwise.
func TestSettingsAsGitReadsThem(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	quiet := 0
	for range 400 {
		var b strings.Builder
		for range 1 + r.IntN(3) {
			b.WriteString(pick("", " ", "\t") + "[" + pick("core", "CORE", "remote", "branch", "Diff", "merge", "log", "user", "http", "filter", "alias", "include"))
			b.WriteString(pick("", "", ` "origin"`, ` ""`, ` "a b"`, `  "x"`) + "]" + pick("\n", "\n", "\n", " # x\n", " bare = x\n", " fsmonitor = x\n", "\r\n"))
			for range r.IntN(3) {
				b.WriteString(pick("\t", "", "  ") + pick("bare", "fileMode", "url", "fetch", "name", "algorithm", "context", "ff", "decorate", "fsmonitor", "pager", "hooksPath", "textconv", "command", "driver", "path", "uploadpack", "9x", "a_b", "# x", "; y"))
				b.WriteString(pick("", " = x", "=true", " = \"q\"", " = x # y", " = a \\\n  b", " ="))
				b.WriteString(pick("\n", "\n", "\r\n"))
			}
		}
		text := b.String()
		keys, ok := settingsOfGit(t, text)
		listed := !slices.ContainsFunc(keys, func(key string) bool { return !listedKey(key) })
		switch got := quietSettings(text); {
		case got && ok && !listed:
			t.Errorf("%q is quiet, but git reads %q", text, keys)
		case got:
			quiet++
		case ok && listed && len(keys) > 0 && !strings.ContainsAny(text, `\#`) && !strings.Contains(text, "] ") && !hasEmptySection(text):
			t.Errorf("%q is not quiet, and git reads only %q", text, keys)
		}
	}
	if quiet < 40 {
		t.Errorf("only %d texts were quiet", quiet)
	}
}

// hasEmptySection reports a section that is not listed, whose keys git would not print.
func hasEmptySection(text string) bool {
	for _, name := range []string{"[filter", "[alias", "[include", "[Diff ", "[merge "} {
		if strings.Contains(text, name) {
			return true
		}
	}
	return false
}

func FuzzGitSettings(f *testing.F) {
	f.Add("[core]\n\tbare = false\n[remote \"origin\"]\n\turl = x\n")
	f.Add("[core] fsmonitor = x\n")
	f.Fuzz(func(t *testing.T, text string) {
		if !quietSettings(text) || strings.ContainsAny(text, "\x00\r") {
			return
		}
		if keys, ok := settingsOfGit(t, text); ok && slices.ContainsFunc(keys, func(key string) bool { return !listedKey(key) }) {
			t.Errorf("%q counts as quiet, git reads %s", text, keys)
		}
	})
}

// What git config changes is known, for each of its options: git itself says whether its settings are others afterwards.
func TestGitConfigAsGitDoesIt(t *testing.T) {
	dir := repository(t, "a.b=1", "a.c=2", "url.x.insteadOf=y")
	settings := filepath.Join(dir, ".git", "config")
	before, err := os.ReadFile(settings)
	if err != nil {
		t.Fatal(err)
	}
	changed := 0
	options := []string{"", "--get", "--get-all", "--get-regexp", "--get-urlmatch", "--get-color", "--get-colorbool", "--list", "-l", "--show-origin", "--add", "--unset", "--unset-all", "--replace-all", "--rename-section", "--remove-section", "-e", "--edit", "--local", "--type int", "-t bool", "--default 3 --get", "--unse", "--unset-a", "--ad", "--repl", "--ed", "--rem", "--ren", "-z", "--name-only -l"}
	for _, words := range []string{"", "a.b", "a.b 3", "a.b 3 4", "a", "a z", "edit"} {
		for _, option := range options {
			commands := []string{"git config " + option + " " + words}
			if option != "" && words != "" && len(option) < 7 {
				commands = append(commands, "git config "+words+" "+option, "git config --get "+option+" "+words)
			}
			for _, command := range commands {
				cmd := exec.Command("sh", "-c", command)
				cmd.Dir, cmd.Env = dir, append(gitEnviron(), "GIT_EDITOR=echo '# edited' >>")
				_ = cmd.Run() // many have no meaning
				after, err := os.ReadFile(settings)
				if err != nil {
					t.Fatal(err)
				}
				if slices.Equal(before, after) {
					continue
				}
				changed++
				if a := analyzedIn(dir, command); len(a.Protected) == 0 && !a.Opaque {
					t.Errorf("%s changes the settings, but is said to touch %v and %v", command, a.Writes, a.Protected)
				}
				write(t, settings, string(before))
			}
		}
	}
	if changed < 20 {
		t.Errorf("only %d of them changed anything", changed)
	}
	for _, command := range []string{"git config a.b", "git config --get a.b", "git config --get-all a.b", "git config --get-regexp a", "git config --get-urlmatch a x", "git config --get-color a.b", "git config --get-color a.b red", "git config -l", "git config --list", "git config --show-origin a.b", "git config list", "git config get a.b", "git config get --all a.b", "git config -z --type=bool --get a.b", "git config --default x --get a.b", "git config a.b", "git config --file x --get a.b", "git config -f x a.b"} {
		if a := analyzedIn(dir, command); len(a.Protected) > 0 {
			t.Errorf("%s only prints, but is said to change %v", command, a.Protected)
		}
	}
	// The version of git here may know no subcommands and no system-wide settings.
	for command, want := range map[string]string{"git config set a.b 3": filepath.Join(dir, ".git/config"), "git config unset a.b": filepath.Join(dir, ".git/config"), "git config edit": filepath.Join(dir, ".git/config"), "git config rename-section a z": filepath.Join(dir, ".git/config"), "git config --global a.b 3": "/home/u/.gitconfig", "git config --system a.b 3": "/etc/gitconfig", "git config --file ../x a.b 3": filepath.Join(filepath.Dir(dir), "x"), "git config --file=../x a.b": filepath.Join(filepath.Dir(dir), "x")} {
		a := analyzedIn(dir, command)
		touched := fmt.Sprint(a.Protected, a.External)
		if !strings.Contains(touched, want+" write") {
			t.Errorf("%s should write %s, but touches %s", command, want, touched)
		}
	}
}

// analyzedIn is the analysis in a repository whose settings are protected.
func analyzedIn(dir, command string) *scan.Analysis {
	return Analyze(scan.Request{Command: command, Dir: dir, Root: dir, Home: "/home/u", Protected: func(path string, _ scan.Access) (string, bool) {
		return "settings", path == filepath.Join(dir, ".git/config")
	}})
}

// What Git has kept of a hidden file is printed by more commands than those that only read; the sandbox hides the file, not the objects.
func TestHiddenFilesThatGitPrintsFromItsObjects(t *testing.T) {
	t.Parallel()
	dir := repository(t)
	write(t, filepath.Join(dir, "web/.prod.env"), "KEY=1\n")
	runGit(t, dir, "add", "-f", "web/.prod.env")
	check := func(commands []string, want string) {
		t.Helper()
		for _, command := range commands {
			a := Analyze(scan.Request{Command: command, Dir: dir, Root: dir, Hidden: func(path string) bool { return strings.HasSuffix(path, ".env") }})
			var got []string
			for _, path := range a.Found {
				got = append(got, strings.TrimPrefix(path, dir+"/"))
			}
			if strings.Join(got, " ") != want || a.ReadOnly {
				t.Errorf("%s: found %q, want %q; read-only %v", command, got, want, a.ReadOnly)
			}
		}
	}
	prints := []string{"git archive HEAD | tar xO", "git fast-export HEAD | head", "git bundle create - HEAD | strings", "git cat-file --batch-all-objects --batch", "echo HEAD:web/.prod.env | git cat-file --batch", "git format-patch --stdout --root HEAD",
		"git checkout-index -p web/.prod.env > x", "git -c merge.tool=x diff", "git pack-objects --all --stdout | strings", "cd web && git archive HEAD", "git -C web archive HEAD", "GIT_PAGER=cat git log -p > x"}
	check(prints, "web/.prod.env")
	check([]string{"git commit -m x", "git add -A", "git push", "git stash", "git checkout -b x", "git log --oneline > x"}, "")
	// Settings that name a program, and an index that cannot be read, change nothing.
	runGit(t, dir, "config", "filter.x.clean", "cat")
	check([]string{"git log -p", "git show HEAD", "git archive HEAD"}, "web/.prod.env")
	write(t, filepath.Join(dir, ".git/index"), "no index")
	check([]string{"git archive HEAD"}, "web/.prod.env")
}

// What a search would print of files that may not be read without asking is found beforehand.
func TestHiddenFilesBelow(t *testing.T) {
	t.Parallel()
	dir := repository(t)
	for _, name := range []string{".env", "web/prod.env", "web/.env.local", "docs/x.md"} {
		write(t, filepath.Join(dir, name), "KEY=1\n")
	}
	runGit(t, dir, "add", "-f", "web/prod.env")
	hidden := func(path string) bool { return strings.Contains(filepath.Base(path), ".env") }
	for command, want := range map[string]string{
		"grep -rn KEY .": ".env web/.env.local web/prod.env", "grep -rn KEY": ".env web/.env.local web/prod.env", "grep -rn KEY docs": "", "grep -n KEY a.txt": "", "grep -R -e KEY web": "web/.env.local web/prod.env", "rg KEY": "web/prod.env", "rg --hidden KEY": ".env web/.env.local web/prod.env", "rg -uuu KEY web": "web/.env.local web/prod.env", "diff -r web docs": "web/.env.local web/prod.env", "cd web && grep -r KEY": "web/.env.local web/prod.env", "grep -rf docs/x.md": ".env web/.env.local web/prod.env",
		"git grep KEY": "web/prod.env", "git diff": "web/prod.env", "git diff --stat": "", "git diff --stat -p": "web/prod.env", "git log --oneline": "", "git log -p": "web/prod.env", "git status": "", "git status -v": "web/prod.env", "ls -R": "", "rg KEY docs": "",
	} {
		a := Analyze(scan.Request{Command: command, Dir: dir, Root: dir, Hidden: hidden})
		var got []string
		for _, path := range a.Found {
			got = append(got, strings.TrimPrefix(path, dir+"/"))
		}
		slices.Sort(got)
		if strings.Join(got, " ") != want || !a.ReadOnly {
			t.Errorf("%s: found %q, want %q; read-only %v (%s)", command, got, want, a.ReadOnly, a.Why)
		}
	}
	if a := Analyze(scan.Request{Command: "git show HEAD:.env", Dir: dir, Root: dir}); !slices.Contains(a.Reads, filepath.Join(dir, ".env")) {
		t.Errorf("git show HEAD:.env reads %q", a.Reads)
	}
}
