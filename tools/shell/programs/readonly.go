package programs

import (
	"regexp"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// readOnly reports that a call, with the options it has, changes nothing and starts no other program. Callers may let such a call run
// without approval, so the result is false in every case of doubt.
func readOnly(name string, c *scan.Visit) bool {
	r := recordOf(c, name)
	bad, args := r.Ends, c.Args[1:]
	// A program that can change something still only prints with --version or the like (Record.Version).
	if !r.Reads {
		return len(args) == 1 && hasField(r.Version, args[0].Text)
	}
	// words counts the words that are not options. For some programs their number decides whether a file is written.
	words := 0
	for _, a := range args {
		if scan.NamesSecret(a.Source) {
			return false // the value would be printed and sent to the model
		}
		if !a.Known() {
			// A word whose value is unknown may be one of the options in Ends, or a word that decides what the program does, such as the
			// script of sed. For echo, which has neither, it changes nothing.
			if bad != "" || name == "sed" || strings.HasSuffix(name, "awk") || name == "uniq" || name == "hostname" || name == "xxd" {
				return false
			}
			continue
		}
		s := a.Text
		if v, ok := a.One(); ok {
			s = v
		}
		// "-" alone stands for standard input and is a word.
		if len(s) < 2 || s[0] != '-' {
			words++
			continue
		}
		if optionIn(s, bad) {
			return false
		}
	}
	switch name {
	case "uniq", "xxd":
		// The second word is a file to write; for xxd that is also so for a "--" after the first word.
		return words <= 1 && (len(args) == 0 || args[len(args)-1].Text != "--")
	// A word sets the name of the machine.
	case "hostname":
		return words == 0
	// A word that does not begin with "+" sets the clock.
	case "date":
		return words == 0 || words == 1 && strings.HasPrefix(args[len(args)-1].Text, "+")
	// Only these forms count as harmless. Others may hold the letter e, which prints the environments of processes, with their keys.
	case "ps":
		return len(args) == 0 || len(args) == 1 && (args[0].Text == "aux" || args[0].Text == "-ef" || args[0].Text == "-e" || args[0].Text == "-A" ||
			args[0].Text == "ax")
	case "jq":
		for _, a := range args {
			if jqLooksAround().MatchString(a.Text) {
				return false
			}
		}
	case "sed", "gsed":
		return sedSilent(args)
	case "awk", "gawk", "mawk", "nawk":
		return awkSilent(args)
	case "sleep":
		return words == 1
	}
	return true
}

// optionIn reports that an argument s is, abbreviates or contains one of the options in bad, a list as in a Record. A short option
// matches as any letter of a cluster, a long one in any abbreviation, since getopt_long(3) accepts every unique one.
func optionIn(s, bad string) bool {
	for f := range strings.FieldsSeq(bad) {
		if strings.HasPrefix(f, "--") || len(f) > 2 {
			key, _, _ := strings.Cut(s, "=")
			if key == f || strings.HasPrefix(key, "--") && len(key) > 2 && strings.HasPrefix(f, key) {
				return true
			}
			continue
		}
		if !strings.HasPrefix(s, "--") && strings.Contains(s, f[1:]) {
			return true
		}
	}
	return false
}

// jqLooksAround matches jq programs that may read more than their input: the environment, which may hold keys, and modules. It does
// not parse the program, so a field that is called "env" costs a needless approval request.
var jqLooksAround = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`env|ENV|include|import|modulemeta|^-L|get_search_list`)
})

// sedPlain matches the sed scripts that may run without approval: a command on lines given by number, or one substitution. The parts of
// the substitution hold no bracket, backslash, brace or line end, so it is certain where they end. Otherwise a script could hide a
// command, as in s/[/]/g;s/e;p;/x/g.
var sedPlain = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^((([0-9]+|\$)(,([0-9]+|\$))?)?[pdq=]|[0-9]*s(/[^][/\\{}\n]+/[^][/\\{}\n]*/|\|[^][|\\{}\n]+\|[^][|\\{}\n]*\||#[^][#\\{}\n]+#[^][#\\{}\n]*#)[gp0-9]*)$`)
})

// sedSilent reports a sed call that certainly changes nothing. It has a fixed form: options -n, -E, -r, a script that sedPlain
// matches, then files.
func sedSilent(args []scan.Word) bool {
	for i, a := range args {
		s, ok := a.One()
		switch {
		case !ok:
			return false
		case s == "-n" || s == "-E" || s == "-r" || s == "-nE" || s == "-En" || s == "-nr" || s == "-rn":
		case strings.HasPrefix(s, "-"):
			return false
		default:
			return sedPlain().MatchString(s) && onlyFiles(args[i+1:])
		}
	}
	return false
}

// awkPlain matches the awk programs that may run without approval: they only print fields.
var awkPlain = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[ ]*\{[ ]*print([ ]+\$([0-9]+|NF)([ ]*,[ ]*\$([0-9]+|NF))*)?[ ]*;?[ ]*\}[ ]*$`)
})

// awkSilent reports an awk call that certainly changes nothing. It has a fixed form: at most the option -F, a program that awkPlain
// matches, then files.
func awkSilent(args []scan.Word) bool {
	for i := 0; i < len(args); i++ {
		s, ok := args[i].One()
		switch {
		case !ok:
			return false
		case s == "-F" && i+1 < len(args):
			i++
		case strings.HasPrefix(s, "-F"):
		case strings.HasPrefix(s, "-"):
			return false
		default:
			return awkPlain().MatchString(s) && onlyFiles(args[i+1:])
		}
	}
	return false
}

// onlyFiles reports that no word is, or may expand to, an option or an assignment. A wildcard at the start of a word may match a
// file that is named -i, so a word with wildcards must begin with a letter, a digit, a dot or a slash.
func onlyFiles(args []scan.Word) bool {
	for _, a := range args {
		for _, v := range a.Values {
			if !v.Known() || strings.HasPrefix(v.Text, "-") && v.Text != "-" || strings.Contains(v.Text, "=") || v.Glob &&
				!strings.ContainsAny(v.Text[:1], "./abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") {
				return false
			}
		}
	}
	return true
}

// sedReads reports a sed call without -i whose scripts neither run programs nor name files. It accepts more scripts than sedSilent,
// because it decides only whether the command is opaque, not whether it may run without approval.
func sedReads(args []scan.Word) bool {
	var scripts []string
	// Without -e the first word is the script, and the words after it are files. quiet counts -e options.
	quiet := 0
	for i := 0; i < len(args); i++ {
		s, ok := args[i].One()
		if !ok {
			if len(scripts) > 0 || quiet > 0 {
				continue // a file
			}
			return false
		}
		switch {
		// Options about how lines are read and printed. None of them writes a file.
		case s == "-n" || s == "-E" || s == "-r" || s == "--quiet" || s == "-s" || s == "-u" || s == "-z" || s == "--posix" || s == "-nE" ||
			s == "-nr" || s == "-En" || s == "-rn":
		case s == "-e" && i+1 < len(args):
			i++
			script, ok := args[i].One()
			if !ok {
				return false
			}
			scripts = append(scripts, script)
			quiet++
		case s == "-ne" && i+1 < len(args):
			i++
			script, ok := args[i].One()
			if !ok {
				return false
			}
			scripts = append(scripts, script)
		case strings.HasPrefix(s, "-") && len(s) > 1:
			return false
		case len(scripts) == 0:
			scripts = append(scripts, s)
		}
	}
	for _, s := range scripts {
		if !sedScript(s) {
			return false
		}
	}
	return len(scripts) > 0
}

// sedUnderstood reports a sed call that writes at most the files it is given (-i). It removes -i from the call, and sedReads checks
// that the rest writes nothing else.
func sedUnderstood(args []scan.Word) bool {
	// rest is args without -i in any spelling.
	var rest []scan.Word
	for i, a := range args {
		s := a.Text
		switch {
		// BSD sed takes the suffix for backup files as a word of its own: sed -i '' s/a/b/ x.
		case i > 0 && (args[i-1].Text == "-i" && s == ""):
		case strings.HasPrefix(s, "--in-place"), s == "-i", strings.HasPrefix(s, "-i"):
		case len(s) > 1 && s[0] == '-' && s[1] != '-' && strings.Contains(s, "i"):
			if letters := strings.ReplaceAll(s, "i", ""); len(letters) > 1 {
				rest = append(rest, scan.Plain(letters)) // -Ei, -ni, -ie …
			}
		default:
			rest = append(rest, a)
		}
	}
	return sedReads(rest)
}

// awkFile reports awk -f FILE: the program is a script in a file, and a script file is not analyzed.
func awkFile(args []scan.Word) bool {
	for _, a := range args {
		switch {
		case !strings.HasPrefix(a.Text, "-"):
			return false
		case strings.HasPrefix(a.Text, "-f"):
			return true
		}
	}
	return false
}

// sedScript reports that a script surely uses only sed commands that name no file and run no program. It refuses the commands r and w,
// which name files, e, which runs a program, F, which prints the name of the input file, and the flags e and w of s. It also
// refuses whatever implementations of sed parse in different ways.
func sedScript(s string) bool {
	i := 0
	// skipRegex moves i behind the next delimiter. It is false when the place of that delimiter is not certain.
	skipRegex := func(delim byte) bool {
		for ; i < len(s); i++ {
			switch s[i] {
			case '\\':
				i++
			case '[': // implementations differ on whether a delimiter inside [ ] ends the expression
				end := bracketEnd(s[i:])
				if end < 0 || strings.IndexByte(s[i:i+end], delim) >= 0 || strings.IndexByte(s[i:i+end], '\n') >= 0 {
					return false
				}
				i += end - 1
			case delim:
				i++
				return true
			case '\n':
				return false
			}
		}
		return false
	}
	for i < len(s) {
		switch c := s[i]; {
		case strings.IndexByte(" \t\n;,!$0123456789+~{}", c) >= 0:
			i++
		case c == '/':
			i++
			if !skipRegex('/') {
				return false
			}
			for i < len(s) && (s[i] == 'I' || s[i] == 'M') {
				i++
			}
		case c == 'p' || c == 'd' || c == '=' || c == 'q' || c == 'P' || c == 'D' || c == 'n' || c == 'N' || c == 'g' || c == 'G' || c == 'h' ||
			c == 'H' || c == 'x' || c == 'l':
			i++
		case c == 'a' || c == 'i' || c == 'c': // text up to the end of the line
			for i < len(s) && s[i] != '\n' {
				if s[i] == '\\' {
					i++
				}
				i++
			}
		case c == ':' || c == 'b' || c == 't' || c == 'T': // labels
			at := i + 1
			for i++; i < len(s) && strings.IndexByte(";\n}", s[i]) < 0; i++ {
			}
			// For GNU sed a blank ends a label, and a command may follow: tx e touch y. For others it is a part of the label.
			if strings.ContainsAny(strings.Trim(s[at:i], " \t"), " \t") {
				return false
			}
		// Any character can be the delimiter of s and y. Of the flags of s, e runs the result as a command and w writes a file.
		case c == 's' || c == 'y':
			if i+1 >= len(s) {
				return false
			}
			delim := s[i+1]
			if delim == '\n' || delim == '\\' || delim == '[' {
				return false
			}
			i += 2
			// With an unusual delimiter and a bracket after it, it is not certain where the expression ends.
			if strings.IndexByte(s[i:], '[') >= 0 && delim != '/' && delim != '|' && delim != '#' && delim != ',' && delim != '@' {
				return false
			}
			if !skipRegex(delim) { // the expression
				return false
			}
			if !skipRegex(delim) { // the replacement
				return false
			}
			for i < len(s) && strings.IndexByte("gpIi0123456789", s[i]) >= 0 {
				i++
			}
			if i < len(s) && strings.IndexByte(" \t\n;}", s[i]) < 0 {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// bracketEnd returns the length in bytes of the bracket expression at the start of s. It is -1 if the expression does not end, or if
// its end is uncertain, because it holds a second "[" ([[:alpha:]]) or a backslash. A "]" that comes first, or directly after "^", is
// a member of the set (regex(7)).
func bracketEnd(s string) int {
	i := 1
	if i < len(s) && s[i] == '^' {
		i++
	}
	if i < len(s) && s[i] == ']' {
		i++
	}
	for ; i < len(s); i++ {
		switch s[i] {
		case '[', '\\':
			return -1
		case ']':
			return i + 1
		}
	}
	return -1
}

// awkCompares reports an awk program without an output redirection: every > in it is a comparison. In awk only print … > "name" and
// printf … > "name" redirect. Where a print statement ends is hard to tell, so a program that has print and a > (other than >=)
// anywhere counts as redirecting.
func awkCompares(s string) bool {
	return !strings.Contains(strings.ReplaceAll(s, ">=", ""), ">") || !strings.Contains(s, "print")
}

// awkReads reports an awk call whose program is an argument, starts no other program and writes no file. It does not parse the program,
// but refuses it if it contains one of these: system and | start programs, > writes files, close and fflush take the names of files
// or programs, getline reads files, @load and @include load code, ENVIRON and PROCINFO may hold keys, and ARGV and ARGC change
// which files awk reads.
func awkReads(args []scan.Word) bool {
	for i := 0; i < len(args); i++ {
		s, ok := args[i].One()
		if !ok {
			return false
		}
		switch {
		case (s == "-F" || s == "-v") && i+1 < len(args):
			i++
			continue
		case strings.HasPrefix(s, "-F") || strings.HasPrefix(s, "-v"):
			continue
		case strings.HasPrefix(s, "-") && len(s) > 1:
			return false
		}
		s = strings.ReplaceAll(s, "||", "")
		for _, word := range [...]string{"system", "getline", "|", ">", "@", "close", "fflush", "ENVIRON", "PROCINFO", "ARGV", "ARGC"} {
			if word == ">" && awkCompares(s) {
				continue
			}
			if strings.Contains(s, word) {
				return false
			}
		}
		// The first word that is not an option is the program. The words after it are files and assignments, which do not change it.
		return true
	}
	return false
}
