package programs

import (
	"os"
	"path/filepath"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// ownGrammar are programs whose words Go code analyzes, so that their records do not say all that an option means.
func ownGrammar(r *Record) bool {
	program, _, _ := strings.Cut(r.name, " ")
	top := (*Set)(nil).record(program)
	switch program {
	case "tar", "dd", "test", "[", "ln", "jq", "find", "xargs", "env", "-Wp", "ld-linux", "ld.so", "scp", "rsync", "sftp":
		return true
	}
	return top.Shell || top.Code != ""
}

// spelledOption returns how a person may write an option with a value. flag is a short option without a value, or empty.
func spelledOption(s spec, o option, flag, value string) []string {
	glue := func(between string) string { return o.name + between + value }
	switch {
	case strings.HasSuffix(o.name, ":"):
		return []string{glue("")}
	case o.glued && len(o.name) > 2:
		return []string{glue("=")}
	case o.glued:
		return nil
	case s.driver:
		all := []string{glue(" "), glue("=")}
		if o.name[1] != '-' {
			all = append(all, glue(""))
		}
		return all
	case s.single:
		return []string{glue(" "), glue("="), "-" + glue(" "), "-" + glue("=")}
	case strings.HasPrefix(o.name, "--"):
		name, all := o.name, []string{glue(" "), glue("=")}
		for short := len(name) - 1; short > 3 && !strings.Contains(name, "*"); short-- {
			if slices.ContainsFunc(s.options, func(p option) bool { return p.name != name && strings.HasPrefix(p.name, name[:short]) }) {
				break
			}
			all = append(all, name[:short]+"="+value, name[:short]+" "+value)
		}
		return all
	case len(o.name) > 2:
		return []string{glue(" "), glue("=")}
	}
	all := []string{glue(" "), glue("")}
	if flag != "" {
		all = append(all, flag+o.name[1:]+" "+value, flag+o.name[1:]+value)
	}
	return all
}

// calls calls f for each record that alone says what the words of a program mean: how a call of it begins, and the words of a call
// with this beginning.
func calls(t *testing.T, f func(call string, at reached)) {
	t.Helper()
	var walk func(call string, r *Record)
	walk = func(call string, r *Record) {
		if program, _, _ := strings.Cut(call, " "); program != "time" && !ownGrammar(r) { // time is a word of the shell
			begin := call
			if call == "git" {
				begin += " unlisted" // its own options are those that all its commands share
			}
			var args []scan.Word
			for word := range strings.FieldsSeq(begin) {
				args = append(args, scan.Plain(word))
			}
			at := reach(&scan.Visit{Args: args}, (*Set)(nil).record(program))
			if at.last().name != r.name {
				t.Errorf("%s ends at the record of %s, not of %s", begin, at.last().name, r.name)
			}
			f(begin, at)
		}
		for name, sub := range r.Sub {
			walk(call+strings.Repeat(" a", r.Skip)+" "+name, sub)
		}
	}
	seen := map[span]bool{}
	for _, s := range builtIn().at {
		if !seen[s] {
			seen[s] = true
			r := loaded.get(s)
			walk(r.name, r)
		}
	}
}

// A call is described by the record of its innermost subcommand, which the person is told.
func TestCallsNameTheirRecord(t *testing.T) {
	dir := t.TempDir()
	calls(t, func(call string, at reached) {
		if slices.Contains([]string{"cd", "coproc", "export", "false", "source", "true", "type", "unset"}, call) {
			return // builtins of the shell are analyzed in package scan
		}
		want := at.last().file + ": " + at.last().name
		for _, command := range []string{call, call + " ./x", call + " --unlisted"} {
			a := Analyze(scan.Request{Patience: time.Minute, Command: command, Dir: dir, Root: dir})
			if !slices.ContainsFunc(a.Calls, func(c scan.Call) bool { return c.Record == want }) {
				t.Errorf("%s: no call has the record %s: %+v", command, want, a.Calls)
			}
		}
	})
}

// What a record says of an option is found however the option is written: with a blank, with "=", glued on, abbreviated, behind other
// letters. The list of options is the oracle: their kinds say what must be found.
func TestOptionsInEverySpelling(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(filepath.Dir(dir), "out")
	n := 0
	calls(t, func(call string, at reached) {
		s, flag := at.spec(), ""
		for _, o := range s.options {
			if o.kind == kindFlag && len(o.name) == 2 && !s.single && !s.driver {
				flag = o.name
			}
		}
		for _, o := range at.last().spec.options {
			value, want := "../out", scan.PathAccess{Path: outside, Access: scan.Write}
			runs := ""
			switch o.kind {
			case kindRead, kindLook, kindListRead:
				want.Access = scan.Read
			case kindForm:
				value, want.Access = "a=@../out", scan.Read
			case kindMount:
				value = "../out:/x"
			case kindScript:
				value, runs = "'rm x'", "rm x"
			case kindSelf:
				value, runs = "'rm x'", strings.Fields(call)[0]+" rm x"
			case kindCall:
				value, runs = "rm x", "rm x"
			case kindWrite, kindGeneric, kindListWrite:
			default:
				continue
			}
			for _, text := range spelledOption(s, o, flag, value) {
				text = strings.ReplaceAll(text, "*", "go")
				n++
				command := call + " " + text
				a := Analyze(scan.Request{Patience: time.Minute, Command: command, Dir: dir, Root: dir, Home: dir})
				if runs != "" && !slices.Contains(a.Commands(), runs) {
					t.Errorf("%s\nshould run %s, but runs %q (opaque: %t)", command, runs, a.Commands(), a.Opaque)
				}
				if runs == "" && !slices.Contains(a.External, want) {
					t.Errorf("%s\nshould %s %s, but touches %v (opaque: %t)", command, want.Access, outside, a.External, a.Opaque)
				}
			}
		}
	})
	if n < 5000 {
		t.Errorf("only %d commands", n)
	}
}

// An option takes as many words as its record says: a flag that took the next word, or a value that was left for a file, would hide what
// follows.
func TestOptionsTakeTheirValuesOnly(t *testing.T) {
	dir := t.TempDir()
	calls(t, func(call string, at reached) {
		if at.last().Runs != "" {
			return // see TestWrappersFindTheirCall
		}
		s := at.spec()
		for _, o := range at.last().spec.options {
			value, kinds := "", s
			switch {
			case o.kind == kindFlag:
			case o.kind == kindText && !o.glued && !negative(o.name): // join -1 FIELD: its value is read as a file too
				value = "../value"
			default:
				continue
			}
			if o.first && kinds.words[0] == kindText {
				kinds.words = kinds.words[1:]
			}
			for _, text := range spelledOption(s, o, "", value) {
				if value == "" {
					text = o.name
				}
				a := Analyze(scan.Request{Patience: time.Minute, Command: call + " " + text + " ../out", Dir: dir, Root: dir, Home: dir})
				touches := func(name string) bool {
					return slices.ContainsFunc(a.External, func(p scan.PathAccess) bool { return filepath.Base(p.Path) == name })
				}
				if want := kinds.word(0, 1) != kindText; touches("out") != want {
					t.Errorf("%s %s ../out\ntouches %v, want the last word: %t", call, text, a.External, want)
				}
				// A value of curl -b may be a file, and whatever words of Git may be paths is taken for one.
				if touches("value") && call != "curl" && call != "git grep" {
					t.Errorf("%s %s ../out\ntouches %v, but the value is a text", call, text, a.External)
				}
			}
		}
	})
}

// A command that ends where a value should follow is understood like any other: what fails is asked about, and would hide what is wrong.
func TestOptionsWithoutTheirValues(t *testing.T) {
	dir := t.TempDir()
	calls(t, func(call string, at reached) {
		last := at.last()
		options := strings.Fields(last.Starts + " " + last.Ends + " " + last.Values)
		for _, list := range last.Options {
			options = append(options, strings.Fields(list)...)
		}
		for _, option := range append(options, "", "-", "--", "-x", "--x=", "''") {
			if strings.ContainsAny(option, "*=") && option != "--x=" {
				continue
			}
			for _, command := range []string{call + " " + option, call + " a " + option, "env " + call + " " + option} {
				if a := Analyze(scan.Request{Patience: time.Minute, Command: command, Dir: dir, Root: dir, Home: dir}); strings.Contains(a.Why, "the analysis failed") {
					t.Errorf("%s: %s", command, a.Why)
				}
			}
		}
	})
}

// No option is taken for a file, in any command of the tables.
func TestOptionsAreNoFiles(t *testing.T) {
	dir := t.TempDir()
	lists, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			t.Fatal(err)
		}
		for command := range strings.Lines(string(text)) {
			command = strings.ReplaceAll(strings.TrimSuffix(command, "\n"), "⏎", "\n")
			if command == "" || command[0] == '\t' || command[0] == '#' || strings.Contains(command, " -- ") {
				continue
			}
			n++
			a := Analyze(scan.Request{Patience: time.Minute, Command: command, Dir: dir, Root: dir, Home: "/home/u"})
			for _, path := range slices.Concat(a.Reads, a.Writes) {
				if name := filepath.Base(path); strings.HasPrefix(name, "-") && strings.Contains(command, " "+name) && !negative(name) && name != "-" {
					t.Errorf("%s\ntakes %s for a file", command, name)
				}
			}
		}
	}
	if n < 2000 {
		t.Errorf("only %d commands", n)
	}
}

// The words of a call that are not options are what the record says of them in order. The last kind stands for all that follow if it
// repeats, and a target stays the last word however many words there are.
func TestWordsInTheirOrder(t *testing.T) {
	dir := t.TempDir()
	letters := map[kind]string{kindRead: "r", kindLook: "r", kindTree: "r", kindFrom: "r", kindText: "-"}
	seen := map[string]int{}
	calls(t, func(call string, at reached) {
		r := at.last()
		if r.Words == "" || r.Runs != "" || len(r.Sub) > 0 || onlyReads(r, nil) || call == "cd" || call == "source" {
			return // builtins of the shell are analyzed in package scan
		}
		kinds := ""
		for word := range strings.FieldsSeq(r.Words) {
			word = strings.TrimSuffix(word, "...")
			if letter := letters[wordKinds[word]]; letter != "" {
				kinds += letter
			} else {
				kinds += "w"
			}
		}
		for n := range 5 {
			want := kinds[:min(n, len(kinds))]
			switch more := n - len(kinds); {
			case more <= 0:
			case strings.HasSuffix(r.Words, "..."):
				want += strings.Repeat(kinds[len(kinds)-1:], more)
			case len(kinds) > 1: // SOURCE… TARGET
				want = kinds[:len(kinds)-2] + strings.Repeat(kinds[len(kinds)-2:len(kinds)-1], more+1) + kinds[len(kinds)-1:]
			default:
				want = strings.Repeat(kinds, n)
			}
			command, got := call, []byte(strings.Repeat("-", n))
			for i := range n {
				command += " ../" + string(rune('a'+i))
			}
			a := Analyze(scan.Request{Patience: time.Minute, Command: command, Dir: dir, Root: dir, Home: dir})
			for _, p := range a.External {
				// Whatever words of a Git command that reads may be paths is taken for one.
				if name := filepath.Base(p.Path); len(name) == 1 && !(strings.HasPrefix(call, "git ") && want[name[0]-'a'] == '-') {
					got[name[0]-'a'] = p.Access[0]
				}
			}
			if string(got) != want {
				t.Errorf("%s\ntouches %s, want %s (%s)", command, got, want, r.Words)
			}
			seen[r.Words]++
		}
	})
	if len(seen) < 15 {
		t.Errorf("only %d kinds of words: %v", len(seen), seen)
	}
}

// A program that starts another one, or loads code, is asked about as a whole however the option is written, and rules that deny see what it
// starts.
func TestStartingOptionsInEverySpelling(t *testing.T) {
	dir := t.TempDir()
	n := 0
	calls(t, func(call string, at reached) {
		r := at.last()
		for f := range strings.FieldsSeq(r.Starts) {
			texts := []string{f + " 'rm x'", f + "='rm x'"}
			switch {
			case strings.HasSuffix(f, "="):
				texts = []string{f + "'rm x'"}
			case len(f) == 2:
				texts = []string{f + " 'rm x'", f + "'rm x'"}
			case strings.HasPrefix(f, "--"):
				for short := len(f) - 1; short > 3; short-- {
					texts = append(texts, f[:short]+" 'rm x'", f[:short]+"='rm x'")
				}
			case r.Style == "single":
				texts = append(texts, "-"+f+" 'rm x'", "-"+f+"='rm x'")
			}
			for _, text := range texts {
				n++
				command := call + " " + text
				a := Analyze(scan.Request{Patience: time.Minute, Command: command, Dir: dir, Root: dir, Home: dir})
				if !a.Opaque || a.Bounded || !slices.ContainsFunc(a.Calls, func(c scan.Call) bool { return c.NoGrant }) {
					t.Errorf("%s\nis not asked as a whole: opaque %t, bounded %t", command, a.Opaque, a.Bounded)
				}
				if !slices.Contains(a.Commands(), "rm x") {
					t.Errorf("%s\nrules do not see rm x, only %q", command, a.Commands())
				}
			}
		}
	})
	if n < 500 {
		t.Errorf("only %d commands", n)
	}
}

// examples are texts that an expression matches, one for each of its alternatives.
func examples(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpLiteral:
		return []string{string(re.Rune)}
	case syntax.OpCharClass:
		return []string{string(re.Rune[len(re.Rune)-1:])}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return []string{"x"}
	case syntax.OpCapture, syntax.OpPlus:
		return examples(re.Sub[0])
	case syntax.OpRepeat:
		return []string{strings.Repeat(examples(re.Sub[0])[0], max(re.Min, 1))}
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			all = append(all, examples(sub)...)
		}
		return all
	case syntax.OpConcat:
		all := []string{""}
		for _, sub := range re.Sub {
			var longer []string
			for _, end := range examples(sub) {
				for _, begin := range all {
					longer = append(longer, begin+end)
				}
			}
			all = longer
		}
		return all
	}
	return []string{""} // what may be missing, and the ends of the text
}

// A word that makes a command opaque does so also as an option and a value with a blank between them, and in quotes.
func TestOpaqueWordsInEverySpelling(t *testing.T) {
	dir := t.TempDir()
	n := 0
	calls(t, func(call string, at reached) {
		for _, text := range at.last().Opaque {
			re, err := syntax.Parse(text, syntax.Perl)
			if err != nil {
				t.Fatal(err)
			}
			for _, word := range examples(re) {
				if !matchesAny(at.last().opaque, word) || matchesAny(at.last().except, word) || strings.ContainsAny(word, "\n'") {
					continue
				}
				words := []string{"'" + word + "'"}
				if len(word) > 2 && word[0] == '-' && word[1] != '-' && at.last().Style == "" {
					words = append(words, word[:2]+" '"+word[2:]+"'")
				}
				if option, value, ok := strings.Cut(word, "="); ok && word[0] == '-' {
					words = append(words, option+" '"+value+"'")
				}
				for _, word := range words {
					n++
					if a := Analyze(scan.Request{Patience: time.Minute, Command: call + " " + word, Dir: dir, Root: dir}); !a.Opaque {
						t.Errorf("%s %s\nis not opaque (%s)", call, word, text)
					}
				}
			}
		}
	})
	if n < 100 {
		t.Errorf("only %d commands", n)
	}
	// What is harmless glued on is so behind a blank.
	for _, command := range []string{"cmake -DCMAKE_C_COMPILER=/usr/bin/gcc .", "cmake -D CMAKE_C_COMPILER=/usr/bin/gcc .", "cmake -D CMAKE_BUILD_TYPE=Release ."} {
		if a := Analyze(scan.Request{Patience: time.Minute, Command: command, Dir: dir, Root: dir}); a.Opaque {
			t.Errorf("%s is opaque: %s", command, a.Why)
		}
	}
}

// Whatever options stand before it, the call of a wrapper is found, and so is the folder in which it runs.
func TestWrappersFindTheirCall(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "work")
	for _, path := range []string{dir, filepath.Join(base, "v/w")} {
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	calls(t, func(call string, at reached) {
		r := at.last()
		if r.Runs != "command" {
			return
		}
		if call == "runuser" {
			call += " -u me" // otherwise it starts a shell
		}
		inner := "rm ../x"
		for words, when := range r.InFront {
			if hasField(when, "*") {
				inner = words + " " + inner
			}
		}
		s := at.spec()
		check := func(options string, o option) {
			n++
			command := call + options
			if r.Words == "dir" {
				command += " ../v/w"
			} else {
				command += strings.Repeat(" 1", r.Skip)
			}
			if r.Dashes {
				command += " --"
			}
			command += " rm ../x; cat ../after" // the shell stays in its folder
			a := Analyze(scan.Request{Patience: time.Minute, Command: command, Dir: dir, Root: dir, Home: dir})
			if !slices.ContainsFunc(a.Calls, func(c scan.Call) bool { return c.Text == inner }) {
				t.Errorf("%s\n%s is not among %q", command, inner, a.Commands())
			}
			want := filepath.Join(base, "x")
			if o.kind == kindDir || r.Words == "dir" {
				want = filepath.Join(base, "v/x")
			}
			for _, want := range []string{want, filepath.Join(base, "after")} {
				if !slices.ContainsFunc(a.External, func(p scan.PathAccess) bool { return p.Path == want }) {
					t.Errorf("%s\nshould touch %s, but touches %v", command, want, a.External)
				}
			}
		}
		check("", option{})
		for _, o := range at.last().spec.options {
			switch value := "../v/w"; {
			case o.kind == kindFlag:
				check(" "+o.name, o)
			case o.kind == kindScript || o.kind == kindSelf || o.kind == kindCall:
			default:
				for _, text := range spelledOption(s, o, "", value) {
					check(" "+text, o)
				}
			}
		}
	})
	if n < 200 {
		t.Errorf("only %d commands", n)
	}
}
