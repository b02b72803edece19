package programs

import (
	"regexp"
	"strings"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// readOnly reports a call that changes nothing and runs nothing else, with the options it has.
// Whether it may run unasked is decided elsewhere; a wrong "true" here would let a change pass without a question, so every
// doubt answers false.
func readOnly(name string, c *scan.Visit) bool {
	r := recordOf(c, name)
	bad, args := r.Ends, c.Args[1:]
	// go version only prints, whatever else go does.
	if !r.Reads {
		return len(args) == 1 && hasField(r.Version, args[0].Text)
	}
	// Words that are not options: for some programs their number decides whether something is written.
	words := 0
	for _, a := range args {
		if scan.NamesSecret(a.Source) {
			return false // what it prints would be sent to a model
		}
		if !a.Known() {
			// An unknown word may be an option, unless it cannot: quoted text for echo changes nothing.
			if bad != "" || name == "sed" || strings.HasSuffix(name, "awk") || name == "uniq" || name == "hostname" || name == "xxd" {
				return false
			}
			continue
		}
		s := a.Text
		if v, ok := a.One(); ok {
			s = v
		}
		// "-" alone is standard input, a word like any other.
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
		// The second word is written. xxd takes -- after the first word for a file's name.
		return words <= 1 && (len(args) == 0 || args[len(args)-1].Text != "--")
	// A word sets the machine's name.
	case "hostname":
		return words == 0
	// A word without + sets the clock.
	case "date":
		return words == 0 || words == 1 && strings.HasPrefix(args[len(args)-1].Text, "+")
	// Other options print the environment of programs (e), with the keys in it.
	case "ps":
		return len(args) == 0 || len(args) == 1 && (args[0].Text == "aux" || args[0].Text == "-ef" || args[0].Text == "-e" || args[0].Text == "-A" ||
			args[0].Text == "ax")
	case "jq":
		for _, a := range args {
			if jqLooksAround.MatchString(a.Text) {
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

// optionIn reports whether an argument is, or may be short for, one of the options.
// bad is a list as in a Record. A short option counts anywhere in a cluster, and a long one in any abbreviation, because
// getopt_long takes the shortest that is unique (getopt_long(3)).
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

// jqLooksAround finds what lets a jq program read more than its input: the environment, with its keys, and modules.
// The pattern is a plain search, so a field called "env" costs a question.
var jqLooksAround = regexp.MustCompile(`env|ENV|include|import|modulemeta|^-L|get_search_list`)

// sedPlain are the sed scripts that run without a question: lines by number, and one substitution whose parts hold no
// bracket, backslash, brace or line end. Where a regular expression ends is the question by which a script hides a
// command (s/[/]/g;s/e;p;/x/g), so nothing that needs an answer to it is among them.
var sedPlain = regexp.MustCompile(`^((([0-9]+|\$)(,([0-9]+|\$))?)?[pdq=]|[0-9]*s(/[^][/\\{}\n]+/[^][/\\{}\n]*/|\|[^][|\\{}\n]+\|[^][|\\{}\n]*\||#[^][#\\{}\n]+#[^][#\\{}\n]*#)[gp0-9]*)$`)

// sedSilent reports a sed call that changes nothing, by its spelling alone: -n, -E or -r, one script of sedPlain, files.
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
			return sedPlain.MatchString(s) && onlyFiles(args[i+1:])
		}
	}
	return false
}

// awkPlain are the awk programs that run without a question: they print fields.
var awkPlain = regexp.MustCompile(`^[ ]*\{[ ]*print([ ]+\$([0-9]+|NF)([ ]*,[ ]*\$([0-9]+|NF))*)?[ ]*;?[ ]*\}[ ]*$`)

// awkSilent reports an awk call that changes nothing, by its spelling alone: a separator, a program of awkPlain, files.
// -v is refused like every other option: a call that passes is understood by its spelling alone.
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
			return awkPlain.MatchString(s) && onlyFiles(args[i+1:])
		}
	}
	return false
}

// onlyFiles reports that no word is, or may become, an option or an assignment.
// A wildcard may find a file named -i or x=y, so only one that begins with a letter, a digit, a dot or a slash passes.
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

// sedReads reports a sed call without -i whose scripts only print, deletes and substitutes.
// It is broader than sedSilent and decides only whether the script is opaque, not whether the call runs unasked.
func sedReads(args []scan.Word) bool {
	var scripts []string
	// Scripts come from -e; without it the first word is the script and the rest are files.
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
		// Options that change how lines are read and printed, and write nothing.
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

// sedUnderstood reports a sed call that changes at most the files it is given.
// -i is taken out and the rest judged by sedReads: the files are then the only thing that is written.
func sedUnderstood(args []scan.Word) bool {
	// rest is the call without -i, in any of its spellings.
	var rest []scan.Word
	for i, a := range args {
		s := a.Text
		switch {
		// BSD sed takes the suffix of its backup as a word of its own: sed -i '' s/a/b/ x.
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

// awkFile reports awk -f: a program in a file, like any script.
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

// sedScript understands the part of sed that touches nothing but its input: no r, w, e, F.
// It reads the script as sed's own parser does, and gives up at the first thing that sed programs read differently. The
// refused commands are r and w (files), e (a program), F and the flags e and w of s.
func sedScript(s string) bool {
	i := 0
	// skipRegex goes past the next delimiter; false when that cannot be found for sure.
	skipRegex := func(delim byte) bool {
		for ; i < len(s); i++ {
			switch s[i] {
			case '\\':
				i++
			case '[': // whether a delimiter in a bracket expression ends the whole differs from sed to sed
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
			for i++; i < len(s) && strings.IndexByte(";\n}", s[i]) < 0; i++ {
			}
		// GNU sed takes any character as a delimiter; after s are flags, of which e runs the result and w writes a file.
		case c == 's' || c == 'y':
			if i+1 >= len(s) {
				return false
			}
			delim := s[i+1]
			if delim == '\n' || delim == '\\' || delim == '[' {
				return false
			}
			i += 2
			// With an unusual delimiter and a bracket in what follows, where the expression ends is not sure.
			if strings.IndexByte(s[i:], '[') >= 0 && delim != '/' && delim != '|' && delim != '#' && delim != ',' && delim != '@' {
				return false
			}
			if !skipRegex(delim) { // what is looked for
				return false
			}
			if !skipRegex(delim) { // what comes instead
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

// bracketEnd is the length of the bracket expression that s begins with; -1 when it does not end, or holds what makes its
// end hard to tell ([[:alpha:]], a backslash).
// A "]" that is first, or after "^", belongs to the expression (regex(7)).
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

// awkCompares reports a program in which every > compares: nothing is printed in it, so none can name a file. Where a
// print statement ends is hard to say: its list continues after a comma, && or an open parenthesis.
// awk writes to a file with print … > "name" and printf … > "name" only.
func awkCompares(s string) bool {
	return !strings.Contains(strings.ReplaceAll(s, ">=", ""), ">") || !strings.Contains(s, "print")
}

// awkReads reports an awk call whose program is given as text and neither runs nor writes anything.
// It searches for words and does not parse: system( ) and | run programs, > and close name files, getline reads them, @load
// and @include bring code, ENVIRON and PROCINFO hold keys, ARGV makes text into file names.
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
		// The first word that is not an option is the program. Files follow, and assignments among them, which change no program.
		return true
	}
	return false
}
