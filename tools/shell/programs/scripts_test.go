package programs

import (
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// A script of sed that counts as harmless is one that sed takes with --sandbox, which refuses what runs programs and uses files.
func TestSedScriptsAsSedReadsThem(t *testing.T) {
	if out, err := exec.Command("sed", "--sandbox", "p").CombinedOutput(); err != nil {
		t.Skipf("sed has no --sandbox: %s", out)
	}
	pieces := []string{"s", "y", "e", "w", "r", "W", "R", "p", "d", "/", "/", "/", "|", ",", "#", "x", "a", "i", "c", "b", "t", "1", "$", "!", ";", ";", "\n", " ", "{", "}", "[", "]", "^", "\\", "g", "I", "M", ":", "s/a/b/", "s|x|", "y/ab/cd/", "e id", "w out", "/x/", "F", "q5", "[[:alpha:]]", "[^]/]"}
	r := rand.New(rand.NewPCG(3, 4))
	accepted := 0
	for n := 0; accepted < 400 && n < 200_000; n++ {
		var b strings.Builder
		for range 1 + r.IntN(7) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		script := b.String()
		if !strings.ContainsAny(script, "ewrWRF") || !sedScript(script) {
			continue
		}
		accepted++
		if out, _ := exec.Command("sed", "--sandbox", "-n", script, "/dev/null").CombinedOutput(); strings.Contains(string(out), "sandbox mode") {
			t.Errorf("%q counts as harmless: %s", script, out)
		}
	}
	if accepted < 400 {
		t.Errorf("only %d scripts were accepted", accepted)
	}
	// Each command of sed(1) that uses no file, with each kind of address, is read to its end.
	for _, address := range []string{"", "1", "$", "1,3", "/x/", "/x/,/y/I", "0~2", "2,+3", "1!", `/a\/b/`, "/[a-z]/M"} {
		for _, command := range []string{"p", "d", "=", "q", "P", "D", "n", "N", "g", "G", "h", "H", "x", "l", "a text", `a\` + "\ntext", "i e", "c w x", ":a", "b a", "t", "T end", "s/a/b/", "s/a/b/gpI3", `s|a\|b|c|`, "s,a,b,", "s#a#&#", "s@a@b@", "s%a%b%", "s/[e]/w/", "y/abc/xyz/", "{p;d}", "s/a/b/;s/c/d/", "s/a/b/ ; p", "y/e/w/\np"} {
			if script := address + command; !sedScript(script) {
				t.Errorf("%q is asked about", script)
			}
		}
	}
}

// What psql lists as informational only prints. What it lists under files, the system and the query buffer is asked about.
func TestCommandsThatPsqlHas(t *testing.T) {
	out, err := exec.Command("psql", "--help=commands").Output()
	if err != nil {
		t.Skip("psql is missing")
	}
	section, n := "", 0
	for line := range strings.Lines(string(out)) {
		if !strings.HasPrefix(line, " ") {
			section = strings.TrimSpace(line)
		}
		command, ok := strings.CutPrefix(line, "  \\")
		if !ok {
			continue
		}
		command, _, _ = strings.Cut(strings.NewReplacer("[", " ", "+", " ").Replace(command), " ")
		leaves := psqlLeaves("\\" + strings.TrimSpace(command) + " x")
		switch {
		case section == "Informational" && leaves != "":
			t.Errorf("\\%s only prints, but is asked about", command)
		case (section == "Input/Output" && command != "echo" || section == "Large Objects" || section == "Query Buffer" || section == "Operating System" && command != "timing") && leaves == "":
			t.Errorf("\\%s is not asked about (%s)", command, section)
		}
		n++
	}
	if n < 60 {
		t.Errorf("psql lists only %d commands", n)
	}
	for _, harmless := range []string{`\x`, `\a`, `\t`, `\H`, `\q`, `\timing on`, `\conninfo`, `\pset pager off`, `\encoding`, `\h select`, `-c\dt`, `--command=\l+`, ` \z t`, "select 1"} {
		if leaves := psqlLeaves(harmless); leaves != "" {
			t.Errorf("%s is asked about: %s", harmless, leaves)
		}
	}
	for _, more := range []string{`\echo ` + "`id`", `\dt | x`, `\dt \! id`, `\d!x`, `\!`, `\`, `\1`} {
		if psqlLeaves(more) == "" {
			t.Errorf("%s is not asked about", more)
		}
	}
}

// A command of sqlite3 that is not asked about is one that it runs in its safe mode.
func TestCommandsThatSqliteHas(t *testing.T) {
	dir := t.TempDir() // even in its safe mode some commands leave a file
	safe := func(command string) string {
		cmd := exec.Command("sqlite3", "-safe", "-batch", ":memory:", command)
		cmd.Dir = dir
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	help, err := exec.Command("sqlite3", "-batch", ":memory:", ".help").Output()
	if err != nil {
		t.Skip("sqlite3 is missing")
	}
	refused := 0
	for line := range strings.Lines(string(help)) {
		command, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !strings.HasPrefix(command, ".") || command == ".exit" || command == ".quit" {
			continue
		}
		if out := safe(command + " x y"); strings.Contains(out, "safe mode") {
			refused++
			if sqliteLeaves("sqlite3", command+" x y") == "" {
				t.Errorf("%s is not asked about: %s", command, out)
			}
		}
	}
	if refused < 8 {
		t.Errorf("the safe mode refuses only %d commands", refused)
	}
	for word := range strings.FieldsSeq(dotCommands) {
		if leaves := sqliteLeaves("sqlite3", "."+word+" x"); leaves != "" {
			t.Errorf(".%s is asked about", word)
		}
		if sqliteLeaves("sqlite3", "."+word+" | x") == "" {
			t.Errorf(".%s with a pipe is not asked about", word)
		}
	}
	for _, sql := range []string{"select readfile('x')", "select writefile('x', 1)", "select load_extension('x')", "select edit('x')", "attach 'x' as y"} {
		if out := safe(sql); !strings.Contains(out, "safe mode") && !strings.Contains(out, "no such function") || sqliteLeaves("sqlite3", sql) == "" {
			t.Errorf("%s is not asked about: %s", sql, out)
		}
	}
}

// xargs puts a name into the place of its mark. Only where it stands alone it is a name that stays in the project.
func TestXargsPutsNamesInPlaceOfItsMark(t *testing.T) {
	dir := t.TempDir()
	for _, form := range []string{"-I{}", "-I {}", "-I%", "-i", "-i{}", "--replace", "--replace={}", "-J %"} {
		mark := "{}"
		if strings.Contains(form, "%") {
			mark = "%"
		}
		for word, inside := range map[string]bool{mark: true, "../" + mark: false, "/etc/" + mark: false, "~/" + mark: false, "x -- " + mark: true} {
			command := "find . -name x | xargs " + form + " touch " + word
			a := Analyze(scan.Request{Command: command, Dir: dir, Root: dir, Home: "/home/u"})
			if held := !a.Opaque && len(a.External) == 0; held != inside {
				t.Errorf("%s\nstays inside: %t, want %t (%v, %s)", command, held, inside, a.External, a.Why)
			}
		}
	}
}

// A file that curl opens because of a value is noted. curl says which it opens: without the file it ends before it connects.
func TestFilesThatCurlOpens(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is missing")
	}
	dir := t.TempDir()
	opened := 0
	for _, option := range []string{"-d", "--data-binary", "--data-raw", "--data-urlencode", "--json", "-F", "--form-string", "-H", "-A", "-e"} {
		for _, value := range []string{"@/nowhere/x", "me@/nowhere/x", "a=@/nowhere/x", "a=</nowhere/x", "</nowhere/x", "a=b@/nowhere/x", "a=@/nowhere/x;type=text/plain"} {
			cmd := exec.Command("curl", option, value, "http://127.0.0.1:1/")
			out, err := cmd.CombinedOutput()
			code := cmd.ProcessState.ExitCode()
			const cannotRead, usage = 26, 2 // its exit codes
			reads := code == cannotRead || strings.Contains(string(out), "/nowhere/x")
			if reads {
				opened++
			}
			between := []string{" ", ""}
			if len(option) > 2 {
				between = []string{" ", "="}
			}
			for _, between := range between {
				command := "curl " + option + between + "'" + value + "' http://127.0.0.1:1/"
				a := Analyze(scan.Request{Command: command, Dir: dir, Root: dir})
				if noted := len(a.External) > 0; noted != reads && code != usage {
					t.Errorf("%s: curl opens the file: %t (%v), noted: %t\n%s", command, reads, err, noted, out)
				}
			}
		}
	}
	if opened < 6 {
		t.Errorf("curl opened a file only %d times", opened)
	}
}
